"""All runs of this machine: backtests, arenas, and the runs in the journals of desks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from engine.app.arena.record import load_spec, played_document
from engine.domain.run import RunOutcome
from engine.errors import MissingData, PaperdeskError
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.reports.documents.operations import outcomes
from engine.reports.documents.runs import StoredKind, StoredRun
from engine.reports.stored import stored_figures
from engine.settings import places

DATABASE = ("", "-wal", "-shm", ".part", ".part-wal", ".part-shm")
"""Endings of the files of a journal, its own first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A choice among runs; None takes all. `name` is a preset's or a strategy's."""

    kind: StoredKind | None = None
    name: str | None = None
    symbol: str | None = None

    def takes(self, run: StoredRun) -> bool:
        """True for a run that fits."""
        named = self.kind in (None, run.kind) and self.name in (None, run.name)
        return named and (self.symbol is None or self.symbol in run.symbols)


EVERY = Wanted()


def stored_runs(wanted: Wanted = EVERY) -> Sequence[StoredRun]:
    """The runs that fit, the latest first; one that cannot be read says why. Raises ConfigError for a home that is
    none."""
    found: list[StoredRun] = []
    if wanted.kind in (None, StoredKind.BACKTEST):
        found += _own_files(StoredKind.BACKTEST, places.runs_dir().glob("*.db"), _backtest)
    if wanted.kind in (None, StoredKind.ARENA):
        found += _own_files(StoredKind.ARENA, places.arenas_dir().glob("*.json"), _arena)
    if wanted.kind not in (StoredKind.BACKTEST, StoredKind.ARENA):
        found += _of_desks()
    return sorted(filter(wanted.takes, found), key=lambda run: (run.time, run.id), reverse=True)


def named_runs(runs: Sequence[StoredRun], names: Iterable[str]) -> Sequence[StoredRun]:
    """The runs of these ids, each once. Raises MissingData for one that there is not."""
    known = {run.id: run for run in runs}
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise MissingData(f"no run {unknown}: paperdesk runs list shows those that there are")
    return [known[name] for name in dict.fromkeys(names)]


def files_of(run: StoredRun) -> Sequence[Path]:
    """The files and folders of a run, as far as they are there; its journal or record last, so that a run that was half
    removed is still one. Empty for a run of a desk."""
    files: list[Path] = []
    if run.kind is StoredKind.ARENA:
        files = [*places.parts_of(run.path), run.path]
    elif run.kind is StoredKind.BACKTEST:
        journal = [run.path.with_name(run.path.name + ending) for ending in reversed(DATABASE)]
        files = [places.run_memory(run.id), *places.parts_of(run.path), *journal]
    return [file for file in files if file.exists()]


def _own_files(kind: StoredKind, files: Iterable[Path], read: Callable[[StoredRun], StoredRun]) -> Iterator[StoredRun]:
    for path in files:
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        run = StoredRun(id=path.stem, kind=kind, time=changed, path=path)
        try:
            run = read(run)
        except PaperdeskError as error:
            run = replace(run, problem=str(error))
        yield replace(run, size=sum(map(_bytes, files_of(run))))


def _backtest(run: StoredRun) -> StoredRun:
    with JournalReader(run.path) as reader:
        entry = reader.run(run.id)
        figures = stored_figures(reader, run.id)
    spec = entry.spec
    window = (None, None) if spec is None else (spec.first, spec.last)
    run = replace(_of_entry(run, entry), **figures._asdict())
    return replace(run, first=window[0], last=window[1])


def _of_entry(run: StoredRun, entry: RunEntry) -> StoredRun:
    return replace(
        run,
        name=entry.name,
        symbols=entry.symbols,
        time=entry.started,
        ended=entry.ended,
        outcome=None if entry.outcome is None else entry.outcome.value,
        cost=Decimal(0) if entry.model is None else entry.model.cost,
    )


def _arena(run: StoredRun) -> StoredRun:
    run, document = replace(run, name=load_spec(run.id).preset), played_document(run.id)
    if document is None:
        return run
    model = document["model"]
    # Repeats together know only whether every cost is known: each of them has its own.
    cost = model["cost"] if "cost" in model else "0" if model["cost_known"] else None
    return replace(
        run,
        symbols=tuple(stock["name"] for stock in document.get("stocks", ())),
        outcome=RunOutcome.INTERRUPTED.value if document["interrupted"] else RunOutcome.DONE.value,
        ended=run.time,
        metrics={name: value for name, value in document["market"].items() if isinstance(value, float)},
        cost=None if cost is None else Decimal(cost),
        sessions=document["days"],
    )


def _of_desks() -> Iterator[StoredRun]:
    for path in places.desks_dir().glob("*.db"):
        desk = path.stem
        try:
            with JournalReader(path) as reader:
                entries = reader.runs()
        except PaperdeskError as error:
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            empty = StoredRun(id=f"daily-{desk}", kind=StoredKind.DAILY, time=changed, path=path, desk=desk)
            yield replace(empty, problem=str(error))
            continue
        ends = outcomes(entries)
        for entry in entries:
            run = StoredRun(id=entry.id, kind=StoredKind(entry.kind), time=entry.started, path=path, desk=desk)
            run = replace(_of_entry(run, entry), outcome=ends[entry.id])
            yield replace(run, first=entry.session, last=entry.session, sessions=1)


def _bytes(path: Path) -> int:
    """The size of a file, or of all files of a folder; one that has just gone has none."""
    files = path.rglob("*") if path.is_dir() else (path,)
    total = 0
    for file in files:
        try:
            total += 0 if file.is_dir() else file.stat().st_size
        except FileNotFoundError:
            continue
    return total
