"""The recorded history of the demo desk: sixty sessions that were decided before anybody opens it.

The archive beside this module holds the desk's own journal and memory; `python -m tests.demo_history` records it anew,
and has the rule by which its window was chosen. A demo desk that was never opened begins with a copy of both.

The time of a demo desk: its clock stands at the end of a session, and only an operator moves it on to the next.

The session is derived from the journal: the last one that a run has begun to decide, at the earliest the one after the
recorded history (engine.app.desk.demo_history). What is due at it is decided without moving the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from engine.app.records.desk_journal import DeskJournal
from engine.clock import SyncedClock
from engine.domain.run import RunKind, RunOutcome
from engine.market.trading_hours import completed_at, session_after
from engine.messages.commands import CONTROLS, ChangeMemory
from engine.program_files import broken_installation
from engine.settings import places

if TYPE_CHECKING:
    from engine.journal.reader import JournalReader
    from engine.services import Services


SYMBOLS = ("ORVL", "BXWD", "HLXM", "WRNN-USD")
FIRST, LAST, DUE = date(2026, 7, 1), date(2026, 9, 24), date(2026, 9, 25)
"""The first and the last session that are decided, and the one after them, which is due."""
ARCHIVE = Path(__file__).with_name("demo_history.zip")
JOURNAL, MEMORY, TABLE = "journal.db", "memory", "sessions.json"
"""Names in the archive, whose last file is the journal. With it comes the table of the exchange's sessions, which takes
a second to make."""


def is_demo(services: Services) -> bool:
    """True for a desk on the simulated market with the demo market's data."""
    return services.broker is None and services.data.folder is None


def begin(services: Services) -> None:
    """Give a demo desk that was never opened its history, where its settings are those that it was recorded with.
    Raises as `copy_history` does."""
    if not places.desk_journal(services.desk).exists() and is_demo(services) and not other_settings(services):
        copy_history(services.desk)


def copy_history(desk: str) -> None:
    """Give a desk that has neither journal nor memory the recorded ones. Raises ConfigError or DataError where nothing
    can be written, InvariantBroken where the archive is missing."""
    journal, memory, table = places.desk_journal(desk), places.desk_memory(desk), places.session_table()
    if journal.exists() or journal.with_name(f"{journal.name}-wal").exists():
        return
    import shutil
    from zipfile import ZipFile

    from filelock import FileLock

    if not ARCHIVE.is_file():
        raise broken_installation([str(ARCHIVE)])
    part = journal.with_name(f"{journal.name}.history")
    try:
        places.make_folder(journal.parent)
        with FileLock(part.with_suffix(".lock")), ZipFile(ARCHIVE) as archive:
            if journal.exists():  # another process was quicker
                return
            # The journal comes last: a process that was killed between the two renamings has left it there alone.
            if not (part / JOURNAL).exists() or (part / MEMORY).exists():
                if memory.exists():  # of a desk whose journal was removed
                    return
                shutil.rmtree(part, ignore_errors=True)
                archive.extractall(part)
                places.make_folder(table.parent)
                if not table.exists():
                    (part / TABLE).replace(table)
                (part / MEMORY).rename(memory)
            (part / JOURNAL).rename(journal)
            shutil.rmtree(part)
    except OSError as error:
        raise places.unusable(journal, error) from error


def other_settings(services: Services) -> str:
    """The settings, with commas, in which a demo desk is not the one that was recorded; empty for none."""
    from engine.settings.config import Config

    config, recorded = services.config, Config()
    differ = {
        "desk.symbols": services.symbols != SYMBOLS,
        "desk.preset": config.desk.preset != recorded.desk.preset,
        "desk.cash": config.desk.cash != recorded.desk.cash,
        "data.demo_seed": config.data.demo_seed != recorded.data.demo_seed,
        "memory.embedder": config.memory.embedder != recorded.memory.embedder,
    }
    return ", ".join(name for name, differs in differ.items() if differs)


def empty_beginning(services: Services) -> str:
    """The reason why a demo desk that never ran begins without the history; empty where it has it, and for others."""
    other = other_settings(services) if is_demo(services) else ""
    return (
        f"the demo's recorded history has other settings ({other}): this desk starts empty, on {DUE}" if other else ""
    )


DECIDED = (RunOutcome.DONE, RunOutcome.WAITING)
TICK = timedelta(seconds=1)
MOMENT = timedelta(milliseconds=1)
"""Least time between two commands: what they did is told apart by it."""


def session_reached(reader: JournalReader | None) -> date:
    """The session at whose end the clock of a demo desk stands. Raises what JournalReader raises."""
    begun = None if reader is None else reader.last_session([RunKind.DAILY, RunKind.SYMBOL])
    return max(begun or DUE, DUE)


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
