"""The market that a run trades in and who keeps its books: simulated, recorded, or an account at a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Protocol

from engine.domain.market import Symbol, is_crypto
from engine.domain.order import SHARE_STEP, ZERO, Fill, Order, OrderUpdate, Portfolio
from engine.domain.run import Adoption, CashFlow, EquityPoint


@dataclass(frozen=True, slots=True)
class SettledSession:
    """A holding period between two marks of the books, with everything that was traded, paid and adopted in it."""

    before: EquityPoint
    after: EquityPoint
    fills: tuple[Fill, ...] = ()
    cash_flows: tuple[CashFlow, ...] = ()
    adoptions: tuple[Adoption, ...] = ()


@dataclass(frozen=True, slots=True)
class Settlement:
    """The sessions that a venue has closed, and the holding periods that outcomes are measured over.

    Both are the same where orders fill after the close that they were decided on. Where they fill at that very close,
    a holding period runs from the mark before the fills to the mark at the next close."""

    sessions: tuple[SettledSession, ...] = ()
    holding_periods: tuple[SettledSession, ...] = ()
    warnings: tuple[str, ...] = ()
    """Remarks on the books that a person should read."""

    @classmethod
    def of(cls, sessions: Iterable[SettledSession], warnings: Iterable[str] = ()) -> Settlement:
        """Sessions that are holding periods as well."""
        closed = tuple(sessions)
        return cls(closed, closed, tuple(warnings))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTerms:
    """The orders that a venue takes of a symbol.

    step: quantities are multiples of it.
    least_quantity, least_amount: of an order, in shares and in the quote currency.
    no_short: why nobody can sell it short; empty where shares may be, whole ones and while none are held.
    """

    step: Decimal = SHARE_STEP
    least_quantity: Decimal = ZERO
    least_amount: Decimal = ZERO
    no_short: str = ""


@dataclass(frozen=True, slots=True)
class BuyingPower:
    """The ability of an account to buy and sell, in the quote currency and in shares: its cash, the part of it that
    open buys may take, the shares held, and the part of them that open sales may take.

    shares, crypto: the amounts for which the venue itself lets these be bought beside what is open; None for no limit.
    """

    cash: Decimal
    reserved: Decimal = ZERO
    held: Mapping[Symbol, Decimal] = field(default_factory=dict)
    queued: Mapping[Symbol, Decimal] = field(default_factory=dict)
    shares: Decimal | None = None
    crypto: Decimal | None = None

    def limit(self, symbol: Symbol) -> Decimal | None:
        """The amount for which the venue lets a symbol be bought; None for no limit."""
        return self.crypto if is_crypto(symbol) else self.shares


class SessionVenue(Protocol):
    """The part of a market that a session needs to decide. `settle` comes first in every run: it is start-up and crash
    recovery alike."""

    @property
    def portfolio(self) -> Portfolio:
        """Cash and positions to decide on: the last closed books with all account activity since."""

    @property
    def buying_power(self) -> BuyingPower:
        """The buying power as of `settle`, or of `refresh` since then."""

    async def settle(self, session: date) -> Settlement:
        """Close the books of every session after the last closed one up to `session`. The first run of a desk opens
        them."""

    async def whole_shares(self, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
        """The symbols of which only whole shares are traded."""

    async def terms(self, symbols: Iterable[Symbol]) -> Mapping[Symbol, OrderTerms]:
        """The orders that are taken of symbols; any of one that is left out."""


class Venue(SessionVenue, Protocol):
    """A market that takes orders."""

    @property
    def real_time(self) -> bool:
        """True where time passes by itself: an order whose session is no longer the latest must not be sent."""

    @property
    def books(self) -> EquityPoint | None:
        """The books at the last close that was settled; None before the first."""

    async def restriction(self, symbol: Symbol) -> str:
        """The reason why nobody can trade a symbol there; empty where it is traded."""

    async def refresh(self) -> BuyingPower:
        """The buying power at this moment."""

    async def place(self, order: Order) -> OrderUpdate:
        """Send an order that is being submitted. Raises TryAgainLater, NetworkError or DataError where the outcome is
        not known."""

    async def lookup(self, order_id: str) -> OrderUpdate | None:
        """The state of an order; None where it never arrived. Raises TryAgainLater or NetworkError."""
