"""An order and its life, as a table of legal moves: anything not in the table is a bug and raises.

The ids that make orders exactly-once, and what can be read from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from engine.domain.market import Symbol
from engine.errors import InvariantBroken


class Side(StrEnum):
    """The direction of an order."""

    BUY = "BUY"
    SELL = "SELL"


class OrderState(StrEnum):
    """The state of an order."""

    INTENDED = "intended"
    SUBMITTING = "submitting"
    UNKNOWN = "unknown"
    ACKNOWLEDGED = "acknowledged"
    PARTIALLY_FILLED = "partially filled"
    FILLED = "filled"
    CANCELED = "canceled"
    EXPIRED = "expired"
    REJECTED = "rejected"


S = OrderState
MOVES: Mapping[OrderState, frozenset[OrderState]] = {
    S.INTENDED: frozenset({S.SUBMITTING, S.CANCELED, S.EXPIRED}),
    # A broker may answer a POST with any of these, or not at all.
    S.SUBMITTING: frozenset(
        {S.UNKNOWN, S.ACKNOWLEDGED, S.PARTIALLY_FILLED, S.FILLED, S.CANCELED, S.EXPIRED, S.REJECTED}
    ),
    # Looked up later: it lives, it ended, or it never arrived and may be sent again under the same id.
    S.UNKNOWN: frozenset(
        {S.SUBMITTING, S.ACKNOWLEDGED, S.PARTIALLY_FILLED, S.FILLED, S.CANCELED, S.EXPIRED, S.REJECTED}
    ),
    S.ACKNOWLEDGED: frozenset({S.PARTIALLY_FILLED, S.FILLED, S.CANCELED, S.EXPIRED, S.REJECTED}),
    S.PARTIALLY_FILLED: frozenset({S.PARTIALLY_FILLED, S.FILLED, S.CANCELED, S.EXPIRED}),
    S.FILLED: frozenset(),
    S.CANCELED: frozenset(),
    S.EXPIRED: frozenset(),
    S.REJECTED: frozenset(),
}
"""From each state, the states that may follow. Canceled and expired orders may carry fills."""
del S


def is_final(state: OrderState) -> bool:
    """True where no state can follow."""
    return not MOVES[state]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A market order for the next open. Buys go by notional, sales by quantity: one of the two is set.

    id: exactly once, see engine.domain.order.
    symbol, side: what is traded.
    session: session that its decision rests on.
    quantity: shares, 9 decimals.
    notional: quote currency, 2 decimals, costs included.
    reason: the sizing rule that it rests on.
    state: present state.
    book: owner whose book is traded; empty where the desk has one book only.
    """

    id: str
    symbol: Symbol
    side: Side
    session: date
    quantity: Decimal | None = None
    notional: Decimal | None = None
    reason: str = ""
    state: OrderState = OrderState.INTENDED
    book: str = ""

    def __post_init__(self) -> None:
        if (self.quantity is None) == (self.notional is None):
            raise InvariantBroken(f"order {self.id} needs a quantity or a notional, and only one of them")

    def moved(self, state: OrderState) -> Order:
        """The order in its next state; raises InvariantBroken for a move that is not in MOVES."""
        if state not in MOVES[self.state]:
            raise InvariantBroken(f"order {self.id} cannot go from {self.state} to {state}")
        # Spelled out: dataclasses.replace takes twice as long, and a backtest moves every order three times.
        return Order(
            id=self.id,
            symbol=self.symbol,
            side=self.side,
            session=self.session,
            quantity=self.quantity,
            notional=self.notional,
            reason=self.reason,
            state=state,
            book=self.book,
        )


@dataclass(frozen=True, slots=True)
class OrderSize:
    """A size as an operator names it: shares or, with `money`, an amount in the quote currency."""

    number: Decimal
    money: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """An executed trade.

    order_id: its order.
    symbol, side: what was traded.
    session: in which it was executed.
    quantity: shares.
    price: per share in the quote currency, after slippage.
    fee: in the quote currency.
    reason: of its order, or the event that brought it about.
    book: as of its order.
    time: when, UTC; None in a backtest, where its session tells it.
    """

    order_id: str
    symbol: Symbol
    side: Side
    session: date
    quantity: Decimal
    price: Decimal
    fee: Decimal = Decimal(0)
    reason: str = ""
    book: str = ""
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class OrderUpdate:
    """The state of an order by its broker; `detail` is the reason of a rejection."""

    order_id: str
    state: OrderState
    filled_quantity: Decimal = Decimal(0)
    detail: str = ""


def order_id(
    desk: str, session: date, cycle: int, symbol: Symbol, side: Side, *, book: str = "", attempt: int = 1
) -> str:
    """The id that makes an order exactly-once: the same intention always has the same id. `book` names the owner
    whose book is traded, empty where the desk has one book only."""
    traded = f"{symbol.replace('/', '')}-{book}" if book else symbol.replace("/", "")
    return f"{desk}-{session:%Y%m%d}-{cycle}-{traded}-{side.value[0]}-{attempt}"


@dataclass(frozen=True, slots=True)
class OrderName:
    """The parts of an order's id: its desk, the decision's session, the number of its cycle, and what was traded, a
    symbol with the owner whose book it is where there is one."""

    desk: str
    session: date
    cycle: int
    traded: str


_NAME = re.compile(r"(.+)-(\d{8})-(\d+)-(.+)-[BS]-\d+")


def read_order_id(order: str) -> OrderName | None:
    """The parts of an id of `order_id`; None for one that no desk has given."""
    found = _NAME.fullmatch(order)
    if found is None:
        return None
    try:
        session = date.fromisoformat(found[2])
    except ValueError:
        return None
    return OrderName(found[1], session, int(found[3]), found[4])


YOU = "you"
"""The owner of an order that the operator gives."""
DAILY = 1
"""The number of the cycle after the close; those within the next session count on from it."""
NO_CYCLE = 0
"""The number of the cycle in the id of an order that no cycle has decided."""


def own_order_id(desk: str, session: date, symbol: Symbol, side: Side, attempt: int) -> str:
    """The id of the operator's own order; `attempt` counts those of the symbol and side in a session, from 1."""
    return order_id(desk, session, NO_CYCLE, symbol, side, book=YOU, attempt=attempt)


_OWN = re.compile(rf"-{NO_CYCLE}-.+-{YOU}-[BS]-\d+")


def is_own(order: str) -> bool:
    """True for the id of the operator's own order."""
    return _OWN.search(order) is not None


_CLOSING = re.compile(r"stopped-\d{8}-(?!.*-[BS]-\d+$)")
"""Not what ends in side and attempt: that is an order, and its desk may be named `stopped`."""


def closing_order_id(session: date, symbol: Symbol) -> str:
    """The id in the fill that closes a position because its symbol stopped trading; nobody ordered it."""
    return f"stopped-{session:%Y%m%d}-{symbol}"


def is_closing(order: str) -> bool:
    """True for an id of closing_order_id."""
    return _CLOSING.match(order) is not None
