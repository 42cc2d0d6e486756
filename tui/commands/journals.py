"""Which journal and run a command reads that only looks: the desk's, one of its daily runs, or a backtest's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine import places
from engine.errors import ConfigError, MissingData
from engine.journal.reader import JournalReader
from engine.journal.schema import LIVE, TEST
from tui.invocation import Invocation

DEFAULT_DESK = "demo"
"""The desk of a configuration that says nothing; engine.config has the same, and a test compares."""

NOT_RUN = "the desk {desk} has not run yet: paperdesk --daily"
_PROBED = 30
"""How many of the latest backtests are looked through for one that has what is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """An open journal: `run` narrows its reader (None: the desk with all its runs), `part` too; `title` says in
    words what is shown, `note` why it is not the desk's where that was not asked for."""

    reader: JournalReader
    desk: str
    kind: Literal["desk", "daily", "backtest"]
    run: str | None
    title: str
    note: str = ""

    @property
    def part(self) -> str:
        """The part of the run that is shown: a backtest's warm-up is not."""
        return TEST if self.kind == "backtest" else LIVE

    def named(self) -> dict[str, object]:
        """What every JSON document begins with."""
        return {"schema": 1, "desk": self.desk, "kind": self.kind, "run": self.run}


def desk_name(invocation: Invocation) -> str:
    """The desk of this call. The configuration is read, and checked, only where there is one: that is what takes
    longest in a command that looks. Raises ConfigError."""
    return invocation.load().config.desk.name if invocation.configured else DEFAULT_DESK


@contextmanager
def looked_at(
    invocation: Invocation, wanted: Callable[[JournalReader], bool] | None = None
) -> Iterator[tuple[str, Look | None]]:
    """The desk's name and what `--run` names, or else the desk's journal (None where the desk has not run). With
    `wanted`, where the desk's journal has nothing of the kind the latest backtest that has. Raises MissingData for an
    unknown run, naming the latest."""
    desk = desk_name(invocation)
    with ExitStack() as stack:
        if invocation.run is not None:
            yield desk, _run(desk, invocation.run, stack)
            return
        reader = _opened(places.desk_journal(desk), stack)
        if reader is not None and (wanted is None or wanted(reader)):
            yield desk, Look(reader=reader, desk=desk, kind="desk", run=None, title=f"desk {desk}")
            return
        found = None if wanted is None else _latest_backtest(desk, wanted, stack)
        if found is None and reader is not None:
            found = Look(reader=reader, desk=desk, kind="desk", run=None, title=f"desk {desk}")
        yield desk, found


def latest_backtests(most: int = 5) -> list[str]:
    """The ids of the backtests that were written to last, the latest first."""
    files = [path for path in places.runs_dir().glob("*.db") if path.is_file()]
    return [path.stem for path in sorted(files, key=lambda path: (-path.stat().st_mtime, path.name))[:most]]


def _run(desk: str, run: str, stack: ExitStack) -> Look:
    try:
        path = places.run_journal(run)
    except ConfigError:
        raise _unknown(desk, run, stack) from None
    if path.is_file():
        reader = stack.enter_context(JournalReader(path))
        reader.run(run)
        return Look(reader=reader, desk=desk, kind="backtest", run=run, title=f"backtest {run}")
    reader_of_desk = _opened(places.desk_journal(desk), stack)
    if reader_of_desk is None:
        raise _unknown(desk, run, stack)
    try:
        reader_of_desk.run(run)
    except MissingData:
        raise _unknown(desk, run, stack) from None
    return Look(reader=reader_of_desk, desk=desk, kind="daily", run=run, title=f"run {run} of the desk {desk}")


def _latest_backtest(desk: str, wanted: Callable[[JournalReader], bool], stack: ExitStack) -> Look | None:
    for run in latest_backtests(_PROBED):
        # A backtest that is just beginning, or was killed when it began, has no journal worth the name yet.
        with ExitStack() as probing:
            reader = _opened(places.run_journal(run), probing)
            if reader is not None and wanted(reader):
                stack.push(probing.pop_all())
                note = f"the desk {desk} has none yet; this is the latest backtest"
                return Look(reader=reader, desk=desk, kind="backtest", run=run, title=f"backtest {run}", note=note)
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
        from engine.domain.run import RunKind

        known += [entry.id for entry in reader.runs(RunKind.DAILY)[:-4:-1]]
    return MissingData(f"no run {run}: the latest are {', '.join(known) or '(none yet)'}")
