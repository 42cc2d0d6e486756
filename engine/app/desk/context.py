"""The context of a desk's run: the session that it is for, derived once, and its account at a broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from engine.account.booking import Booking
from engine.account.reconciliation import Reconciler
from engine.app.records.desk_journal import DeskJournal
from engine.app.research.market_data import known_actions
from engine.broker_registration import BrokerRegistration, BrokerService
from engine.clock import OffsetClock, SyncedClock
from engine.domain.market import Exchanges, Symbol
from engine.domain.run import RunOutcome
from engine.errors import NO_DESK_SYMBOLS, ConfigError, PaperdeskError, StaleData, UsageError
from engine.execution.frozen_symbols import FrozenSymbol, frozen_in
from engine.journal.reader import JournalReader
from engine.market.as_of import Market
from engine.market.trading_hours import AroundTheClock, session_to_decide
from engine.ports import Broker, Calendar, Clock
from engine.services import Services
from engine.session.context import run_error, run_id

ANY_SHARE = "AAPL"
"""A share that every broker of shares has, for questions of a desk that names none."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A run of the session that was done before, or that has decided the one symbol that is asked for: nothing was
    decided and nothing ordered. `frozen` are the symbols that it had left out."""

    run: str
    session: date
    frozen: tuple[FrozenSymbol, ...] = ()

    @property
    def error(self) -> PaperdeskError | None:
        """The error that the run ended with because of them; None for none."""
        return run_error(self.frozen, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskContext:
    """A desk and one of its sessions.

    services: everything from outside.
    journal: the desk's journal, for the length of one command.
    calendar: the calendar that the desk decides on.
    session: the session to decide on.
    clock: the desk's time: this machine's, or the account's.
    account: the account at a broker; None on the simulated market.
    only: the one symbol that is to be decided; None for all of them.
    """

    services: Services
    journal: DeskJournal
    calendar: Calendar
    session: date
    clock: Clock
    account: DeskAccount | None = None
    only: Symbol | None = None

    @property
    def desk(self) -> str:
        """The desk's name."""
        return self.services.desk

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols that the desk decides on."""
        return self.services.symbols

    def finished(self) -> Finished | None:
        """The finished daily run of the session, or the run that has decided the one symbol, where there is one. The
        symbol's own run is one only once it has come to its end."""
        reader = self.journal.reader
        if reader is None:
            return None
        if self.only is not None:
            return self._finished_alone(reader, self.only)
        run = reader.finished_run(self.session)
        return None if run is None else Finished(run, self.session, frozen_in(reader, run))

    def _finished_alone(self, reader: JournalReader, symbol: Symbol) -> Finished | None:
        own = run_id(self.desk, self.session, only=symbol)
        made = reader.decisions(symbol=symbol, first=self.session, last=self.session)
        recovered = reader.find_run(own)
        if not made:
            done = recovered is not None and recovered.outcome is RunOutcome.DONE
            return Finished(own, self.session) if done else None
        run = made[0].key.run
        goes_on = run == own and reader.run(own).outcome is not RunOutcome.DONE
        return None if goes_on else Finished(run, self.session)

    def reconciler(self, account: DeskAccount) -> Reconciler:
        """The reconciler of the desk's journal with its account."""
        return Reconciler(
            account.broker,
            self.journal.reader,
            desk=self.desk,
            calendar=self.calendar,
            clock=account.clock,
            pause=asyncio.sleep,
            actions=partial(known_actions, self.services, self.session),
        )

    def booking(
        self,
        account: DeskAccount,
        run: str,
        market: Market,
        *,
        ahead: bool = False,
        canceled: frozenset[str] = frozenset(),
    ) -> Booking:
        """The booking of a run's findings in the desk's journal, `ahead` of the run or by it; `canceled` are orders
        that the operator has asked the broker to cancel."""
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
            ahead=ahead,
            canceled=canceled,
        )


def desk_context(
    services: Services,
    journal: DeskJournal,
    requested: date | None = None,
    *,
    account: DeskAccount | None = None,
    due: date | None = None,
    only: Symbol | None = None,
) -> DeskContext:
    """The context of the requested session, or of the last completed one; `due` is that session where it was derived
    before. Raises UsageError for a day that is no completed session, a desk without symbols, or one without the one
    symbol that is asked for, and ConfigError for symbols that its broker does not trade."""
    if not services.symbols:
        raise UsageError(NO_DESK_SYMBOLS)
    if only is not None and only not in services.symbols:
        few = ", ".join(services.symbols[:10]) + (" ..." if len(services.symbols) > 10 else "")
        raise UsageError(f"the desk {services.desk} does not decide {only}: its symbols are {few}")
    calendar = services.desk_calendar(services.symbols)
    if services.broker is not None:
        check_exchange(services.broker.registration, services.config.exchanges, services.symbols)
    clock = services.clock if account is None else account.clock
    if journal.reader is not None:
        _refuse_earlier(services, journal.reader, calendar, clock, at_broker=account is not None)
    session = due or session_to_decide(calendar, services.symbols, requested, clock.now())
    return DeskContext(
        services=services,
        journal=journal,
        calendar=calendar,
        session=session,
        clock=clock,
        account=account,
        only=only,
    )


def _refuse_earlier(
    services: Services, reader: JournalReader, calendar: Calendar, clock: Clock, *, at_broker: bool
) -> None:
    """Raises ConfigError for a clock that stands before the books: it was set back, and nothing may be dated by it."""
    closed, now = reader.closed_session(), clock.now()
    if closed is None or now >= calendar.closes_at(closed):
        return
    whose = "the broker's clock" if at_broker else "this machine's clock"
    raise ConfigError(
        f"{whose} shows {now:%Y-%m-%d %H:%M} UTC, and the books of {services.desk} are closed up to {closed}: it "
        "was set back; set it right and run again"
    )


def check_exchange(broker: BrokerRegistration[Any], exchanges: Exchanges, symbols: Sequence[Symbol]) -> None:
    """Raises ConfigError naming the first symbol that a broker does not trade."""
    for symbol in symbols:
        exchange = exchanges.of(symbol)
        if not broker.trades(exchange):
            raise ConfigError(
                f"desk.symbols: {symbol} trades {exchange.described}, and {broker.title} has shares on "
                f'{broker.calendar} and crypto, in {broker.currency}: take it off, or set broker.kind = "simulated"'
            )


def check_one_currency(services: Services, reader: JournalReader, held: Sequence[Symbol]) -> None:
    """Raises ConfigError where a desk's books were in another currency than its symbols are, or hold shares of another
    exchange: its cash would change its meaning."""
    exchanges, symbols = services.config.exchanges, services.symbols
    last = reader.latest_run()
    now = exchanges.of_portfolio(symbols)
    before = now if last is None or not last.symbols else exchanges.of_portfolio(last.symbols)
    if before.currency != now.currency:
        raise ConfigError(
            f"desk.symbols: the desk {services.desk} has its books in {before.currency}, and {symbols[0]} trades "
            f"{now.described}: give that portfolio a desk of its own (desk.name)"
        )
    try:
        exchanges.of_portfolio((*symbols, *held))
    except UsageError as error:
        raise ConfigError(f"the desk {services.desk} holds what its symbols cannot stand beside: {error}") from None


APART = timedelta(minutes=5)
"""Largest difference between this machine's clock and the broker's."""
AROUND = timedelta(days=7)
"""Days before and after a session on which the two calendars are compared."""


@dataclass(frozen=True, slots=True)
class DeskAccount:
    """A broker that can be asked, and the clock that the desk goes by."""

    kind: str
    broker: Broker
    clock: Clock


@asynccontextmanager
async def desk_account(services: Services, service: BrokerService) -> AsyncIterator[DeskAccount]:
    """The configured account, open. Raises ConfigError for addresses and clocks, CredentialsRefused for keys, and what
    the broker raises."""
    async with aclosing(service.open()) as broker:
        yield DeskAccount(service.config.kind, broker, await agreed_clock(services, broker))


def desk_clock(services: Services) -> Clock:
    """The clock of an open desk: this machine's, or one synchronized with the broker's as it is found now, where it
    answers. Raises ConfigError and CredentialsRefused."""
    if services.broker is None or not services.goes_by_broker:
        return services.clock
    clock, theirs = SyncedClock(services.clock), services.broker.time()
    if theirs is not None:
        clock.sync(theirs)
    return clock


async def agreed_clock(services: Services, broker: Broker) -> Clock:
    """The broker's clock: orders go by its closes, and minutes around one decide for which session they are. Raises
    ConfigError where this machine's is configured and wrong."""
    machine = services.clock
    theirs = (await broker.clock()).now
    ahead = machine.now() - theirs
    if services.config.broker.clock == "machine" and abs(ahead) > APART:
        raise ConfigError(
            f"this machine's clock shows {machine.now():%Y-%m-%d %H:%M:%S} UTC and the broker's "
            f"{theirs:%Y-%m-%d %H:%M:%S}: set the machine's clock, or for a sandbox broker.clock to broker"
        )
    return OffsetClock(machine, -ahead)


def refuse_bound(reader: JournalReader, desk: str) -> None:
    """Raises ConfigError for the simulated market where the desk trades in an account."""
    bound = reader.account()
    if bound is not None:
        raise ConfigError(
            f"the desk {desk} trades in the account {bound.account}: set broker.kind to {bound.kind}, or give the "
            "simulated market a desk of its own (desk.name)"
        )


async def check_calendar(broker: Broker, calendar: Calendar, session: date) -> None:
    """Raises StaleData where the broker's sessions around one, or their closing times, are not the desk's."""
    if isinstance(calendar, AroundTheClock):
        return
    first, last = session - AROUND, session + AROUND
    theirs = {one.session: one.closes_at for one in await broker.session_hours(first, last)}
    ours = {day: calendar.closes_at(day) for day in calendar.sessions(first, last)}
    for day in sorted(ours.keys() | theirs.keys()):
        if ours.get(day) != theirs.get(day):
            mine, other = (
                "no session" if closes is None else f"a close at {closes:%H:%M} UTC"
                for closes in (ours.get(day), theirs.get(day))
            )
            raise StaleData(
                f"the calendars disagree on {day}: {calendar.name} has {mine} and the broker {other}; upgrade "
                "exchange_calendars, or wait until the day has passed"
            )
