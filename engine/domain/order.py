"""An order and its life, as a table of legal moves: anything not in the table is a bug and raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum

from engine.domain.market import Symbol
from engine.errors import InvariantBroken


class Side(StrEnum):
    """Which way an order goes."""

    BUY = "BUY"
    SELL = "SELL"


class OrderState(StrEnum):
    """Where an order stands."""

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
    """Whether nothing can follow a state."""
    return not MOVES[state]


def order_id(
    desk: str, session: date, cycle: int, symbol: Symbol, side: Side, *, book: str = "", attempt: int = 1
) -> str:
    """The id that makes an order exactly-once: the same intention always has the same id. `book` names the owner
    whose book is traded, empty where the desk has one book only."""
    traded = f"{symbol.replace('/', '')}-{book}" if book else symbol.replace("/", "")
    return f"{desk}-{session:%Y%m%d}-{cycle}-{traded}-{side.value[0]}-{attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A market order for the open after `session` (the decision's session).

    Either `quantity` (shares, 9 decimals) or `notional` (quote currency, 2 decimals, costs included) is set: buys go
    by notional, sells by quantity. `book` names the owner whose book is traded, empty where the desk has one
    book only.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """A trade that happened: `price` per share after slippage, `fee` in the quote currency, `session` where it
    filled, `book` as of its order."""

    order_id: str
    symbol: Symbol
    side: Side
    session: date
    quantity: Decimal
    price: Decimal
    fee: Decimal = Decimal(0)
    reason: str = ""
    book: str = ""


@dataclass(frozen=True, slots=True)
class OrderUpdate:
    """How the broker says an order stands; `detail` is its reason for a refusal."""

    order_id: str
    state: OrderState
    filled_quantity: Decimal = Decimal(0)
    detail: str = ""
