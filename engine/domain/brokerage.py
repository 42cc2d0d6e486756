"""What a broker says of an account, an order, an instrument and the time: values that any broker's words become.

Money and quantities are Decimal, times aware UTC datetimes, symbols are written as the desk writes them (BTC-USD).
What a broker says that is not known here is kept as its own word and never raises: unknown is a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from engine.domain.market import Symbol
from engine.domain.order import OrderState, Side
from engine.domain.portfolio import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAccount:
    """The account as the broker has it now. `status` is the broker's word (`ACTIVE`); `blocked` says why nothing can
    be traded, empty where trading is possible; `equity` is cash and positions as the broker values them."""

    id: str
    status: str
    blocked: str
    currency: str
    cash: Decimal
    equity: Decimal
    positions: Mapping[Symbol, Position] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOrder:
    """An order as the broker has it. `order_id` is ours (the client order id), `broker_id` the broker's; `detail` its
    words where it refused. Canceled and expired orders may carry fills."""

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
    """What moved cash or shares in an account."""

    FILL = "fill"
    DIVIDEND = "dividend"
    FEE = "fee"
    INTEREST = "interest"
    SPLIT = "split"
    TRANSFER = "transfer"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One line of the account's history.

    A fill has `side`, `quantity` (positive), `price` and `broker_id` of its order; everything else has `amount`, the
    signed change of cash, and, where shares moved, their signed change as `quantity`. `id` is the broker's and never
    comes twice. `time` is exact for fills; other kinds are often dated by the day alone. `words` is what the broker
    calls it.
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
    words: str = ""


@dataclass(frozen=True, slots=True)
class BrokerClock:
    """What time the broker has, and when its market opens and closes next."""

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
    """An instrument as the broker lists it. `fractionable`: parts of a share may be traded, and bought by amount."""

    symbol: Symbol
    name: str
    status: str
    tradable: bool
    fractionable: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """One point in which the journal and the broker disagree: `what` is `cash`, a symbol, or `order ID`; both sides
    are None where they know nothing of it (an order has `note` alone)."""

    what: str
    journal: Decimal | None
    broker: Decimal | None
    note: str = ""

    @property
    def amount(self) -> Decimal | None:
        """How much more the broker has; None for an order."""
        if self.journal is None and self.broker is None:
            return None
        return (self.broker or Decimal(0)) - (self.journal or Decimal(0))
