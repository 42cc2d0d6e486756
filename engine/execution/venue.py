"""Where a desk's orders go, and who keeps its books: the simulated market, or an account at a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Protocol

from engine.domain.market import Symbol
from engine.domain.order import Fill, Order, OrderUpdate
from engine.domain.portfolio import ZERO, Portfolio
from engine.domain.run import CashFlow, EquityPoint


@dataclass(frozen=True, slots=True)
class SettledSession:
    """One session that was closed: the books before and after, and what was traded and paid in it."""

    before: EquityPoint
    after: EquityPoint
    fills: tuple[Fill, ...]
    cash_flows: tuple[CashFlow, ...]


@dataclass(frozen=True, slots=True)
class BuyingPower:
    """What an account could still spend and sell: cash, what open buys may take of it, shares, and how many of them
    open sales may still take."""

    cash: Decimal
    reserved: Decimal = ZERO
    held: Mapping[Symbol, Decimal] = field(default_factory=dict)
    queued: Mapping[Symbol, Decimal] = field(default_factory=dict)


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
    def means(self) -> BuyingPower:
        """What `settle`, or `refresh` since then, found to be spent and sold."""
        ...

    async def settle(self, session: date) -> Sequence[SettledSession]:
        """Closes the books of every session after the last closed one up to `session`. The first run of a desk opens
        them."""
        ...

    async def whole_shares(self, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
        """Those symbols of which only whole shares are traded."""
        ...

    async def objection(self, symbol: Symbol) -> str:
        """Why nobody can trade a symbol there; empty where it is traded."""
        ...

    async def refresh(self) -> BuyingPower:
        """What can be spent and sold at this moment."""
        ...

    async def place(self, order: Order) -> OrderUpdate:
        """Hands over an order that is being submitted. Raises TryAgainLater, NetworkError or DataError where the
        outcome is not known."""
        ...

    async def lookup(self, order_id: str) -> OrderUpdate | None:
        """How an order stands, None where it never arrived. Raises TryAgainLater or NetworkError."""
        ...
