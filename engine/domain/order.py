"""An order and its life, as a table of legal moves: anything not in the table is a bug and raises.

The ids that make orders exactly-once, and what can be read from them.

Cash and positions in Decimal; applying a fill, a split or a dividend returns a new portfolio.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal
from enum import StrEnum
from functools import lru_cache

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

    @property
    def size(self) -> Decimal:
        """Its quantity, or its notional."""
        size = self.notional if self.quantity is None else self.quantity
        assert size is not None  # one of them is set
        return size

    def after(self, *states: OrderState) -> OrderState:
        """The last of the states that follow; raises InvariantBroken for a move that is not in MOVES."""
        present = self.state
        for state in states:
            if state not in MOVES[present]:
                raise InvariantBroken(f"order {self.id} cannot go from {present} to {state}")
            present = state
        return present

    def moved(self, *states: OrderState) -> Order:
        """The order after the states that follow; raises as `after` does."""
        # Spelled out: dataclasses.replace takes twice as long, and a backtest moves every order.
        return Order(
            id=self.id,
            symbol=self.symbol,
            side=self.side,
            session=self.session,
            quantity=self.quantity,
            notional=self.notional,
            reason=self.reason,
            state=self.after(*states),
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
    return f"{desk}-{_compact(session)}-{cycle}-{traded}-{side.value[0]}-{attempt}"


@lru_cache(maxsize=16)
def _compact(session: date) -> str:
    return session.isoformat().replace("-", "")


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


ZERO = Decimal(0)
CENT = Decimal("0.01")
SHARE_STEP = Decimal("0.000000001")
"""Smallest part of a share: nine decimals, as brokers count them."""
EXACT = Context(prec=60)
"""Context for products and sums of money.

A share count of nine decimals times a price of nine decimals has more digits than the default context keeps, and would
be rounded twice.
"""


@dataclass(frozen=True, slots=True)
class Position:
    """Shares held (negative: short) and their average cost per share, fees excluded."""

    quantity: Decimal
    average_cost: Decimal


@dataclass(frozen=True, slots=True)
class Portfolio:
    """Cash in the quote currency and positions by symbol; a flat position is absent.

    `money_step` is the unit to which every amount of cash is rounded: a cent, or finer where a paper's convention
    computes without rounding.
    """

    cash: Decimal
    positions: Mapping[Symbol, Position] = field(default_factory=dict)
    money_step: Decimal = CENT

    def quantity(self, symbol: Symbol) -> Decimal:
        """Shares held of a symbol; zero where none."""
        position = self.positions.get(symbol)
        return ZERO if position is None else position.quantity

    def money(self, amount: Decimal) -> Decimal:
        """An amount rounded to the money step, half to even."""
        return amount.quantize(self.money_step, ROUND_HALF_EVEN, EXACT)

    def market_value(self, prices: Mapping[Symbol, Decimal]) -> Decimal:
        """Value of all positions at given prices, rounded once."""
        total, added = ZERO, EXACT.fma
        for symbol, position in self.positions.items():
            total = added(position.quantity, prices[symbol], total)
        return self.money(total)

    def short_value(self, prices: Mapping[Symbol, Decimal]) -> Decimal:
        """Value of the shares that are sold short at given prices, above zero where there are any."""
        short = [(symbol, held.quantity) for symbol, held in self.positions.items() if held.quantity < 0]
        return self.money(sum((EXACT.multiply(-quantity, prices[symbol]) for symbol, quantity in short), ZERO))

    def value(self, prices: Mapping[Symbol, Decimal]) -> Decimal:
        """Cash plus positions at given prices."""
        return self.cash + self.market_value(prices)

    def filled(self, fill: Fill) -> Portfolio:
        """The portfolio after a trade: cash moves by the amount and the fee, each rounded to the money step."""
        amount, fee = self.money(EXACT.multiply(fill.quantity, fill.price)), self.money(fill.fee)
        if fill.side is Side.BUY:
            return self._with(fill.symbol, fill.quantity, fill.price, self.cash - amount - fee)
        return self._with(fill.symbol, -fill.quantity, fill.price, self.cash + amount - fee)

    def split(
        self, symbol: Symbol, ratio: Decimal, price: Decimal, step: Decimal = SHARE_STEP
    ) -> tuple[Portfolio, Decimal]:
        """The portfolio after a split of `ratio` new shares per old one, and the cash in lieu of fractions.

        Parts below the share step are paid in cash at `price` (the first price after the split), by us where the
        position is short. A position of which no share is left is removed.
        """
        position = self.positions.get(symbol)
        if position is None:
            return self, ZERO
        if ratio <= 0:
            raise InvariantBroken(f"a split of {symbol} by {ratio} is impossible")
        exact = EXACT.multiply(position.quantity, ratio)
        whole = exact.quantize(step, ROUND_DOWN, EXACT)
        paid = self.money(EXACT.multiply(EXACT.subtract(exact, whole), price))
        held = dict(self.positions)
        if whole:
            held[symbol] = Position(whole, position.average_cost / ratio)
        else:
            del held[symbol]
        return Portfolio(self.cash + paid, held, self.money_step), paid

    def dividend(self, symbol: Symbol, per_share: Decimal) -> tuple[Portfolio, Decimal]:
        """The portfolio after a cash dividend (a short position pays it), and the amount."""
        amount = self.money(EXACT.multiply(self.quantity(symbol), per_share))
        return Portfolio(self.cash + amount, self.positions, self.money_step), amount

    def _with(self, symbol: Symbol, change: Decimal, price: Decimal, cash: Decimal) -> Portfolio:
        held = dict(self.positions)
        before = held.get(symbol)
        if before is None:
            held[symbol] = Position(change, price)
            return Portfolio(cash, held, self.money_step)
        after = before.quantity + change
        if after == 0:
            del held[symbol]
        elif before.quantity * change > 0:
            cost = before.average_cost * before.quantity + price * change
            held[symbol] = Position(after, cost / after)
        elif after * before.quantity > 0:
            held[symbol] = Position(after, before.average_cost)
        else:
            held[symbol] = Position(after, price)
        return Portfolio(cash, held, self.money_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionContext:
    """A book's position in a symbol at the moment of the decision, in the quote currency.

    shares: held, negative when short.
    price: of the moment, or the last close.
    average_cost: per share; zero where nothing is held.
    cash: net of what open buys may still take, and of the value of short positions, whose proceeds are no money to
        spend.
    value: of the whole book.
    gains_in_a_row: sessions in a row, up to the last, that closed higher.
    shorts: value of all shares of the book that are sold short, or that open sales may sell short.
    """

    shares: Decimal
    price: Decimal
    average_cost: Decimal
    cash: Decimal
    value: Decimal
    gains_in_a_row: int = 0
    shorts: Decimal = ZERO

    @property
    def cash_fraction(self) -> Decimal:
        """Cash over the portfolio's value; zero where the value is."""
        return self.cash / self.value if self.value > 0 else ZERO

    @property
    def weight(self) -> Decimal:
        """Value of the shares over the portfolio's; zero where that is."""
        return self.shares * self.price / self.value if self.value > 0 else ZERO

    @property
    def unrealized(self) -> Decimal:
        """Profit that is not realized yet, in the quote currency."""
        return (self.price - self.average_cost) * self.shares

    @property
    def unrealized_fraction(self) -> Decimal:
        """Unrealized gain over average cost, as a fraction; zero where nothing is held."""
        return self.price / self.average_cost - 1 if self.shares and self.average_cost > 0 else ZERO
