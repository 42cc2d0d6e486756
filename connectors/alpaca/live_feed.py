"""The live feed of a desk: one websocket per kind, and polling while one is down."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from connectors.alpaca.broker import AlpacaBroker
from connectors.alpaca.live_streams import AlpacaStream, DataStream, OnMessage, Sleep, TradingStream
from connectors.alpaca.market_data import AlpacaData
from connectors.alpaca.settings import AlpacaSettings
from engine.domain.brokerage import BrokerOrder
from engine.domain.delivery import Delivery
from engine.domain.live import FeedMessage, FeedState, OrderHint
from engine.domain.market import Symbol, is_crypto
from engine.domain.order import OrderState
from engine.errors import CredentialsRefused, PaperdeskError
from engine.ports import Clock

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
        polled: dict[str, Polled] = {feed: PolledPrices(settings, some) for feed, some in prices.items()}
        polled["orders"] = PolledOrders(settings, self._clock)
        tasks = [
            asyncio.create_task(
                stream.stay_connected(on_message, partial(states.stream_changed, stream.feed), self._sleep)
            )
            for stream in streams
        ]
        tasks += [asyncio.create_task(self._poll(feed, one, states)) for feed, one in polled.items()]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for one in polled.values():
                await one.aclose()

    async def latest(self, symbols: Sequence[Symbol]) -> Sequence[FeedMessage]:
        """The latest quotes and trades, requested now."""
        data = AlpacaData(self._settings)
        try:
            return [message for some in _by_feed(symbols).values() for message in await data.latest(some)]
        finally:
            await data.aclose()

    async def _poll(self, feed: str, polled: Polled, states: _FeedStates) -> None:
        while True:
            await self._sleep(POLL_EVERY)
            if states.streams(feed):
                polled.forget()
                continue
            try:
                messages = await polled.request()
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


class Polled(Protocol):
    """A feed by requests."""

    async def request(self) -> Sequence[FeedMessage]:
        """The messages since the request before. Raises CredentialsRefused, NetworkError, TryAgainLater and
        MalformedData."""

    def forget(self) -> None:
        """Begin anew: the stream is up, and has told what happened."""

    async def aclose(self) -> None:
        """Close connections."""


class PolledPrices:
    """The latest quotes and trades of symbols of one kind, shares or crypto."""

    def __init__(self, settings: AlpacaSettings, symbols: Sequence[Symbol]) -> None:
        self._symbols = symbols
        self._data = AlpacaData(settings)

    async def request(self) -> Sequence[FeedMessage]:
        """Implement the protocol."""
        return await self._data.latest(self._symbols)

    def forget(self) -> None:
        """Implement the protocol: prices have no past."""

    async def aclose(self) -> None:
        """Implement the protocol."""
        await self._data.aclose()


class PolledOrders:
    """Changes of the account's last orders from one request to the next; the first one has nothing to compare."""

    def __init__(self, settings: AlpacaSettings, clock: Clock) -> None:
        self._clock = clock
        self._broker = AlpacaBroker(settings, attempts=1)
        self._known: Mapping[str, BrokerOrder] | None = None

    async def request(self) -> Sequence[FeedMessage]:
        """Implement the protocol. Times are those of the request."""
        found = {order.order_id: order for order in await self._broker.last_orders()}
        before, self._known = self._known, found
        if before is None:
            return []
        now = self._clock.now()
        changed = [order for name, order in found.items() if _progress(order) != _progress(before.get(name))]
        return [OrderHint(one.order_id, _EVENTS[one.state], now) for one in changed if one.state in _EVENTS]

    def forget(self) -> None:
        """Implement the protocol."""
        self._known = None

    async def aclose(self) -> None:
        """Implement the protocol."""
        await self._broker.aclose()


def _progress(order: BrokerOrder | None) -> tuple[object, ...]:
    return () if order is None else (order.state, order.filled_quantity)
