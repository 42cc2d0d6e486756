"""`paperdesk journal` (set-up): check, copy or restore a journal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine import places
from engine.errors import MalformedData, MissingData
from engine.reports.documents.records import latest_backtests
from tui.console import show
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.journal.entries import RunEntry

CHECK, BACKUP, RESTORE = "check", "backup", "restore"


@dataclass(frozen=True, slots=True)
class _Journal:
    """The journal that is meant: the desk's, or with `run` a backtest's."""

    desk: str
    run: str | None
    path: Path

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the desk's lock; a backtest has none, it is its run's alone."""
        if self.run is not None:
            yield
            return
        from engine.app.desk_lock import desk_lock

        with desk_lock(self.desk):
            yield

    def has(self, run: RunEntry) -> bool:
        """Whether a run belongs into this journal."""
        from engine.domain.run import RunKind
        from engine.session.desk_context import run_id

        if self.run is not None:
            return run.id == self.run
        return run.kind is RunKind.DAILY and run.session is not None and run.id == run_id(self.desk, run.session)


@click.command("journal")
@click.argument("deed", metavar="check|backup|restore", type=click.Choice([CHECK, BACKUP, RESTORE]))
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, deed: str, file: Path | None, as_json: bool) -> int:
    """Checks, copies or restores the desk's journal; with --run a backtest's.

    check brings a journal of an older Paperdesk up to date and looks for damage and contradictions; the exit code is 1
    where it finds any. backup FILE writes a copy that is whole even while a run writes. restore FILE checks a backup,
    brings it up to date and puts it in the journal's place; what was there is kept beside it. check and restore wait
    for nobody: while a run of the desk is at work they end with 75.

    \b
    Examples:
      paperdesk journal check
      paperdesk journal backup ~/demo-before-update.db
      paperdesk journal restore ~/demo-before-update.db
      paperdesk journal check --run backtest-20250701-120000-ab12 --json
    """
    if (file is None) != (deed == CHECK):
        raise click.UsageError("check takes no file" if file else f"{deed} needs a file: paperdesk journal {deed} FILE")
    journal = _meant(invocation)
    if deed == RESTORE:
        assert file is not None
        return _restore(journal, file.expanduser(), as_json)
    if not journal.path.is_file():
        raise _missing(journal)
    if file is not None:
        return _backup(journal, file.expanduser(), as_json)
    return _check(journal, as_json)


def _meant(invocation: Invocation) -> _Journal:
    desk, run = invocation.desk_name, invocation.run
    return _Journal(desk, run, places.desk_journal(desk) if run is None else places.run_journal(run))


def _missing(journal: _Journal) -> MissingData:
    if journal.run is None:
        return MissingData(f"the desk {journal.desk} has no journal at {journal.path}: paperdesk --daily writes one")
    known = ", ".join(latest_backtests(3)) or "(none yet)"
    return MissingData(
        f"no backtest {journal.run}: the latest are {known}; a daily run stands in its desk's journal, leave out --run"
    )


def _check(journal: _Journal, as_json: bool) -> int:
    from engine.journal.integrity import quick_check
    from engine.journal.upgrade import bring_up_to_date

    before = None
    with journal.held():
        try:
            before = bring_up_to_date(journal.path)
            faults = quick_check(journal.path)
        except MalformedData as error:
            faults = (str(error),)
    if as_json:
        _print(journal, {"sound": not faults, "faults": list(faults), "updated_from": before})
        return 1 if faults else 0
    if before is not None:
        show(f"{journal.path}: brought up to date, it had version {before}")
    show("\n".join(f"{journal.path}: {fault}" for fault in faults) if faults else f"{journal.path}: sound")
    if faults:
        show("put a backup in its place: paperdesk journal restore FILE")
    return 1 if faults else 0


def _backup(journal: _Journal, to: Path, as_json: bool) -> int:
    from engine.journal.integrity import backup

    backup(journal.path, to)
    size = to.stat().st_size
    if as_json:
        _print(journal, {"backup": str(to), "bytes": size})
    else:
        show(f"{to}: a copy of {journal.path}, {size:,} bytes")
    return 0


def _restore(journal: _Journal, copy: Path, as_json: bool) -> int:
    from engine.clock import LiveClock
    from engine.journal.integrity import restore

    if copy.exists() and journal.path.exists() and copy.samefile(journal.path):
        raise click.UsageError(f"{copy} is the journal itself: name a backup of it")
    with journal.held():
        kept = restore(copy, journal.path, LiveClock().now(), journal.has)
    if as_json:
        _print(journal, {"backup": str(copy), "kept": kept and str(kept)})
        return 0
    show(f"{journal.path}: restored from {copy}")
    if kept is not None:
        show(f"{kept}: what was there before")
    return 0


def _print(journal: _Journal, more: dict[str, Any]) -> None:
    head = {"schema": 1, "desk": journal.desk, "run": journal.run, "journal": str(journal.path)}
    show(json.dumps({**head, **more}, indent=2, allow_nan=False))
