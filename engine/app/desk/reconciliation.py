"""Reconciliation of the configured desk's account with its journal: compared, adopted or recovered on request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from engine.account.booking import adopt, adoptions, cancel_ended_orders
from engine.account.broker_venue import claim_account
from engine.account.disagreement import BooksDisagree, EntryAwaited
from engine.account.rebuilding import Recovery, name_of
from engine.account.reconciliation import ReconciliationReport
from engine.app.desk.context import DeskAccount, DeskContext, check_calendar, desk_account, desk_context
from engine.app.records.desk_journal import DeskJournal
from engine.app.research.market_data import fetch, held_symbols, load_desk
from engine.domain.brokerage import Activity, BrokerOrder
from engine.domain.market import Symbol
from engine.domain.run import Adoption
from engine.errors import ConfigError
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
            "is to be reconciled (broker.kind)"
        )
    async with desk_account(services, services.broker) as account:
        with DeskJournal(services.desk) as journal:
            context = desk_context(services, journal, account=account)
            with journal.locked():
                yield context, account
