"""Schedule of a watching desk: after every close, and, where its schedule says so, within the session.

Source: TradingGPT §3 [G7]. Times are aware UTC datetimes; sessions are the desk's calendar's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from engine.domain.order import DAILY
from engine.market.trading_hours import AroundTheClock, session_after
from engine.ports import Calendar

_LOOK_AHEAD = timedelta(days=12)  # no market rests longer


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times at which a desk works. `after_close`: time after a close by which its data is expected; `every`: time
    between two cycles within a session, None for none; `crypto`: a session is complete only once its UTC day is over as
    well."""

    after_close: timedelta = timedelta(minutes=20)
    every: timedelta | None = None
    crypto: bool = False


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """A moment to work at: `session` is the last completed one by then, `number` the cycle's."""

    at: datetime
    session: date
    number: int

    @property
    def within_session(self) -> bool:
        """True where the market is open then."""
        return self.number != DAILY


def next_run(calendar: Calendar, schedule: Schedule, after: datetime) -> ScheduledRun:
    """The first scheduled run later than a moment. Raises MissingData where the next session is not known yet."""
    first = calendar.last_closed(after)
    session_after(calendar, first)  # a calendar that ends says so
    sessions = calendar.sessions(first, first + _LOOK_AHEAD)
    coming: list[ScheduledRun] = []
    for before, session in zip([None, *sessions], sessions, strict=False):
        coming += _runs(calendar, schedule, before, session)
    return min((run for run in coming if run.at > after), key=lambda run: run.at)


def _runs(calendar: Calendar, schedule: Schedule, before: date | None, session: date) -> Iterator[ScheduledRun]:
    """The runs of one session: within it, resting on the one before, and after it."""
    closes = calendar.closes_at(session)
    complete = max(closes, AroundTheClock().closes_at(session)) if schedule.crypto else closes
    yield ScheduledRun(complete + schedule.after_close, session, DAILY)
    if schedule.every is None or before is None:
        return
    number, at = DAILY + 1, calendar.opens_at(session) + schedule.every
    while at < closes:
        yield ScheduledRun(at, before, number)
        number, at = number + 1, at + schedule.every
