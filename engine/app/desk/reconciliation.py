"""Reconciliation of the configured desk's account with its journal: compared, adopted or recovered on request.

Everything that an account knows of a desk whose journal is lost, or older than the account: its orders by their ids,
and the books that its history began with. Trades and cash flows are booked from the history afterwards, as in any run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Protocol

from engine.account.activity import session_of
from engine.account.booking import Booking, adopt, adoptions, cancel_ended_orders
from engine.account.broker_venue import claim_account
from engine.account.disagreement import BooksDisagree, EntryAwaited
from engine.account.reconciliation import ReconciliationReport
from engine.app.desk.context import DeskAccount, DeskContext, check_calendar, desk_account, desk_context
from engine.app.records.desk_journal import DeskJournal
from engine.app.research.market_data import fetch, held_symbols, load_desk
from engine.domain.brokerage import Activity, ActivityKind, BrokerOrder
from engine.domain.market import Symbol
from engine.domain.order import (
    CENT,
    DAILY,
    EXACT,
    NO_CYCLE,
    YOU,
    ZERO,
    Order,
    OrderName,
    OrderState,
    Portfolio,
    Position,
    Side,
    is_own,
    read_order_id,
)
from engine.domain.run import Adoption, RunKind, RunOutcome
from engine.errors import ConfigError, InvariantBroken
from engine.journal.entries import BoundAccount, OrderEntry, RunEntry
from engine.market.as_of import Market
from engine.services import FetchOptions, Services
from engine.session.context import run_id
from engine.settings import places

ATTEMPTS = 2
"""Questions to a broker for values that are only displayed: nobody waits long for them."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The comparison of both sides, and the error that a run would end with, None where they agree; the differences
    that were `adopted`, and the orders that were `recovered` from the account, or would be."""

    desk: str
    report: ReconciliationReport
    error: BooksDisagree | EntryAwaited | None = None
    adopted: tuple[Adoption, ...] = ()
    recovered: tuple[BrokerOrder, ...] = ()


async def reconcile(services: Services) -> Reconciled:
    """Compare journal and broker; nothing is written. Raises ConfigError for a desk without an account at a broker, and
    one whose account has orders of another desk, TryAgainLater while a run is at work, and what the broker raises."""
    async with _opened(services) as (context, account):
        return await _compared(context, account)


async def adopt_account(services: Services, reason: str, *, dry_run: bool = False) -> Reconciled:
    """Take the broker's side in every difference, recorded with its reason; nothing is written or canceled in a
    `dry_run`. Raises as `reconcile` does, BooksDisagree while a stranger's order is open or the journal lacks orders of
    this desk, EntryAwaited for trades of the desk's orders whose entries may still come, MissingData for positions
    without prices where the desk's books are opened with them."""
    async with _opened(services) as (context, account):
        await check_calendar(account.broker, context.calendar, context.session)
        found = await _compared(context, account)
        report, desk = found.report, context.desk
        own = any(one.traded for one in report.explanations.values())
        if found.error is not None and (report.recoverable or (own and isinstance(found.error, EntryAwaited))):
            raise found.error
        if dry_run:
            taken = adoptions(report, context.calendar, context.session, reason).taken
            return Reconciled(desk, report, found.error, taken)
        claim_account(places.account_file(report.account.id), desk, report.account.id)
        report = await cancel_ended_orders(account.broker, context.reconciler(account), report, desk)
        market = Market(histories={}, actions={}, news={}, filings={}, calendars={})
        if report.journal.bound is None:
            market = await _market(context, tuple(report.account.positions))
        booking = context.booking(account, run_id(desk, context.session), market)
        taken = adopt(report, booking, context.session, reason)
        after = await _compared(context, account)
        return Reconciled(desk, after.report, after.error, taken)


async def rebuild_account(services: Services, *, dry_run: bool = False) -> Reconciled:
    """Recover what the journal lacks from the account: the orders of this desk by their ids, and the books before the
    first of them where the journal is lost. Then both sides are compared, and where they agree trades and cash flows
    are booked and the books closed. Nothing is written in a `dry_run`. Raises as `adopt_account` does."""
    async with _opened(services) as (context, account):
        await check_calendar(account.broker, context.calendar, context.session)
        found = await _compared(context, account)
        report, lost = found.report, found.report.recoverable
        if not lost or dry_run:
            return Reconciled(context.desk, report, found.error, recovered=lost)
        claim_account(places.account_file(report.account.id), context.desk, report.account.id)
        held = {*report.account.positions, *(one.symbol for one in lost)}
        market = await _market(context, tuple(sorted(held)))
        booking = context.booking(account, run_id(context.desk, context.session), market)
        history: Sequence[Activity] = ()
        if report.journal.bound is None:
            first = min(name_of(one).session for one in lost)
            history = await account.broker.activities(datetime.combine(first, time(), UTC) - timedelta(days=1))
        recovery = Recovery(booking, desk=context.desk, preset=services.config.desk.preset, run_of=run_id)
        recovery.write(report, history)
        after = await _compared(context, account)
        booking.orders(after.report, context.session)
        if after.error is None:
            recovery.close(after.report, context.session)
            after = await _compared(context, account)
        return Reconciled(context.desk, replace(after.report, strange=report.strange), after.error, recovered=lost)


async def _compared(context: DeskContext, account: DeskAccount) -> Reconciled:
    """Both sides as they are now, and the error of a run that found them so."""
    report, reader = await context.reconciler(account).reconcile(), context.journal.reader
    patience = timedelta(hours=context.services.config.broker.late_entry_hours)
    since = None if reader is None else reader.awaited_since()
    error = report.error(context.desk, since=since, now=account.clock.now(), patience=patience)
    return Reconciled(context.desk, report, error)


async def _market(context: DeskContext, held: Sequence[Symbol]) -> Market:
    """The prices of what an account holds or has traded, fetched where the desk fetches from its broker."""
    services = context.services
    brings = services.broker is not None and services.broker.registration.brings_data
    if held and brings and services.config.data.refresh and services.data_folder is not None:
        await fetch(services, "bars", FetchOptions(folder=services.data_folder), held)
    return await load_desk(services, context.session, (*held_symbols(context.journal.reader), *held))


async def broker_values(services: Services, first: date, last: date) -> Mapping[date, Decimal]:
    """The account's value at each close from the first session to the last, as far as the broker has it. Raises
    ConfigError for a desk that is configured for the simulated market, and what the broker raises."""
    if services.broker is None:
        raise ConfigError("broker.kind is simulated")
    async with aclosing(services.broker.open(ATTEMPTS)) as broker:
        return await broker.equity_history(first, last)


@asynccontextmanager
async def _opened(services: Services) -> AsyncIterator[tuple[DeskContext, DeskAccount]]:
    """The desk, under its lock, and its account."""
    if services.broker is None:
        raise ConfigError(
            f"the desk {services.desk} trades on the simulated market, whose books are the journal: nothing "
            "to reconcile (broker.kind)"
        )
    async with desk_account(services, services.broker) as account:
        with DeskJournal(services.desk) as journal:
            context = desk_context(services, journal, account=account)
            with journal.locked():
                yield context, account


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
