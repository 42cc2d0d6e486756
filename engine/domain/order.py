"""An order and its life, as a table of legal moves: anything not in the table is a bug and raises."""

from __future__ import annotations

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

    id: exactly once, see engine.domain.order_id.
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
