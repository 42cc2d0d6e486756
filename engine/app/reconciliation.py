"""Reconciliation of the configured desk's account with its journal: compared, and adopted on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from engine import places
from engine.account.booking import adopt, cancel_ended_orders
from engine.account.claim import claim_account
from engine.account.reconciliation import ReconciliationReport
from engine.app.desk_context import DeskAccount, DeskContext, check_calendar, desk_account, desk_context
from engine.app.desk_journal import DeskJournal
from engine.app.market_data import fetch, held_symbols, load_desk
from engine.domain.market import Symbol
from engine.domain.run import Adoption
from engine.errors import ConfigError
from engine.market.as_of import Market
from engine.services import FetchOptions, Services
from engine.session.context import run_id

ATTEMPTS = 2
"""Questions to a broker for values that are only displayed: nobody waits long for them."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The comparison of both sides (`report.differences` is empty where they agree), and the `adopted` differences."""

    desk: str
    report: ReconciliationReport
    adopted: tuple[Adoption, ...] = ()


async def reconcile(services: Services) -> Reconciled:
    """Compare journal and broker; nothing is written. Raises ConfigError for a desk without an account at a broker,
    TryAgainLater while a run is at work, and what the broker raises."""
    desk = services.desk
    async with _account(services) as account:
        with DeskJournal(desk) as journal:
            context = desk_context(services, journal, account=account)
            with journal.locked():
                return Reconciled(desk, await context.reconciler(account).reconcile())


async def adopt_account(services: Services, reason: str) -> Reconciled:
    """Take the broker's side in every difference, recorded with its reason. Raises as `reconcile` does,
    BooksDisagree while a stranger's order is open, MissingData for positions without prices where the desk's books are
    opened with them."""
    desk = services.desk
    async with _account(services) as account:
        with DeskJournal(desk) as journal:
            context = desk_context(services, journal, account=account)
            calendar, session = context.calendar, context.session
            await check_calendar(account.broker, calendar, session)
            with journal.locked():
                return await _adopted(context, account, reason)


async def _adopted(context: DeskContext, account: DeskAccount, reason: str) -> Reconciled:
    desk, calendar, session, journal = context.desk, context.calendar, context.session, context.journal
    reconciler = context.reconciler(account)
    report = await reconciler.reconcile()
    claim_account(places.account_file(report.account.id), desk, report.account.id)
    report = await cancel_ended_orders(account.broker, reconciler, report, desk)
    market = Market(histories={}, actions={}, news={}, filings={}, calendars={})
    if report.journal.bound is None:
        await _fetch_held(context.services, tuple(report.account.positions))
        market = await load_desk(context.services, session, (*held_symbols(journal.reader), *report.account.positions))
    booking = context.booking(account, run_id(desk, session), market)
    return Reconciled(desk, report, adopt(report, booking, calendar, session, reason))


async def _fetch_held(services: Services, held: Sequence[Symbol]) -> None:
    """Fetch the prices of what an account holds, where the desk fetches from its broker."""
    brings = services.broker is not None and services.broker.registration.brings_data
    if held and brings and services.config.data.refresh and services.data_folder is not None:
        await fetch(services, "bars", FetchOptions(folder=services.data_folder), held)


async def broker_values(services: Services, first: date, last: date) -> Mapping[date, Decimal]:
    """The account's value at each close from the first session to the last, as far as the broker has it. Raises
    ConfigError for a desk that is configured for the simulated market, and what the broker raises."""
    if services.broker is None:
        raise ConfigError("broker.kind is simulated")
    async with aclosing(services.broker.open(ATTEMPTS)) as broker:
        return await broker.equity_history(first, last)


def _account(services: Services) -> AbstractAsyncContextManager[DeskAccount]:
    if services.broker is None:
        raise ConfigError(
            f"the desk {services.desk} trades on the simulated market, whose books are the journal: nothing "
            "is to be reconciled (broker.kind)"
        )
    return desk_account(services, services.broker)
