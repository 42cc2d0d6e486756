"""The records behind a document: a desk's journal, one of its runs, or a backtest's journal.

Only sqlite3 is loaded to open them, so that a command that prints a document is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine import places
from engine.errors import ConfigError, MissingData
from engine.journal.reader import JournalReader
from engine.journal.schema import LIVE, TEST

if TYPE_CHECKING:
    from engine.reports.documents.row_json import Row

SCHEMA = 1
"""The version of the documents of a desk's records."""

PROBED = 30
"""How many of the latest backtests are searched for one that has what is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """An open journal and the part of it that a document covers.

    reader: None for a desk that has not run.
    kind: all runs of a desk, one of them, or a backtest.
    run: the run that narrows a reader, None for all runs of a desk.
    note: why these are not the desk's own records, where they were not named; else empty.
    """

    reader: JournalReader | None
    desk: str
    kind: Literal["desk", "daily", "backtest"] = "desk"
    run: str | None = None
    note: str = ""

    @property
    def title(self) -> str:
        """The records as a person calls them."""
        if self.kind == "desk":
            return f"desk {self.desk}"
        return f"backtest {self.run}" if self.kind == "backtest" else f"run {self.run} of the desk {self.desk}"

    @property
    def part(self) -> str:
        """The part of a run that is shown: a backtest's warm-up is not."""
        return TEST if self.kind == "backtest" else LIVE

    @property
    def world(self) -> str | None:
        """The run that trades and books are looked for in: a daily run's orders fill in a later run of its desk, a
        backtest is its own world."""
        return self.run if self.kind == "backtest" else None

    @property
    def head(self) -> Row:
        """The keys that every document of the records begins with."""
        return {"schema": SCHEMA, "desk": self.desk, "kind": self.kind, "run": self.run}

    @property
    def absence(self) -> str:
        """The answer where the desk has not run."""
        return f"the desk {self.desk} has not run yet: paperdesk --daily"

    @property
    def required(self) -> JournalReader:
        """The reader. Raises MissingData for a desk that has not run."""
        if self.reader is None:
            raise MissingData(self.absence)
        return self.reader


@contextmanager
def open_records(
    desk: str, run: str | None = None, wanted: Callable[[JournalReader], bool] | None = None
) -> Iterator[Records]:
    """Open the journal of a run, or of the desk where none is named. With `wanted`, where the desk's journal has
    nothing of the kind, the latest backtest that has. Raises MissingData for an unknown run, naming the latest."""
    with ExitStack() as stack:
        if run is not None:
            yield _of_run(desk, run, stack)
            return
        reader = _opened(places.desk_journal(desk), stack)
        if wanted is None or (reader is not None and wanted(reader)):
            yield Records(reader=reader, desk=desk)
        else:
            yield _latest_backtest(desk, wanted, stack) or Records(reader=reader, desk=desk)


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
    """Whether a journal has any decision."""
    return reader.counts()["decisions"] > 0


def _of_run(desk: str, run: str, stack: ExitStack) -> Records:
    try:
        path = places.run_journal(run)
    except ConfigError:
        raise _unknown(desk, run, stack) from None
    if path.is_file():
        reader = stack.enter_context(JournalReader(path))
        reader.run(run)
        return Records(reader=reader, desk=desk, kind="backtest", run=run)
    of_desk = _opened(places.desk_journal(desk), stack)
    try:
        if of_desk is not None and of_desk.run(run):
            return Records(reader=of_desk, desk=desk, kind="daily", run=run)
    except MissingData:
        pass
    raise _unknown(desk, run, stack)


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


def _opened(path: Path, stack: ExitStack) -> JournalReader | None:
    """A reader, or None where there is no journal, or an empty one."""
    try:
        return stack.enter_context(JournalReader(path))
    except MissingData:
        return None


def _unknown(desk: str, run: str, stack: ExitStack) -> MissingData:
    known = latest_backtests(3)
    reader = _opened(places.desk_journal(desk), stack)
    if reader is not None:
        known += [entry.id for entry in reader.runs() if entry.kind == "daily"][:-4:-1]
    return MissingData(f"no run {run}: the latest are {', '.join(known) or '(none yet)'}")
