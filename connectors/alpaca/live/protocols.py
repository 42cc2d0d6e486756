"""What is said on each of Alpaca's websockets: how one introduces oneself, what is asked for, what the messages mean.

A message of another shape is left out: a field more, or one that is missing, must not end a feed.
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


class NotLetIn(Exception):
    """The service ended the introduction; `for_ever` where asking again cannot help: the keys are refused."""

    def __init__(self, words: str, *, for_ever: bool) -> None:
        super().__init__(words)
        self.for_ever = for_ever


class StreamProtocol(Protocol):
    """One websocket's language."""

    feed: str
    url: str

    async def introduce(self, send: Send, receive: Receive) -> None:
        """Shows the keys and asks for what is wanted. Raises NotLetIn."""
        ...

    def read(self, message: Any) -> Iterable[FeedMessage]:
        """What a message tells."""
        ...


class DataStream:
    """Quotes and trades of shares or coins, or news."""

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
        """Waits to be greeted, shows the keys, subscribes."""
        await self._until(receive, "success", "connected")
        await send(self._keys)
        await self._until(receive, "success", "authenticated")
        await send(self._wanted)
        await self._until(receive, "subscription", None)

    async def _until(self, receive: Receive, kind: str, words: str | None) -> None:
        while True:
            for one in _rows(await receive()):
                if one.get("T") == "error":
                    said, code = str(one.get("msg", "no reason")), one.get("code")
                    raise NotLetIn(f"{said} ({code})", for_ever=code == _AUTH_FAILED)
                if one.get("T") == kind and words in (None, one.get("msg")):
                    return

    def read(self, message: Any) -> Iterable[FeedMessage]:
        """Quotes, trades and headlines; a quote with an empty side is none."""
        for one in _rows(message):
            try:
                heard = self._heard(one)
            except (KeyError, TypeError, ValueError, ArithmeticError):
                continue
            if heard is not None:
                yield heard

    def _heard(self, one: dict[str, Any]) -> FeedMessage | None:
        kind = one.get("T")
        if kind == "n":
            about = dict.fromkeys(self._names[name] for name in one["symbols"] if name in self._names)
            said = " ".join(str(one["headline"]).split())
            return Headline(tuple(about), said, str(one.get("source") or ""), moment(one["updated_at"]))
        symbol = self._names.get(one.get("S", ""))
        if symbol is None:
            return None
        if kind == "q" and one["bp"] and one["ap"]:
            return Quote(symbol, price(one["bp"]), price(one["ap"]), moment(one["t"]))
        return LastTrade(symbol, price(one["p"]), moment(one["t"])) if kind == "t" else None


class TradingStream:
    """What happens to the account's orders."""

    feed = "orders"

    def __init__(self, settings: AlpacaSettings) -> None:
        self.url = settings.trading_url.replace("http", "ws", 1) + "/stream"
        self._keys = {"action": "auth", "key": settings.key, "secret": settings.secret}

    async def introduce(self, send: Send, receive: Receive) -> None:
        """Shows the keys and listens to trade updates."""
        await send(self._keys)
        said = (await self._answer(receive, "authorization")).get("status")
        if said != "authorized":
            raise NotLetIn(str(said or "not authorized"), for_ever=said == "unauthorized")
        await send({"action": "listen", "data": {"streams": ["trade_updates"]}})
        await self._answer(receive, "listening")

    async def _answer(self, receive: Receive, stream: str) -> dict[str, Any]:
        while True:
            message = await receive()
            if isinstance(message, dict) and message.get("stream") == stream:
                data = message.get("data")
                return data if isinstance(data, dict) else {}

    def read(self, message: Any) -> Iterable[FeedMessage]:
        """Hints of orders."""
        try:
            data = message["data"]
            if message["stream"] == "trade_updates":
                order = data["order"]
                yield OrderHint(str(order["client_order_id"]), str(data["event"]), moment(order["updated_at"]))
        except (KeyError, TypeError, ValueError):
            return


def stream_address(data_url: str) -> str:
    """Where the websockets of a data service are: on a host of their own at Alpaca's, on its own port elsewhere."""
    return data_url.replace("http", "ws", 1).replace("//data.", "//stream.data.", 1)


def price(value: Any) -> Decimal:
    """A price as JSON has it. Raises TypeError, ValueError for what is none above zero."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError("no number")
    if not value > 0:
        raise ValueError("no price")
    return Decimal(value)


def moment(text: str) -> datetime:
    """A moment as the service writes it, UTC. Raises ValueError, TypeError."""
    return datetime.fromisoformat(text).astimezone(UTC)


def _rows(message: Any) -> list[dict[str, Any]]:
    return [one for one in message if isinstance(one, dict)] if isinstance(message, list) else []
