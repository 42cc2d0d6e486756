"""Accounts, orders, instruments and clocks as a broker has them: the values into which adapters translate any vendor's.

Money and quantities are Decimal, times aware UTC datetimes, symbols in the desk's notation (BTC-USD). A vendor's value
that is not known here is kept as text and never raises: unknown is a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from engine.domain.market import Symbol
from engine.domain.order import OrderState, Position, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAccount:
    """The account at the broker now.

    id: the broker's.
    status: the broker's term (`ACTIVE`).
    blocked: the reason why nothing can be traded; empty where trading is possible.
    currency: of all amounts.
    cash: may be negative on margin.
    equity: cash and positions at the broker's prices.
    prices: the broker's of now, of the positions for which it names one.
    buying_power, crypto_power: the amounts for which shares, and coins, can be bought beside what is open; None where
        it does not say.
    shorting: shares may be sold short.
    remarks: what a person should know of it, and that keeps nothing from being traded.
    """

    id: str
    status: str
    blocked: str
    currency: str
    cash: Decimal
    equity: Decimal
    positions: Mapping[Symbol, Position] = field(default_factory=dict)
    prices: Mapping[Symbol, Decimal] = field(default_factory=dict)
    buying_power: Decimal | None = None
    crypto_power: Decimal | None = None
    shorting: bool = True
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOrder:
    """An order at the broker. Canceled and expired orders may carry fills.

    order_id: ours (the client order id).
    broker_id: the broker's.
    quantity, notional: as ordered: shares, or an amount in the quote currency.
    filled_average_price: None before the first fill.
    submitted_at: UTC.
    detail: the broker's reason for a refusal.
    """

    order_id: str
    broker_id: str
    symbol: Symbol
    side: Side
    state: OrderState
    quantity: Decimal | None
    notional: Decimal | None
    filled_quantity: Decimal
    filled_average_price: Decimal | None
    submitted_at: datetime | None
    detail: str = ""


class ActivityKind(StrEnum):
    """The cause of a change of cash or shares in an account."""

    FILL = "fill"
    DIVIDEND = "dividend"
    FEE = "fee"
    INTEREST = "interest"
    SPLIT = "split"
    TRANSFER = "transfer"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One entry of the account's history.

    id: the broker's; it never comes twice.
    time: UTC; exact for fills, for other kinds often the day alone.
    broker_id, side, price: a fill's order (the broker's id), side and price per share.
    quantity: shares; positive for a fill, else their signed change.
    amount: signed change of cash; zero for a fill.
    description: the broker's name for it.
    """

    id: str
    kind: ActivityKind
    time: datetime
    symbol: Symbol | None = None
    broker_id: str = ""
    side: Side | None = None
    quantity: Decimal = Decimal(0)
    price: Decimal | None = None
    amount: Decimal = Decimal(0)
    description: str = ""


@dataclass(frozen=True, slots=True)
class BrokerClock:
    """The broker's time, and the next open and close of its market."""

    now: datetime
    is_open: bool
    next_open: datetime
    next_close: datetime


@dataclass(frozen=True, slots=True)
class SessionHours:
    """A trading session by the broker's calendar."""

    session: date
    opens_at: datetime
    closes_at: datetime


@dataclass(frozen=True, slots=True)
class Asset:
    """An instrument as the broker lists it.

    fractionable: parts of a share may be traded, and bought by amount.
    shortable, easy_to_borrow: it may be sold short, and there are shares to borrow for it.
    increment: quantities are multiples of it; None where the broker does not say.
    least: the smallest quantity of an order; None where the broker does not say.
    """

    symbol: Symbol
    name: str
    status: str
    tradable: bool
    fractionable: bool
    shortable: bool = True
    easy_to_borrow: bool = True
    increment: Decimal | None = None
    least: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """A point in which the journal and the broker disagree.

    `what` is `cash`, a symbol, or `order ID`. A side is None where it has no such thing; an order has `note` alone.
    """

    what: str
    journal: Decimal | None
    broker: Decimal | None
    note: str = ""

    @property
    def amount(self) -> Decimal | None:
        """The broker's figure less the journal's; None for an order."""
        if self.journal is None and self.broker is None:
            return None
        return (self.broker or Decimal(0)) - (self.journal or Decimal(0))
