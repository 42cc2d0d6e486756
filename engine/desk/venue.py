"""Where a desk's orders go, and who keeps its books: the simulated market, or an account at a broker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Protocol

from engine.domain.market import Symbol
from engine.domain.order import Order, OrderUpdate
from engine.domain.portfolio import Portfolio
from engine.domain.run import EquityPoint
from engine.simulation.desk_broker import Means, Settled


class Venue(Protocol):
    """One desk's market. `settle` comes first in every run, and is start-up and crash recovery alike."""

    @property
    def real_time(self) -> bool:
        """Whether time passes there by itself: an order whose session is no longer the latest must not be sent."""
        ...

    @property
    def books(self) -> EquityPoint | None:
        """The books at the last close that was settled; None before the first."""
        ...

    @property
    def portfolio(self) -> Portfolio:
        """Cash and positions to decide on: the books, with what has happened since."""
        ...

    @property
    def means(self) -> Means:
        """What `settle`, or `refresh` since then, found to be spent and sold."""
        ...

    async def settle(self, session: date) -> Sequence[Settled]:
        """Closes the books of every session after the last closed one up to `session`. The first run of a desk opens
        them."""
        ...

    async def whole_shares(self, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
        """Those symbols of which only whole shares are traded."""
        ...

    async def objection(self, symbol: Symbol) -> str:
        """Why nobody can trade a symbol there; empty where it is traded."""
        ...

    async def refresh(self) -> Means:
        """What can be spent and sold at this moment."""
        ...

    async def place(self, order: Order) -> OrderUpdate:
        """Hands over an order that is being submitted. Raises TryAgainLater, NetworkError or DataError where the
        outcome is not known."""
        ...

    async def lookup(self, order_id: str) -> OrderUpdate | None:
        """How an order stands, None where it never arrived. Raises TryAgainLater or NetworkError."""
        ...
