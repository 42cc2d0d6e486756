"""The desk's live clock: its runs on a schedule, and beside them the feed of its account.

A run that is due already when the watch begins is done at once. One that failed for a passing reason is tried again; a
cycle within the session that was missed (the machine slept) is left out: nothing is decided on prices of an hour ago.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import date, datetime, timedelta

from engine.app.desk_context import Finished
from engine.app.desk_journal import DeskJournal
from engine.app.market_data import held_symbols
from engine.app.notification import notify_of, run_and_notify
from engine.app.runs import interrupted_cycle, is_decided, run_intraday
from engine.clock import SyncedClock
from engine.domain.live import FeedMessage
from engine.domain.market import is_crypto
from engine.errors import ConfigError, CredentialsRefused, InvariantBroken, PaperdeskError, UsageError
from engine.market.live_prices import LivePrices
from engine.messages.events import Noticed, Publish
from engine.ports import Broker, Calendar, Clock, LanguageModel
from engine.services import Services
from engine.session.desk_context import DeskRunResult
from engine.session.schedule import DAILY, Schedule, ScheduledRun, next_run

Hear = Callable[[FeedMessage], None]
Through = Callable[[LanguageModel], LanguageModel]
TakeTurn = Callable[[Callable[[Through], Awaitable[None]]], Awaitable[None]]

LOOKS = 0.5
"""Seconds between two looks at a local broker's clock, which may run at any speed."""
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
    return services.broker is not None and services.broker.is_real_time


async def _at_once(work: Callable[[Through], Awaitable[None]]) -> None:
    await work(lambda model: model)


class DeskWatch:
    """Watches over the configured desk."""

    def __init__(
        self,
        services: Services,
        publish: Publish,
        hear: Hear = lambda heard: None,
        take_turn: TakeTurn = _at_once,
    ) -> None:
        """`publish` is told what runs do, and what the watch has to say as Noticed; `hear` what the feed tells.
        `take_turn` has a cycle run when nothing else does, its models asked through what it gives."""
        self._services = services
        self._publish = publish
        self._hear = hear
        self._take_turn = take_turn
        self._clock: Clock = services.clock
        self._prices = LivePrices()
        self._failed: tuple[date | None, str] = None, ""
        """The session and the words of the last failure: a cycle that is tried again tells them once."""

    async def run(self) -> None:
        """Watches until it is cancelled. Raises UsageError for a desk without symbols, and what only a person can
        mend (FOR_A_PERSON)."""
        symbols = self._services.symbols
        if not symbols:
            raise UsageError("the desk has no symbols; set desk.symbols in the configuration")
        if self._services.config.watch.every and not _is_real_time(self._services):
            self._say("warning", NO_CYCLES_WITHIN)
        calendar = self._services.desk_calendar(symbols)
        async with self._time() as sleep:
            feed = asyncio.create_task(self._follow())
            watch = Watch(calendar, desk_schedule(self._services), self._clock, self._work, self._say, sleep)
            try:
                await watch.run()
            finally:
                feed.cancel()
                await asyncio.gather(feed, return_exceptions=True)

    @asynccontextmanager
    async def _time(self) -> AsyncIterator[Sleep]:
        """The desk's clock, set by the broker's again at every look where that is the desk's time."""
        service = self._services.broker
        if service is None or not self._services.goes_by_broker:
            yield asyncio.sleep
            return
        broker, clock = service.open(), SyncedClock(self._services.clock)
        look = LOOKS if service.is_local else None

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(seconds if look is None else min(seconds, look))
            await self._set(clock, broker)

        try:
            clock.sync((await broker.clock()).now)
            self._clock = clock
            yield sleep
        finally:
            await broker.aclose()

    async def _set(self, clock: SyncedClock, broker: Broker) -> None:
        with suppress(PaperdeskError):  # it goes on as it went; whoever trades asks again and is told
            clock.sync((await broker.clock()).now)

    async def _work(self, occasion: ScheduledRun) -> None:
        async def work(through: Through) -> None:
            await self._cycle(occasion, through)

        await self._take_turn(work)

    async def _cycle(self, occasion: ScheduledRun, through: Through) -> None:
        if occasion.within_session and self._is_decided(occasion.session):
            await self._within(occasion.session, occasion.number, through)
            return
        # A close that was not decided yet comes first: its own cycle takes the place of the one within the session.
        known = self._failed[1] if self._failed[0] == occasion.session else None
        try:
            done = await run_and_notify(self._services, publish=self._publish, through=through, known=known)
        except PaperdeskError as error:
            self._failed = occasion.session, str(error)
            raise
        if isinstance(done, Finished):
            self._say("info", f"{done.session} is decided already ({done.run})")
        with DeskJournal(self._services.desk) as journal:
            number = interrupted_cycle(journal.reader, done.session)
        if number is not None:
            await self._within(done.session, number, through)

    async def _within(self, session: date, number: int, through: Through) -> None:
        async def run(hear: Publish, journal: DeskJournal) -> DeskRunResult | Finished:
            return await run_intraday(
                self._services, session, number, hear, through=through, prices=self._prices, journal=journal
            )

        await notify_of(self._services, run, self._publish, session=session)

    def _is_decided(self, session: date) -> bool:
        with DeskJournal(self._services.desk) as journal:
            return is_decided(journal.reader, journal.desk, session)

    async def _follow(self) -> None:
        """Listens for as long as the desk watches; a feed that cannot be had is said, and the desk works without."""
        try:
            given = self._services
            feed = None if given.broker is None else given.broker.open_feed(self._clock)
            if feed is not None:
                with DeskJournal(given.desk) as journal:
                    symbols = dict.fromkeys((*given.symbols, *held_symbols(journal.reader)))
                await feed.follow(tuple(symbols), self._take)
        except PaperdeskError as error:
            self._say("error", f"no live prices and news: {error}")

    def _take(self, heard: FeedMessage) -> None:
        self._prices.update(heard)
        self._hear(heard)

    def _say(self, level: str, text: str) -> None:
        self._publish(Noticed("", self._clock.now(), level, text))


FOR_A_PERSON = (UsageError, ConfigError, CredentialsRefused, InvariantBroken)
"""Errors that no waiting changes: watching ends with them."""
RETRY = timedelta(minutes=5)
TARDY = timedelta(minutes=2)
"""Largest delay with which a cycle within the session begins."""
_NAP = 20.0
"""Seconds after which the clock is looked at again: it may have been set, and the machine may have slept."""

Work = Callable[[ScheduledRun], Awaitable[None]]
Sleep = Callable[[float], Awaitable[None]]
Say = Callable[[str, str], None]
"""A level (`info`, `warning`, `error`) and a line."""


class Watch:
    """One desk's live clock."""

    def __init__(
        self, calendar: Calendar, schedule: Schedule, clock: Clock, work: Work, say: Say, sleep: Sleep = asyncio.sleep
    ) -> None:
        """`work` is idempotent: it raises PaperdeskError, and may be called again for the same occasion."""
        self._calendar = calendar
        self._schedule = schedule
        self._clock = clock
        self._work = work
        self._say = say
        self._sleep = sleep

    async def run(self) -> None:
        """Watches until it is cancelled. Raises what only a person can mend (FOR_A_PERSON)."""
        since = self._clock.now()
        await self._do(ScheduledRun(since, self._calendar.last_closed(since), DAILY))
        while True:
            occasion = self._passed_over(since)
            if occasion is None:
                occasion = next_run(self._calendar, self._schedule, self._clock.now())
                self._say("info", f"next: {in_words(occasion)}")
                await self._until(occasion)
            since = occasion.at
            if occasion.within_session and self._clock.now() - occasion.at > TARDY:
                self._say("warning", f"missed, and left out: {in_words(occasion)}")
                continue
            await self._do(occasion)

    def _passed_over(self, since: datetime) -> ScheduledRun | None:
        """The latest cycle after a close that came due since a moment while nobody looked."""
        closes, latest = replace(self._schedule, every=None), None
        while (occasion := next_run(self._calendar, closes, since)).at <= self._clock.now():
            latest, since = occasion, occasion.at
        return latest

    async def _do(self, occasion: ScheduledRun) -> None:
        """Has an occasion's work done; the one after a close is tried again until the next is due."""
        while True:
            try:
                await self._work(occasion)
            except FOR_A_PERSON:
                raise
            except PaperdeskError as error:
                self._say("error", str(error))
            else:
                return
            following = next_run(self._calendar, self._schedule, self._clock.now())
            again = self._clock.now() + RETRY
            if occasion.within_session or again >= following.at:
                return
            await self._until(ScheduledRun(again, occasion.session, occasion.number))

    async def _until(self, occasion: ScheduledRun) -> None:
        while (left := (occasion.at - self._clock.now()).total_seconds()) > 0:
            await self._sleep(min(left, _NAP))


def in_words(occasion: ScheduledRun) -> str:
    """An occasion as a person reads it."""
    kind = f"cycle {occasion.number} within the session after" if occasion.within_session else "the cycle for"
    return f"{kind} {occasion.session}, at {occasion.at:%Y-%m-%d %H:%M} UTC"
