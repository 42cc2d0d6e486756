"""The live clock: waits for each occasion of a desk's schedule and has the work done, for as long as it is let.

What is due already when it begins is done at once. A cycle that failed for a passing reason is tried again; one within
the session that was missed (the machine slept) is left out: nothing is decided on what was so an hour ago.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta

from engine.errors import ConfigError, CredentialsRefused, InvariantBroken, PaperdeskError, UsageError
from engine.ports import Calendar, Clock
from engine.session.schedule import DAILY, Schedule, ScheduledRun, next_run

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
