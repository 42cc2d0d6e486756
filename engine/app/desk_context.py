"""The context of a desk's run: the session that it is for, derived once and passed on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date

from engine.account.booking import Booking
from engine.account.reconciliation import Reconciler
from engine.app.desk_account import DeskAccount
from engine.app.desk_journal import DeskJournal
from engine.domain.market import Symbol
from engine.errors import UsageError
from engine.market.as_of import Market
from engine.market.trading_hours import session_to_decide
from engine.ports import Calendar, Clock
from engine.services import Services


@dataclass(frozen=True, slots=True)
class Finished:
    """A run of the session that was done before: nothing was decided and nothing ordered."""

    run: str
    session: date


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskContext:
    """A desk and one of its sessions.

    services: everything from outside.
    journal: the desk's journal, for the length of one command.
    calendar: the calendar that the desk decides on.
    session: the session to decide on.
    clock: the desk's time: this machine's, or the account's.
    account: the account at a broker; None on the simulated market.
    """

    services: Services
    journal: DeskJournal
    calendar: Calendar
    session: date
    clock: Clock
    account: DeskAccount | None = None

    @property
    def desk(self) -> str:
        """The desk's name."""
        return self.services.desk

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols that the desk decides on."""
        return self.services.symbols

    def finished(self) -> Finished | None:
        """The finished daily run of the session, where there is one."""
        reader = self.journal.reader
        run = None if reader is None else reader.finished_run(self.session)
        return None if run is None else Finished(run, self.session)

    def reconciler(self, account: DeskAccount) -> Reconciler:
        """The reconciler of the desk's journal with its account."""
        return Reconciler(
            account.broker,
            self.journal.reader,
            desk=self.desk,
            calendar=self.calendar,
            clock=account.clock,
            pause=asyncio.sleep,
        )

    def booking(self, account: DeskAccount, run: str, market: Market) -> Booking:
        """The booking of a run's findings in the desk's journal."""
        journal = self.journal.writer
        assert self.journal.reader is not None  # the writer has created the journal
        return Booking(
            journal,
            self.journal.reader,
            run=run,
            kind=account.kind,
            market=market,
            calendar=self.calendar,
            clock=account.clock,
        )


def desk_context(
    services: Services,
    journal: DeskJournal,
    requested: date | None = None,
    *,
    account: DeskAccount | None = None,
    due: date | None = None,
) -> DeskContext:
    """The context of the requested session, or of the last completed one; `due` is that session where it was derived
    before. Raises UsageError for a day that is no completed session, or a desk without symbols."""
    if not services.symbols:
        raise UsageError("the desk has no symbols; set desk.symbols in the configuration")
    calendar = services.desk_calendar(services.symbols)
    clock = services.clock if account is None else account.clock
    session = due or session_to_decide(calendar, services.symbols, requested, clock.now())
    return DeskContext(
        services=services, journal=journal, calendar=calendar, session=session, clock=clock, account=account
    )
