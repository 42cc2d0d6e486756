"""The time of a demo desk: its clock stands at the end of a session, and only an operator moves it on to the next.

The session is derived from the journal: the last one that a run has begun to decide, at the earliest the one after the
recorded history (engine.app.desk.demo_history). What is due at it is decided without moving the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from engine.app.desk import demo_history
from engine.app.desk.demo_history import is_demo
from engine.app.records.desk_journal import DeskJournal
from engine.clock import SyncedClock
from engine.domain.run import RunKind, RunOutcome
from engine.market.trading_hours import completed_at, session_after
from engine.messages.commands import CONTROLS, ChangeMemory

if TYPE_CHECKING:
    from engine.journal.reader import JournalReader
    from engine.services import Services

DECIDED = (RunOutcome.DONE, RunOutcome.WAITING)
TICK = timedelta(seconds=1)
MOMENT = timedelta(milliseconds=1)
"""Least time between two commands: what they did is told apart by it."""


def session_reached(reader: JournalReader | None) -> date:
    """The session at whose end the clock of a demo desk stands. Raises what JournalReader raises."""
    begun = None if reader is None else reader.last_session([RunKind.DAILY, RunKind.SYMBOL])
    return max(begun or demo_history.DUE, demo_history.DUE)


def due_session(reader: JournalReader | None) -> date | None:
    """That session where the demo desk has not decided it, else None. Raises what JournalReader raises."""
    session = session_reached(reader)
    decided = None if reader is None else reader.last_session([RunKind.DAILY], DECIDED)
    return None if decided == session else session


def by_desk_time(services: Services) -> Services:
    """The services by the time of a desk without a broker's clock: a demo desk's own, else this machine's. Raises what
    JournalReader raises."""
    if not is_demo(services) or isinstance(services.clock, DemoTime):
        return services
    return replace(services, clock=DemoTime(services))


def _recorded(reader: JournalReader | None) -> Iterator[datetime]:
    """When the last runs and the last command were, whichever programs carried them out: an order is sent after its
    approval, and approved after it was given."""
    if reader is None:
        return
    for run in (reader.latest_run(), reader.latest_run(RunKind.ORDER)):
        if run is not None:
            yield run.ended or run.started
    if (command := reader.last_command(*CONTROLS, ChangeMemory)) is not None:
        yield command[0] + MOMENT


class DemoTime:
    """The clock of a demo desk: it ticks on from the end of a session, or from what was recorded last since then, and
    never comes to the end of the next."""

    def __init__(self, services: Services, session: date | None = None) -> None:
        """`services` are by this machine's clock; without a session it is the one that the desk has come to."""
        self._symbols = services.symbols
        self._calendar = services.desk_calendar(services.symbols)
        self._clock = SyncedClock(services.clock)
        with DeskJournal(services.desk) as journal:
            self._stand(session or session_reached(journal.reader), journal.reader)

    def now(self) -> datetime:
        """The present moment of the desk, UTC."""
        return min(self._clock.now(), self._until)

    def follow(self, reader: JournalReader | None) -> None:
        """Go to the session that the desk has come to, whoever has moved it on."""
        if (reached := session_reached(reader)) > self.session:
            self._stand(reached, reader)

    def go_on(self, reader: JournalReader | None) -> None:
        """Go to the session that is due, else to the one after it."""
        self._stand(due_session(reader) or session_after(self._calendar, session_reached(reader)), reader)

    def _stand(self, session: date, reader: JournalReader | None) -> None:
        self.session = session
        days = session, session_after(self._calendar, session)
        end, following = (completed_at(self._calendar, self._symbols, day) for day in days)
        self._until = following - TICK
        self._clock.sync(max([end, *(time for time in _recorded(reader) if end < time < following)]))
