"""Requests in place of a stream that is down: the latest prices, and what has become of the account's orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from connectors.alpaca.broker import AlpacaBroker
from connectors.alpaca.market_data import AlpacaData
from connectors.alpaca.settings import AlpacaSettings
from engine.domain.brokerage import BrokerOrder
from engine.domain.live import FeedMessage, OrderHint
from engine.domain.market import Symbol
from engine.domain.order import OrderState
from engine.ports import Clock

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
