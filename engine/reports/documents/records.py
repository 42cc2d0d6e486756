"""The records behind a document: a desk's journal, one of its runs, or a backtest's journal.

Only sqlite3 is loaded to open them, so that a command that prints a document is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.domain.run import RunKind
from engine.errors import ConfigError, MissingData, UsageError
from engine.journal.database import refuse_remains
from engine.journal.point_in_time import Within
from engine.journal.reader import JournalReader
from engine.journal.schema import LIVE, TEST
from engine.settings import places

if TYPE_CHECKING:
    from engine.journal.entries import RunEntry
    from engine.reports.documents.row_json import Row

SCHEMA = 1
"""The version of the documents of a desk's records."""

LIGHT = "light"
"""The mark of a light run among the further results of its entry."""
LIGHT_HOLDS = "settings, returns, trades and fingerprint alone: no books, decisions, orders, memory or baselines"

At = int | date | Within | None
"""A point in a journal: an event's number, a session that was settled and decided, a point within one, or (None)
now."""

PROBED = 30
"""The number of latest backtests that are searched for one that has what is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """An open journal and the part of it that a document covers.

    reader: None for a desk that has not run.
    kind: all runs of a desk, one of them, or a backtest.
    run: the run that narrows a reader, None for all runs of a desk.
    note: why these are not the desk's own records, where they were not named; else empty.
    at: the point up to which they are read, None for all of them.
    """

    reader: JournalReader | None
    desk: str
    kind: Literal["desk", "daily", "backtest"] = "desk"
    run: str | None = None
    note: str = ""
    at: At = None

    @property
    def is_backtest(self) -> bool:
        """True for the records of a backtest, a journal of its own."""
        return self.kind == "backtest"

    @property
    def title(self) -> str:
        """The records as a person calls them."""
        name = f"desk {self.desk}"
        if self.kind != "desk":
            name = f"backtest {self.run}" if self.is_backtest else f"run {self.run} of the {name}"
        if self.at is None:
            return name
        if isinstance(self.at, Within):
            return f"{name} as of {self.at.session}, before its decisions were complete"
        return f"{name} as of {'event ' if isinstance(self.at, int) else ''}{self.at}"

    @property
    def part(self) -> str:
        """The part of a run that is shown: a backtest's warm-up is not."""
        return TEST if self.is_backtest else LIVE

    @property
    def world(self) -> str | None:
        """The run that trades and books are looked for in: a daily run's orders fill in a later run of its desk, a
        backtest is its own world."""
        return self.run if self.is_backtest else None

    @property
    def head(self) -> Row:
        """The keys that every document of the records begins with; `event` is the number of the journal's last event,
        null in a backtest, which has sessions to go by."""
        last = None if self.reader is None or self.is_backtest else self.reader.last_event()
        return {"schema": SCHEMA, "desk": self.desk, "kind": self.kind, "run": self.run, "event": last}

    @property
    def absence(self) -> str:
        """The answer where the desk has not run."""
        return f"the desk {self.desk} has not run yet: paperdesk --daily --desk {self.desk}"

    @property
    def required(self) -> JournalReader:
        """The reader. Raises MissingData for a desk that has not run."""
        if self.reader is None:
            raise MissingData(self.absence)
        return self.reader


@contextmanager
def open_records(
    desk: str, run: str | None = None, wanted: Callable[[JournalReader], bool] | None = None, *, at: At = None
) -> Iterator[Records]:
    """Open the journal of a run, or of the desk where none is named. With `wanted`, where the desk's journal has
    nothing of the kind, the latest backtest that has. Raises MissingData for an unknown run, naming the latest, and as
    `records_at` does."""
    with ExitStack() as stack:
        if run is not None:
            records = _of_run(desk, run, stack)
        else:
            reader = _opened(places.desk_journal(desk), stack)
            records = Records(reader=reader, desk=desk)
            if wanted is not None and not (reader is not None and wanted(reader)):
                records = _latest_backtest(desk, wanted, stack) or records
        yield records if at is None else stack.enter_context(records_at(records, at))


@contextmanager
def records_at(records: Records, at: int | date | Within) -> Iterator[Records]:
    """The same records as they were at a point: what was written up to an event, or up to the end of the daily run that
    decided for a session, or within that of a backtest. Raises MissingData for a point that the journal does not have,
    UsageError for an event of a backtest."""
    reader = records.required
    point = at
    if records.is_backtest:
        if isinstance(at, int):
            last = max((point.session for point in reader.equity(records.run, records.part)), default=None)
            example = "" if last is None else f", such as --at {last}"
            raise UsageError(f"the {records.title} has no event {at}: name a session{example}")
        _check_settled(records, reader, at.session if isinstance(at, Within) else at)
    elif isinstance(at, Within):
        raise UsageError(f"the {records.title} has no points within a session")
    else:
        point = _event(records, reader, at)
    with JournalReader(reader.path, at=point) as earlier:
        if records.run is not None:
            earlier.run(records.run)
        yield replace(records, reader=earlier, at=at)


def _event(records: Records, reader: JournalReader, at: int | date) -> int:
    if isinstance(at, int):
        last = reader.last_event()
        if not 0 < at <= last:
            raise MissingData(f"the {records.title} has no event {at}: its journal has those from 1 to {last}")
        return at
    event = reader.decided_event(at)
    if event is None:
        sessions = sorted({run.session for run in reader.runs() if run.session and reader.decided_event(run.session)})
        raise MissingData(f"the {records.title} did not decide for {at}: {nearest(sessions, at)}")
    return event


def _check_settled(records: Records, reader: JournalReader, session: date) -> None:
    sessions = [point.session for point in reader.equity(records.run, records.part)]
    if session not in sessions:
        raise MissingData(f"the {records.title} did not settle {session}: {nearest(sessions, session)}")


def nearest(sessions: Sequence[date], session: date) -> str:
    """The sessions before and after one that is not there, in words."""
    near = [*(day for day in sessions if day < session)][-1:] + [*(day for day in sessions if day > session)][:1]
    if not near:
        return "it has no session yet"
    return f"the nearest {'is' if len(near) == 1 else 'are'} {' and '.join(map(str, near))}"


@contextmanager
def records_in(journal: Path, desk: str, run: str | None = None) -> Iterator[Records]:
    """The records of one journal: a desk's, or with `run` a backtest's; none where there is no file."""
    with ExitStack() as stack:
        reader = _opened(journal, stack)
        yield Records(reader=reader, desk=desk, kind="desk" if run is None else "backtest", run=run)


def latest_backtests(most: int = 5) -> list[str]:
    """The ids of the backtests that were written to last, the latest first."""
    files = [path for path in places.runs_dir().glob("*.db") if path.is_file()]
    return [path.stem for path in sorted(files, key=lambda path: (-path.stat().st_mtime_ns, path.name))[:most]]


def has_decisions(reader: JournalReader) -> bool:
    """True for a journal with any decision."""
    return reader.counts()["decisions"] > 0


def _of_run(desk: str, run: str, stack: ExitStack) -> Records:
    try:
        path = places.run_journal(run)
    except ConfigError:
        raise _unknown(desk, run, stack) from None
    if path.is_file():
        reader = stack.enter_context(JournalReader(path))
        check_whole(reader.run(run))
        return Records(reader=reader, desk=desk, kind="backtest", run=run)
    of_desk = _opened(places.desk_journal(desk), stack)
    if of_desk is not None and of_desk.find_run(run) is not None:
        return Records(reader=of_desk, desk=desk, kind="daily", run=run)
    raise _unknown(desk, run, stack)


def check_whole(run: RunEntry) -> None:
    """Raise MissingData for a light run: whoever calls wants what it does not hold."""
    if run.extra.get(LIGHT):
        raise MissingData(f"the run {run.id} is light: it holds {LIGHT_HOLDS}; run it again without --light")


def _latest_backtest(desk: str, wanted: Callable[[JournalReader], bool], stack: ExitStack) -> Records | None:
    for run in latest_backtests(PROBED):
        # A backtest that is just beginning, or was killed when it began, has no journal worth the name yet.
        with ExitStack() as probing:
            reader = _opened(places.run_journal(run), probing)
            if reader is not None and wanted(reader):
                stack.push(probing.pop_all())
                note = f"the desk {desk} has none yet; this is the latest backtest"
                return Records(reader=reader, desk=desk, kind="backtest", run=run, note=note)
    return None


def is_in_a_backtest(wanted: Callable[[JournalReader], bool]) -> bool:
    """True where one of the latest backtests has what is wanted."""
    with ExitStack() as stack:
        return _latest_backtest("", wanted, stack) is not None


def _opened(path: Path, stack: ExitStack) -> JournalReader | None:
    """A reader, or None where there is no journal, or nothing in it yet. Raises as `refuse_remains` does."""
    refuse_remains(path)
    try:
        return stack.enter_context(JournalReader(path))
    except MissingData:
        return None


def _unknown(desk: str, run: str, stack: ExitStack) -> MissingData:
    known = latest_backtests(3)
    reader = _opened(places.desk_journal(desk), stack)
    if reader is not None:
        known += [entry.id for entry in reader.runs() if entry.kind is RunKind.DAILY][:-4:-1]
    return MissingData(f"no run {run}: the latest are {', '.join(known) or '(none yet)'}")
