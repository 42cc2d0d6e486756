"""The desk's live clock: its runs on a schedule, and beside them the feed of its account.

A run that is due already when the watch begins is done at once. One that failed for a passing reason is tried again; a
cycle within the session that was missed (the machine slept) is left out: nothing is decided on prices of an hour ago.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial

from engine.app.desk.booking_queue import BookingQueue, book_fills
from engine.app.desk.context import Finished
from engine.app.desk.demo_history import by_desk_time
from engine.app.desk.market import prices_now
from engine.app.desk.notification import CycleRequest, CycleRunner, notify_of, run_here
from engine.app.desk.run import interrupted_cycle, is_decided
from engine.app.models.models import Gate
from engine.app.records.desk_journal import DeskJournal
from engine.app.research.market_data import held_symbols
from engine.clock import SyncedClock
from engine.domain.live import FeedMessage
from engine.domain.market import is_crypto
from engine.domain.order import DAILY
from engine.errors import (
    NO_DESK_SYMBOLS,
    ConfigError,
    CredentialsRefused,
    DeskHalted,
    InvariantBroken,
    PaperdeskError,
    UsageError,
)
from engine.execution.controls import halt, halt_of, pause_of
from engine.market.live_prices import LivePrices
from engine.market.trading_hours import is_open
from engine.messages.events import CycleFailed, Noticed, Publish
from engine.ports import Calendar, Clock
from engine.services import Services
from engine.session.context import DeskRunResult
from engine.session.schedule import Schedule, ScheduledRun, next_run
from engine.settings import places

OnMessage = Callable[[FeedMessage], None]
TakeTurn = Callable[[Callable[[Gate], Awaitable[None]]], Awaitable[None]]
"""A way to have work done as a cycle, once no other is at work; raises what the work raises."""
Work = Callable[[ScheduledRun], Awaitable[None]]
Sleep = Callable[[float], Awaitable[None]]
Report = Callable[[str, str], None]
"""A listener for a level (`info`, `warning`, `error`) and a line."""

LOCAL_CHECKS = 0.5
"""Seconds between two readings of a local broker's clock, which may run at any speed."""
FOR_A_PERSON = (UsageError, ConfigError, CredentialsRefused, InvariantBroken)
"""Errors that no waiting changes: watching ends with them."""
RETRY = timedelta(minutes=5)
TARDY = timedelta(minutes=2)
"""Largest delay with which a cycle within the session begins."""
PAUSE_CHECKS = 2.0
"""Seconds between two looks at whether a pause is over."""
_NAP = 20.0
"""Seconds after which the clock is read again: it may have been set, and the machine may have slept."""
NO_CYCLES_WITHIN = (
    "watch.every needs a broker (broker.kind = alpaca): on the simulated market orders wait for the next open, so the "
    "desk works once a day"
)


def desk_schedule(services: Services) -> Schedule:
    """The schedule of the configured desk; only at a broker also within a session."""
    watch = services.config.watch
    every = watch.every if _is_real_time(services) else 0
    return Schedule(
        timedelta(minutes=watch.after_close),
        timedelta(minutes=every) if every else None,
        any(is_crypto(symbol) for symbol in services.symbols),
    )


def _is_real_time(services: Services) -> bool:
    return services.broker is not None and services.broker.registration.is_real_time


async def _open_gate() -> None:
    """A gate that holds nothing up."""


async def _at_once(work: Callable[[Gate], Awaitable[None]]) -> None:
    await work(_open_gate)


class DeskWatch:
    """The watch over the configured desk."""

    def __init__(
        self,
        services: Services,
        publish: Publish,
        on_message: OnMessage = lambda message: None,
        take_turn: TakeTurn = _at_once,
        run_cycle: CycleRunner = run_here,
        *,
        books: bool = False,
    ) -> None:
        """`publish` gets the events of runs, and the watch's own as Noticed; `on_message` those of the feed.
        `take_turn` has a cycle run when nothing else does, and gives its gate. With `books` what the feed says of
        orders is booked at once, never beside a cycle."""
        self._services = services = by_desk_time(services)
        self._publish = publish
        self._on_message = on_message
        self._take_turn = take_turn
        self._run_cycle = run_cycle
        self._clock: Clock = services.clock
        self._turn = asyncio.Lock()
        book = partial(book_fills, services, publish)
        self._bookings = BookingQueue(book, self._notice, self._turn) if books else None
        self._prices = LivePrices()
        self._failed: tuple[date | None, str] = None, ""
        """The session and the text of the last failure: a cycle that is tried again notifies of it once."""
        self._off = set[str]()
        """The prices off the broker's that were published."""
        self._cut_short = False
        """True where a pause kept the last run after a close from deciding, also where it is over by now."""

    async def run(self) -> None:
        """Watch until it is cancelled. Raises UsageError for a desk without symbols, and what only a person can mend
        (FOR_A_PERSON)."""
        services = self._services
        if not services.symbols:
            raise UsageError(NO_DESK_SYMBOLS)
        if services.config.watch.every and not _is_real_time(services):
            self._notice("warning", NO_CYCLES_WITHIN)
        calendar = services.desk_calendar(services.symbols)
        async with self._time() as sleep:
            beside = [asyncio.create_task(self._follow()), asyncio.create_task(self._check(calendar, sleep))]
            try:
                watch = Watch(
                    calendar=calendar,
                    schedule=desk_schedule(services),
                    clock=self._clock,
                    work=self._work,
                    report=self._report,
                    sleep=sleep,
                    paused=self._is_paused,
                    cut_short=lambda: self._cut_short,
                )
                await watch.run()
            finally:
                for task in beside:
                    task.cancel()
                if self._bookings is not None:
                    self._bookings.drop()
                await asyncio.gather(*beside, return_exceptions=True)

    @asynccontextmanager
    async def _time(self) -> AsyncIterator[Sleep]:
        """The desk's clock, synchronized with the broker's at every reading where that is the desk's time."""
        service = self._services.broker
        if service is None or not self._services.goes_by_broker:
            yield asyncio.sleep
            return
        async with aclosing(service.open()) as broker:
            clock = SyncedClock(self._services.clock)

            async def sleep(seconds: float) -> None:
                await asyncio.sleep(min(seconds, LOCAL_CHECKS) if service.settings.is_local else seconds)
                with suppress(PaperdeskError):  # it goes on as it went; whoever trades asks again
                    clock.sync((await broker.clock()).now)

            clock.sync((await broker.clock()).now)
            self._clock = clock
            yield sleep

    async def _work(self, scheduled: ScheduledRun) -> None:
        async with self._turn:
            await self._take_turn(partial(self._cycle, scheduled))

    def _is_paused(self) -> bool:
        return pause_of(places.desk_journal(self._services.desk)) is not None

    async def _cycle(self, scheduled: ScheduledRun, gate: Gate) -> None:
        if scheduled.within_session and self._is_paused():
            self._notice("warning", f"skipped while paused: {described(scheduled)}")
            return
        if scheduled.within_session and self._is_decided(scheduled.session):
            await self._within(scheduled.session, scheduled.number, gate)
            return
        # A close that was not decided yet comes first: its own cycle takes the place of the one within the session.
        last_error = self._failed[1] if self._failed[0] == scheduled.session else None
        try:
            request = CycleRequest(notify=True, last_error=last_error)
            done = await self._run_cycle(self._services, request, self._publish, gate)
        except PaperdeskError as error:
            self._failed = scheduled.session, str(error)
            raise
        self._cut_short = isinstance(done, DeskRunResult) and done.paused is not None
        if isinstance(done, Finished):
            self._notice("info", f"{done.session} is already decided ({done.run})")
        if done.error is not None:
            self._notice("error", f"{done.error} (code {done.error.exit_code})")
        with DeskJournal(self._services.desk) as journal:
            number = interrupted_cycle(journal.reader, done.session)
        if number is not None and not self._is_paused():
            await self._within(done.session, number, gate)

    async def _within(self, session: date, number: int, gate: Gate) -> None:
        request = CycleRequest(notify=True, within=(session, number), prices=self._prices)
        await self._run_cycle(self._services, request, self._publish, gate)

    def _is_decided(self, session: date) -> bool:
        with DeskJournal(self._services.desk) as journal:
            return is_decided(journal.reader, journal.desk, session)

    async def _follow(self) -> None:
        """Follow the feed for as long as the desk watches; without one that can be had, a notice, and the desk works
        on."""
        services = self._services
        try:
            feed = None if services.broker is None else services.broker.open_feed(self._clock)
            if feed is not None:
                with DeskJournal(services.desk) as journal:
                    symbols = dict.fromkeys((*services.symbols, *held_symbols(journal.reader)))
                await feed.follow(tuple(symbols), self._take)
        except PaperdeskError as error:
            self._notice("error", f"no live prices and news: {error}")

    async def _check(self, calendar: Calendar, sleep: Sleep) -> None:
        """Compare positions and cash of the account with the journal, every so often while its market is open; where
        they disagree the desk is halted, and an operator is notified once."""
        every = timedelta(minutes=self._services.config.watch.check_every)
        if self._services.broker is None or not every:
            return
        due = self._clock.now() + every
        while True:
            await sleep(_NAP)
            now = self._clock.now()
            if now < due:
                continue
            due = now + every
            if is_open(calendar, now) and halt_of(places.desk_journal(self._services.desk)) is None:
                async with self._turn:
                    await self.compare()

    async def compare(self) -> None:
        """Compare positions, cash and prices with the account's once, between two runs."""
        try:
            await book_fills(self._services, self._publish)
            for fault in await prices_now(self._services, partial(self._notice_once, "warning")):
                self._notice_once("error", f"frozen in the next run: {fault.text}")
        except DeskHalted as error:
            halt(places.desk_journal(self._services.desk), self._clock.now(), str(error))
            self._report("error", f"the desk is halted: {error} (code {error.exit_code})")
            problem = error

            async def failed(*given: object) -> DeskRunResult:
                raise problem

            with suppress(PaperdeskError):
                await notify_of(self._services, failed, self._publish)
        except PaperdeskError as error:
            self._notice("warning", f"the account could not be reconciled: {error} (code {error.exit_code})")

    def _take(self, message: FeedMessage) -> None:
        self._prices.update(message)
        if self._bookings is not None:
            self._bookings.on_message(message)
        self._on_message(message)

    def _report(self, level: str, text: str) -> None:
        """Publish a line of the schedule, whose errors are those of its cycles."""
        kind = CycleFailed if level == "error" else Noticed
        self._publish(kind("", self._clock.now(), level, text))

    def _notice(self, level: str, text: str) -> None:
        self._publish(Noticed("", self._clock.now(), level, text))

    def _notice_once(self, level: str, text: str) -> None:
        if text not in self._off:
            self._off.add(text)
            self._notice(level, text)


@dataclass(slots=True, kw_only=True)
class Watch:
    """One desk's live clock.

    calendar: the desk's sessions.
    schedule: when runs are due.
    clock: the desk's time.
    work: does a scheduled run; idempotent, for it is called again after a PaperdeskError.
    report: hears of the next run, of missed ones and of errors.
    sleep: waits so many seconds.
    paused: True while an operator has paused the desk.
    cut_short: True where a pause kept the last run from deciding.
    """

    calendar: Calendar
    schedule: Schedule
    clock: Clock
    work: Work
    report: Report
    sleep: Sleep
    paused: Callable[[], bool] = lambda: False
    cut_short: Callable[[], bool] = lambda: False

    async def run(self) -> None:
        """Watch until it is cancelled. Raises what only a person can mend (FOR_A_PERSON)."""
        since = self.clock.now()
        await self._do(ScheduledRun(since, self.calendar.last_closed(since), DAILY))
        while True:
            scheduled = self._missed_close(since)
            if scheduled is None:
                scheduled = next_run(self.calendar, self.schedule, self.clock.now())
                self.report("info", f"next: {described(scheduled)}")
                await self._until(scheduled.at)
            since = scheduled.at
            if scheduled.within_session and self.clock.now() - scheduled.at > TARDY:
                self.report("warning", f"missed, skipped: {described(scheduled)}")
                continue
            await self._do(scheduled)

    def _missed_close(self, since: datetime) -> ScheduledRun | None:
        """The latest run after a close that came due since a moment, while the machine slept or another run worked."""
        closes, latest = replace(self.schedule, every=None), None
        while (scheduled := next_run(self.calendar, closes, since)).at <= self.clock.now():
            latest, since = scheduled, scheduled.at
        return latest

    async def _do(self, scheduled: ScheduledRun) -> None:
        """Have the work of a scheduled run done; the one after a close is tried again, after a failure and at the end
        of a pause, until the next is due."""
        while True:
            failed = False
            try:
                await self.work(scheduled)
            except FOR_A_PERSON:
                raise
            except PaperdeskError as error:
                failed = True
                self.report("error", f"{error} (code {error.exit_code})")
            if scheduled.within_session or not await self._comes_again(failed):
                return

    async def _comes_again(self, failed: bool) -> bool:
        """Wait for what keeps a run from its end: some time after a failure, the end of a pause; false where nothing
        does, or the next run is due first."""
        following = next_run(self.calendar, self.schedule, self.clock.now()).at
        if failed:
            again = self.clock.now() + RETRY
            if again < following:
                await self._until(again)
            return again < following
        if not self.paused():
            return self.cut_short()
        self.report("warning", "the desk is paused: it decides after `paperdesk resume`")
        while self.paused() and self.clock.now() < following:
            await self.sleep(PAUSE_CHECKS)
        return not self.paused()

    async def _until(self, moment: datetime) -> None:
        while (left := (moment - self.clock.now()).total_seconds()) > 0:
            await self.sleep(min(left, _NAP))


def described(scheduled: ScheduledRun) -> str:
    """A scheduled run in words."""
    within = f"cycle {scheduled.number} within the session after"
    kind = within if scheduled.within_session else "the cycle for"
    return f"{kind} {scheduled.session}, at {scheduled.at:%Y-%m-%d %H:%M} UTC"
