"""Protocols of Alpaca's websockets: authentication, subscription, and the meaning of messages.

A message of another shape is left out: a field more, or a missing one, must not end a feed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Protocol

from connectors.alpaca.data.names import by_wire, compact
from connectors.alpaca.settings import AlpacaSettings
from connectors.alpaca.symbols import to_wire
from engine.domain.live import FeedMessage, Headline, LastTrade, OrderHint, Quote
from engine.domain.market import Symbol

Send = Callable[[Any], Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]

_AUTH_FAILED = 402


class StreamRefused(Exception):
    """A refusal during authentication; `permanent` where the keys are refused and a retry cannot help."""

    def __init__(self, text: str, *, permanent: bool) -> None:
        super().__init__(text)
        self.permanent = permanent


class StreamProtocol(Protocol):
    """Protocol of one websocket."""

    feed: str
    url: str

    async def introduce(self, send: Send, receive: Receive) -> None:
        """Authenticate and subscribe. Raises StreamRefused."""
        ...

    def read(self, message: Any) -> Iterable[FeedMessage]:
        """Values of a message."""
        ...


class DataStream:
    """Quotes and trades of shares or crypto, or news."""

    def __init__(self, settings: AlpacaSettings, feed: str, symbols: Sequence[Symbol]) -> None:
        """`feed` is `shares`, `coins` or `news`."""
        paths = {"shares": f"/v2/{settings.feed}", "coins": "/v1beta3/crypto/us", "news": "/v1beta1/news"}
        self.feed = feed
        self.url = stream_address(settings.data_url) + paths[feed]
        self._keys = {"action": "auth", "key": settings.key, "secret": settings.secret}
        self._names = by_wire(symbols)
        wanted = [(compact if feed == "news" else to_wire)(symbol) for symbol in symbols]
        channels = ("news",) if feed == "news" else ("quotes", "trades")
        self._wanted = {"action": "subscribe"} | dict.fromkeys(channels, wanted)

    async def introduce(self, send: Send, receive: Receive) -> None:
        """Wait for the greeting, authenticate, subscribe."""
        await self._until(receive, "success", "connected")
        await send(self._keys)
        await self._until(receive, "success", "authenticated")
        await send(self._wanted)
        await self._until(receive, "subscription", None)

    async def _until(self, receive: Receive, kind: str, text: str | None) -> None:
        while True:
            for one in _rows(await receive()):
                if one.get("T") == "error":
                    detail, code = str(one.get("msg", "no reason")), one.get("code")
                    raise StreamRefused(f"{detail} ({code})", permanent=code == _AUTH_FAILED)
                if one.get("T") == kind and text in (None, one.get("msg")):
                    return

    def read(self, message: Any) -> Iterable[FeedMessage]:
        """Quotes, trades and headlines; a quote with an empty side is left out."""
        for one in _rows(message):
            try:
                message = self._message(one)
            except (KeyError, TypeError, ValueError, ArithmeticError):
                continue
            if message is not None:
                yield message

    def _message(self, one: dict[str, Any]) -> FeedMessage | None:
        kind = one.get("T")
        if kind == "n":
            about = dict.fromkeys(self._names[name] for name in one["symbols"] if name in self._names)
            detail = " ".join(str(one["headline"]).split())
            return Headline(tuple(about), detail, str(one.get("source") or ""), moment(one["updated_at"]))
        symbol = self._names.get(one.get("S", ""))
        if symbol is None:
            return None
        if kind == "q" and one["bp"] and one["ap"]:
            return Quote(symbol, price(one["bp"]), price(one["ap"]), moment(one["t"]))
        return LastTrade(symbol, price(one["p"]), moment(one["t"])) if kind == "t" else None


class TradingStream:
    """Events of the account's orders."""

    feed = "orders"

    def __init__(self, settings: AlpacaSettings) -> None:
        self.url = settings.trading_url.replace("http", "ws", 1) + "/stream"
        self._keys = {"action": "auth", "key": settings.key, "secret": settings.secret}

    async def introduce(self, send: Send, receive: Receive) -> None:
        """Authenticate and listen to trade updates."""
        await send(self._keys)
        detail = (await self._answer(receive, "authorization")).get("status")
        if detail != "authorized":
            raise StreamRefused(str(detail or "not authorized"), permanent=detail == "unauthorized")
        await send({"action": "listen", "data": {"streams": ["trade_updates"]}})
        await self._answer(receive, "listening")

    async def _answer(self, receive: Receive, stream: str) -> dict[str, Any]:
        while True:
            message = await receive()
            if isinstance(message, dict) and message.get("stream") == stream:
                data = message.get("data")
                return data if isinstance(data, dict) else {}

    def read(self, message: Any) -> Iterable[FeedMessage]:
        """Order hints."""
        try:
            data = message["data"]
            if message["stream"] == "trade_updates":
                order = data["order"]
                yield OrderHint(str(order["client_order_id"]), str(data["event"]), moment(order["updated_at"]))
        except (KeyError, TypeError, ValueError):
            return


def stream_address(data_url: str) -> str:
    """Address of a data service's websockets: a host of their own at Alpaca, the same port elsewhere."""
    return data_url.replace("http", "ws", 1).replace("//data.", "//stream.data.", 1)


def price(value: Any) -> Decimal:
    """A price of JSON. Raises TypeError, ValueError for others than numbers above zero."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError("no number")
    if not value > 0:
        raise ValueError("no price")
    return Decimal(value)


def moment(text: str) -> datetime:
    """A time in the service's notation, UTC. Raises ValueError, TypeError."""
    return datetime.fromisoformat(text).astimezone(UTC)


def _rows(message: Any) -> list[dict[str, Any]]:
    return [one for one in message if isinstance(one, dict)] if isinstance(message, list) else []
