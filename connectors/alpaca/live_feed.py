"""The live feed of a desk: one websocket per kind, which reconnects after any break, and polling while one is down.

A message of another shape is left out: a field more, or a missing one, must not end a feed.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from connectors.alpaca.broker import AlpacaBroker
from connectors.alpaca.json_fields import by_wire, compact, to_wire, utc
from connectors.alpaca.market_data import AlpacaData, quote_of, trade_of
from connectors.alpaca.settings import AlpacaSettings
from engine.domain.brokerage import BrokerOrder
from engine.domain.live import Delivery, FeedMessage, FeedState, Headline, OrderHint
from engine.domain.market import Symbol, is_crypto
from engine.domain.order import OrderState
from engine.errors import CredentialsRefused, PaperdeskError
from engine.ports import Clock

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


POLL_EVERY = 15.0
"""Seconds between two requests in place of a stream."""


class AlpacaLive:
    """The LiveFeed port. Prices and orders are requested while their stream is down, news by the next cycle."""

    def __init__(self, settings: AlpacaSettings, clock: Clock, *, sleep: Sleep = asyncio.sleep) -> None:
        self._settings = settings
        self._clock = clock
        self._sleep = sleep

    async def follow(self, symbols: Sequence[Symbol], on_message: OnMessage) -> None:
        """Implement the port."""
        settings, prices = self._settings, _by_feed(symbols)
        streams: list[AlpacaStream] = [TradingStream(settings), DataStream(settings, "news", symbols)]
        streams += [DataStream(settings, feed, some) for feed, some in prices.items()]
        states = _FeedStates(self._clock, on_message)
        async with aclosing(AlpacaData(settings)) as data, aclosing(PolledOrders(settings, self._clock)) as orders:
            work = [
                stream.stay_connected(on_message, partial(states.stream_changed, stream.feed), self._sleep)
                for stream in streams
            ]
            work += [self._poll(feed, partial(data.latest, some), states) for feed, some in prices.items()]
            work.append(self._poll("orders", orders.request, states, orders.forget))
            tasks = [asyncio.create_task(one) for one in work]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def latest(self, symbols: Sequence[Symbol]) -> Sequence[FeedMessage]:
        """The latest quotes and trades, requested now."""
        async with aclosing(AlpacaData(self._settings)) as data:
            return [message for some in _by_feed(symbols).values() for message in await data.latest(some)]

    async def _poll(
        self,
        feed: str,
        request: Callable[[], Awaitable[Sequence[FeedMessage]]],
        states: _FeedStates,
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        """Request a feed while its stream is down; once it is up it has told what happened, and `forget` is called."""
        while True:
            await self._sleep(POLL_EVERY)
            if states.streams(feed):
                forget()
                continue
            try:
                messages = await request()
            except CredentialsRefused:
                raise
            except PaperdeskError as error:
                states.poll_changed(feed, Delivery.DOWN, str(error))
                continue
            if states.streams(feed):
                continue  # the stream came back during the request
            states.poll_changed(feed, Delivery.POLLING, "the stream is down: requested instead")
            for message in messages:
                states.on_message(message)


def _by_feed(symbols: Sequence[Symbol]) -> dict[str, Sequence[Symbol]]:
    """Symbols by price feed; feeds without symbols are left out."""
    crypto = tuple(symbol for symbol in symbols if is_crypto(symbol))
    shares = tuple(symbol for symbol in symbols if not is_crypto(symbol))
    return {feed: some for feed, some in (("shares", shares), ("coins", crypto)) if some}


class _FeedStates:
    """Delivery of every feed: by its stream, else by polling, else down. A change is reported once."""

    def __init__(self, clock: Clock, on_message: OnMessage) -> None:
        self.on_message = on_message
        self._clock = clock
        self._deliveries: dict[str, Delivery] = {}

    def streams(self, feed: str) -> bool:
        """True while a feed's stream is up."""
        return self._deliveries.get(feed) is Delivery.STREAM

    def stream_changed(self, feed: str, delivery: Delivery, detail: str) -> None:
        """Note that a feed's stream is up, which ends its polling, or down."""
        if delivery is Delivery.STREAM or self._deliveries.get(feed) is not Delivery.POLLING:
            self._change(feed, delivery, detail)

    def poll_changed(self, feed: str, delivery: Delivery, detail: str) -> None:
        """Note that a polling request was answered, or, with a reason, was not."""
        if not self.streams(feed):
            self._change(feed, delivery, detail)

    def _change(self, feed: str, delivery: Delivery, detail: str) -> None:
        if self._deliveries.get(feed) is not delivery:
            self._deliveries[feed] = delivery
            self.on_message(FeedState(feed, delivery, self._clock.now(), detail))


_EVENTS: Mapping[OrderState, str] = {
    OrderState.PARTIALLY_FILLED: "partial_fill",
    OrderState.FILLED: "fill",
    OrderState.CANCELED: "canceled",
    OrderState.EXPIRED: "expired",
    OrderState.REJECTED: "rejected",
}
"""The stream's events by the state in which they leave an order."""


class PolledOrders:
    """Changes of the account's last orders from one request to the next; the first one has nothing to compare."""

    def __init__(self, settings: AlpacaSettings, clock: Clock) -> None:
        self._clock = clock
        self._broker = AlpacaBroker(settings, attempts=1)
        self._known: Mapping[str, BrokerOrder] | None = None

    async def request(self) -> Sequence[FeedMessage]:
        """The changes since the request before. Times are those of the request."""
        found = {order.order_id: order for order in await self._broker.last_orders()}
        before, self._known = self._known, found
        if before is None:
            return []
        now = self._clock.now()
        changed = [order for name, order in found.items() if _progress(order) != _progress(before.get(name))]
        return [OrderHint(one.order_id, _EVENTS[one.state], now) for one in changed if one.state in _EVENTS]

    def forget(self) -> None:
        """Begin anew."""
        self._known = None

    async def aclose(self) -> None:
        """Close connections."""
        await self._broker.aclose()


def _progress(order: BrokerOrder | None) -> tuple[object, ...]:
    return () if order is None else (order.state, order.filled_quantity)
