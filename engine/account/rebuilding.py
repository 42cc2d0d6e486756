"""Everything that an account knows of a desk whose journal is lost, or older than the account: its orders by their ids,
and the books that its history began with. Trades and cash flows are booked from the history afterwards, as in any run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from engine.account.activity import session_of
from engine.domain.brokerage import Activity, ActivityKind, BrokerAccount, BrokerOrder
from engine.domain.order import Order, OrderState, Side
from engine.domain.order_id import OrderName, read_order_id
from engine.domain.portfolio import CENT, EXACT, ZERO, Portfolio, Position
from engine.errors import InvariantBroken
from engine.ports import Calendar

RECOVERED = "recovered from the account"


@dataclass(frozen=True, slots=True)
class Beginning:
    """The books of the session that the first order was decided on, and the entries of the account's history before
    them."""

    session: date
    portfolio: Portfolio
    before: tuple[Activity, ...]


def name_of(theirs: BrokerOrder) -> OrderName:
    """The parts of the id of an order of the desk."""
    name = read_order_id(theirs.order_id)
    if name is None:
        raise InvariantBroken(f"{theirs.order_id} is no order of a desk")
    return name


def recovered_order(theirs: BrokerOrder) -> Order:
    """An order of the desk as it was intended."""
    return Order(
        id=theirs.order_id,
        symbol=theirs.symbol,
        side=theirs.side,
        session=name_of(theirs).session,
        quantity=theirs.quantity if theirs.notional is None else None,
        notional=theirs.notional,
        reason=RECOVERED,
        state=OrderState.INTENDED,
    )


def beginning(
    orders: Iterable[BrokerOrder], account: BrokerAccount, history: Sequence[Activity], calendar: Calendar
) -> Beginning:
    """The books before the first of some orders was sent: those of now without everything that came later."""
    first = min(name_of(one).session for one in orders)
    every = {one.id: one for one in history}.values()
    later = [one for one in every if session_of(calendar, one.time, None) > first]
    cash, shares = account.cash, {symbol: held.quantity for symbol, held in account.positions.items()}
    for one in later:
        moved, paid = _moved(one)
        cash -= paid
        if one.symbol:
            shares[one.symbol] = EXACT.subtract(shares.get(one.symbol, ZERO), moved)
    cost = {symbol: held.average_cost for symbol, held in account.positions.items()}
    held = {symbol: Position(quantity, cost.get(symbol, ZERO)) for symbol, quantity in shares.items() if quantity}
    return Beginning(first, Portfolio(cash.quantize(CENT), held), tuple(one for one in every if one not in later))


def _moved(one: Activity) -> tuple[Decimal, Decimal]:
    """The signed changes of shares and of cash, rounded to the cent, of an entry."""
    if one.kind is not ActivityKind.FILL:
        return one.quantity, one.amount
    paid = EXACT.multiply(one.quantity, one.price or ZERO).quantize(CENT)
    return (one.quantity, -paid) if one.side is Side.BUY else (-one.quantity, paid)
