"""The journal's side and the broker's, point by point: cash to the cent, positions exactly, orders one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from engine.domain.brokerage import BrokerAccount, BrokerOrder, Difference
from engine.domain.order import Order, is_final
from engine.domain.portfolio import CENT, ZERO, Portfolio
from engine.errors import DeskHalted

CASH = "cash"


class BooksDisagree(DeskHalted):
    """Journal and broker disagree; `differences` holds both sides of every point."""

    def __init__(self, message: str, differences: Sequence[Difference]) -> None:
        super().__init__(message)
        self.differences = tuple(differences)


def compare(
    journal: Portfolio, account: BrokerAccount, foreign: Iterable[Difference], fresh: int
) -> tuple[tuple[Difference, ...], Decimal]:
    """Every difference, and the rest of cash that rounding explains: less than a cent for each of the `fresh` lines
    that were not compared before. `foreign` are orders and trades that the journal cannot place."""
    cash = journal.money(account.cash)
    rest = cash - journal.cash
    found: list[Difference] = []
    if abs(rest) > CENT * fresh:
        found.append(Difference(CASH, journal.cash, account.cash))
        rest = ZERO
    for symbol in sorted(journal.positions.keys() | account.positions.keys()):
        theirs = account.positions.get(symbol)
        ours, holds = journal.quantity(symbol), ZERO if theirs is None else theirs.quantity
        if ours != holds:
            found.append(Difference(symbol, ours, holds))
    return (*found, *foreign), rest


def foreign_orders(open_orders: Iterable[BrokerOrder], orders: Mapping[str, Order]) -> list[Difference]:
    """Orders that stand open at the broker and should not."""
    found = []
    for order in open_orders:
        ours = orders.get(order.order_id)
        amount = f"{order.quantity} shares" if order.quantity is not None else f"{order.notional} of money"
        if ours is None:
            note = f"open at the broker and not this desk's: {order.side} {order.symbol}, {amount}"
        elif is_final(ours.state):
            note = f"open at the broker and {ours.state} in the journal"
        else:
            continue
        found.append(Difference(f"order {order.order_id}", None, None, note))
    return found


TAKE_ITS_SIDE = "see `paperdesk reconcile`, and take the broker's side with `paperdesk reconcile --adopt`"


def disagreement(desk: str, differences: Sequence[Difference], advice: str = TAKE_ITS_SIDE) -> BooksDisagree:
    """The error that stops a desk."""
    points = ", ".join(one.what for one in differences[:4]) + (", ..." if len(differences) > 4 else "")
    return BooksDisagree(
        f"the broker's account and the journal of {desk} disagree ({points}): nothing was traded; {advice}",
        differences,
    )
