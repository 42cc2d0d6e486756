"""Everything that an account knows of a desk whose journal is lost, or older than the account: its orders by their ids,
and the books that its history began with. Trades and cash flows are booked from the history afterwards, as in any run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from decimal import Decimal
from typing import Protocol

from engine.account.activity import session_of
from engine.account.booking import Booking
from engine.account.reconciliation import ReconciliationReport
from engine.domain.brokerage import Activity, ActivityKind, BrokerOrder
from engine.domain.market import Symbol
from engine.domain.order import DAILY, NO_CYCLE, YOU, Order, OrderName, OrderState, Side, is_own, read_order_id
from engine.domain.portfolio import CENT, EXACT, ZERO, Portfolio, Position
from engine.domain.run import RunKind, RunOutcome
from engine.errors import InvariantBroken
from engine.journal.entries import BoundAccount, OrderEntry, RunEntry

RECOVERED = "recovered from the account"


class NameRun(Protocol):
    """Names a desk's run (engine.session.context.run_id)."""

    def __call__(self, desk: str, session: date, number: int = ..., *, only: Symbol | None = None) -> str:
        """The id of a run."""


def name_of(theirs: BrokerOrder) -> OrderName:
    """The parts of the id of an order of the desk."""
    name = read_order_id(theirs.order_id)
    if name is None:
        raise InvariantBroken(f"{theirs.order_id} is no order of a desk")
    return name


@dataclass(frozen=True, slots=True)
class Recovery:
    """The writer of what an account knows and the journal lacks. An order after a close belongs to a run of its symbol
    that is done: the daily run of its session decides the others, as far as it still can.

    booking: of the run that it is written for
    desk, preset: the desk's name, and the preset that its runs are of
    run_of: names runs
    """

    booking: Booking
    _: KW_ONLY
    desk: str
    preset: str
    run_of: NameRun

    def write(self, report: ReconciliationReport, history: Sequence[Activity]) -> None:
        """Write the orders that are recoverable, and before them the books that a lost journal began with; `history`
        is the account's since the session of the first of them. Raises MissingData for a position without a price."""
        with self.booking.journal.together():
            if report.journal.bound is None:
                self._open(report, history)
            for theirs in report.recoverable:
                self._order(theirs)

    def close(self, report: ReconciliationReport, session: date) -> None:
        """Book what is new, and close the books through the last completed session."""
        self.booking.book(report)
        books = report.journal.books
        assert books is not None  # they are open
        self.booking.close(self.booking.due(books, session))

    def _open(self, report: ReconciliationReport, history: Sequence[Activity]) -> None:
        """The books before the first order was sent: those of now without everything that came later."""
        account, calendar = report.account, self.booking.calendar
        first = min(name_of(one).session for one in report.recoverable)
        every = {one.id: one for one in history}.values()
        later = [one for one in every if session_of(calendar, one.time, None) > first]
        cash, shares = account.cash, {symbol: held.quantity for symbol, held in account.positions.items()}
        moves = [(one.symbol, *_moved(one)) for one in later]
        for symbol, moved, paid in (*moves, *(_unentered(one, later) for one in report.recoverable)):
            cash -= paid
            if symbol:
                shares[symbol] = EXACT.subtract(shares.get(symbol, ZERO), moved)
        cost = {symbol: held.average_cost for symbol, held in account.positions.items()}
        held = {symbol: Position(quantity, cost.get(symbol, ZERO)) for symbol, quantity in shares.items() if quantity}
        self.booking.opened_with(
            Portfolio(cash.quantize(CENT), held),
            first,
            BoundAccount(self.booking.kind, account.id, calendar.closes_at(first)),
            [one for one in every if one not in later],
            RECOVERED,
        )

    def _order(self, theirs: BrokerOrder) -> None:
        booking, name, own = self.booking, name_of(theirs), is_own(theirs.order_id)
        order = booking.reader.order(theirs.order_id)
        time = theirs.submitted_at or booking.clock.now()
        if order is None:
            order = Order(
                id=theirs.order_id,
                symbol=theirs.symbol,
                side=theirs.side,
                session=name.session,
                quantity=theirs.quantity if theirs.notional is None else None,
                notional=theirs.notional,
                reason=RECOVERED,
            )
            run = self._run(theirs, name, own=own)
            entry = OrderEntry(
                order=order, run=run, desk=self.desk, cycle=name.cycle, time=time, owner=YOU if own else ""
            )
            booking.journal.order_intended(entry)
        booking.journal.order_moved(order.moved(OrderState.SUBMITTING), time)
        booking.journal.broker_order(order.id, theirs.broker_id)

    def _run(self, theirs: BrokerOrder, name: OrderName, *, own: bool) -> str:
        """The run that a recovered order belongs to, which is done."""
        booking, now = self.booking, self.booking.clock.now()
        if own:
            kind, run = RunKind.ORDER, f"{RunKind.ORDER}-{theirs.order_id}"
        elif name.cycle == DAILY:
            kind, run = RunKind.SYMBOL, self.run_of(self.desk, name.session, only=theirs.symbol)
        else:
            kind, run = RunKind.INTRADAY, self.run_of(self.desk, name.session, name.cycle)
        begun = booking.reader.find_run(run)
        if begun is None:
            entry = RunEntry(
                id=run,
                kind=kind,
                name=self.preset,
                started=theirs.submitted_at or now,
                label=RECOVERED,
                symbols=(theirs.symbol,),
                session=name.session,
                cycle=NO_CYCLE if own else name.cycle,
            )
            booking.journal.run_started(entry)
        if begun is None or begun.outcome not in (RunOutcome.DONE, RunOutcome.SKIPPED):
            booking.journal.run_finished(run, RunOutcome.DONE, now, detail=RECOVERED)
        return run


def _moved(one: Activity) -> tuple[Decimal, Decimal]:
    """The signed changes of shares and of cash, rounded to the cent, of an entry."""
    if one.kind is not ActivityKind.FILL:
        return one.quantity, one.amount
    return _traded(one.side, one.quantity, EXACT.multiply(one.quantity, one.price or ZERO))


def _unentered(order: BrokerOrder, history: Iterable[Activity]) -> tuple[Symbol, Decimal, Decimal]:
    """The signed changes of shares and of cash that an order has traded and that no entry has yet."""
    entered = [one for one in history if one.broker_id == order.broker_id and one.kind is ActivityKind.FILL]
    shares = EXACT.subtract(order.filled_quantity, sum((one.quantity for one in entered), ZERO))
    paid = EXACT.multiply(order.filled_quantity, order.filled_average_price or ZERO)
    known = sum((EXACT.multiply(one.quantity, one.price or ZERO) for one in entered), ZERO)
    return order.symbol, *_traded(order.side, shares, EXACT.subtract(paid, known) if shares else ZERO)


def _traded(side: Side | None, shares: Decimal, paid: Decimal) -> tuple[Decimal, Decimal]:
    amount = paid.quantize(CENT)
    return (shares, -amount) if side is Side.BUY else (-shares, amount)
