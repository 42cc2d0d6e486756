"""Alpaca's websockets: authentication, subscription, the meaning of messages, and reconnection after any break.

A message of another shape is left out: a field more, or a missing one, must not end a feed.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from connectors.alpaca.json_fields import by_wire, compact, to_wire, utc
from connectors.alpaca.market_data import quote_of, trade_of
from connectors.alpaca.settings import AlpacaSettings
from engine.domain.delivery import Delivery
from engine.domain.live import FeedMessage, Headline, OrderHint
from engine.domain.market import Symbol
from engine.errors import CredentialsRefused

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
STEADY = 60.0
"""Seconds that a connection has to last to reset the pause.

A service that accepts a connection and closes it at once is not called every second.
"""
_ALIVE = 15.0
"""Seconds between pings, and the time limit of their answers."""
_LARGEST = 4 * 2**20
_AUTH_FAILED = 402

OnMessage = Callable[[FeedMessage], None]
Sleep = Callable[[float], Awaitable[None]]


class StreamRefused(Exception):
    """A refusal during authentication; `permanent` where the keys are refused and a retry cannot help."""

    def __init__(self, text: str, *, permanent: bool) -> None:
        super().__init__(text)
        self.permanent = permanent


class AlpacaStream(ABC):
    """One websocket that stays connected."""

    def __init__(self, settings: AlpacaSettings, feed: str, url: str) -> None:
        self.feed = feed
        self.url = url
        self._settings = settings
        self._keys = {"action": "auth", "key": settings.key, "secret": settings.secret}

    @abstractmethod
    async def introduce(self, socket: ClientConnection) -> None:
        """Authenticate and subscribe. Raises StreamRefused."""

    @abstractmethod
    def read(self, message: Any) -> Iterable[FeedMessage]:
        """Values of a message."""

    async def stay_connected(
        self, on_message: OnMessage, on_delivery: Callable[[Delivery, str], None], sleep: Sleep
    ) -> None:
        """Listen until cancelled, with growing pauses between connections; `on_delivery` gets the state of the feed.

        Raises CredentialsRefused where the keys are refused, which no wait changes.
        """
        from websockets.exceptions import WebSocketException

        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE
        while True:
            begun = loop.time()
            try:
                await self._listen(on_message, on_delivery)
                detail = "the connection was closed"
            except StreamRefused as refused:
                if refused.permanent:
                    raise CredentialsRefused(
                        f"the {self.feed} stream refuses the keys: {refused}; check APCA_API_KEY_ID and "
                        "APCA_API_SECRET_KEY"
                    ) from None
                detail = str(refused)
            except (OSError, TimeoutError, WebSocketException, ValueError) as error:
                detail = _describe(error)
            on_delivery(Delivery.DOWN, detail)
            if loop.time() - begun >= STEADY:
                pause = FIRST_PAUSE
            await sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _listen(self, on_message: OnMessage, on_delivery: Callable[[Delivery, str], None]) -> None:
        from websockets.asyncio.client import connect

        settings = self._settings
        socket = await connect(
            self.url,
            open_timeout=settings.timeout,
            close_timeout=1,
            ping_interval=_ALIVE,
            ping_timeout=_ALIVE,
            max_size=_LARGEST,
            proxy=None if settings.is_local else True,
        )
        try:
            async with asyncio.timeout(settings.timeout):
                await self.introduce(socket)
            on_delivery(Delivery.STREAM, "")
            async for raw in socket:
                for message in self.read(_document(raw)):
                    on_message(message)
        finally:
            try:
                await socket.close()
            finally:
                socket.transport.abort()  # a close that is cancelled leaves the connection open

    async def _wait_for(self, socket: ClientConnection, **fields: str) -> dict[str, Any]:
        """The next message with these fields. Raises StreamRefused for an error."""
        while True:
            message = _document(await socket.recv())
            for one in _rows(message if isinstance(message, list) else [message]):
                if one.get("T") == "error":
                    detail, code = str(one.get("msg", "no reason")), one.get("code")
                    raise StreamRefused(f"{detail} ({code})", permanent=code == _AUTH_FAILED)
                if fields.items() <= one.items():
                    return one


class DataStream(AlpacaStream):
    """Quotes and trades of shares or crypto, or news."""

    def __init__(self, settings: AlpacaSettings, feed: str, symbols: Sequence[Symbol]) -> None:
        """`feed` is `shares`, `coins` or `news`."""
        paths = {"shares": f"/v2/{settings.feed}", "coins": "/v1beta3/crypto/us", "news": "/v1beta1/news"}
        super().__init__(settings, feed, stream_address(settings.data_url) + paths[feed])
        self._names = by_wire(symbols)
        wanted = [(compact if feed == "news" else to_wire)(symbol) for symbol in symbols]
        channels = ("news",) if feed == "news" else ("quotes", "trades")
        self._wanted = {"action": "subscribe"} | dict.fromkeys(channels, wanted)

    async def introduce(self, socket: ClientConnection) -> None:
        """Wait for the greeting, authenticate, subscribe."""
        await self._wait_for(socket, T="success", msg="connected")
        await socket.send(json.dumps(self._keys))
        await self._wait_for(socket, T="success", msg="authenticated")
        await socket.send(json.dumps(self._wanted))
        await self._wait_for(socket, T="subscription")

    def read(self, message: Any) -> Iterable[FeedMessage]:
        """Quotes, trades and headlines; a quote with an empty side is left out."""
        for one in _rows(message):
            try:
                value = self._message(one)
            except (KeyError, TypeError, ValueError, ArithmeticError):
                continue
            if value is not None:
                yield value

    def _message(self, one: dict[str, Any]) -> FeedMessage | None:
        kind = one.get("T")
        if kind == "n":
            about = dict.fromkeys(self._names[name] for name in one["symbols"] if name in self._names)
            detail = " ".join(str(one["headline"]).split())
            return Headline(tuple(about), detail, str(one.get("source") or ""), utc(one["updated_at"]))
        symbol = self._names.get(one.get("S", ""))
        if symbol is None:
            return None
        return quote_of(symbol, one) if kind == "q" else trade_of(symbol, one) if kind == "t" else None


class TradingStream(AlpacaStream):
    """Events of the account's orders."""

    def __init__(self, settings: AlpacaSettings) -> None:
        super().__init__(settings, "orders", settings.trading_url.replace("http", "ws", 1) + "/stream")

    async def introduce(self, socket: ClientConnection) -> None:
        """Authenticate and listen to trade updates."""
        await socket.send(json.dumps(self._keys))
        data = (await self._wait_for(socket, stream="authorization")).get("data")
        detail = data.get("status") if isinstance(data, dict) else None
        if detail != "authorized":
            raise StreamRefused(str(detail or "not authorized"), permanent=detail == "unauthorized")
        await socket.send(json.dumps({"action": "listen", "data": {"streams": ["trade_updates"]}}))
        await self._wait_for(socket, stream="listening")

    def read(self, message: Any) -> Iterable[FeedMessage]:
        """Order hints."""
        try:
            data = message["data"]
            if message["stream"] == "trade_updates":
                order = data["order"]
                yield OrderHint(str(order["client_order_id"]), str(data["event"]), utc(order["updated_at"]))
        except (KeyError, TypeError, ValueError):
            return


def stream_address(data_url: str) -> str:
    """Address of a data service's websockets: a host of their own at Alpaca, the same port elsewhere."""
    return data_url.replace("http", "ws", 1).replace("//data.", "//stream.data.", 1)


def _rows(message: Any) -> list[dict[str, Any]]:
    return [one for one in message if isinstance(one, dict)] if isinstance(message, list) else []


def _document(raw: str | bytes) -> Any:
    return json.loads(raw, parse_float=Decimal)


def _describe(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "no connection can be made"
    return f"the connection broke ({type(error).__name__})"
