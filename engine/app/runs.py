"""All runs of this machine: backtests, arenas, and the runs in the journals of desks.

Runs of this machine, held against each other.

Remove runs with all their files. The index of trials stays, and so do the journals of desks.

A run as a folder of its own, to be carried to another machine or given to others.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from engine.app.arena.record import arena_lock, load_document, load_spec, played_document
from engine.app.records.desk_journal import run_lock
from engine.domain.run import RunOutcome
from engine.errors import DataError, MissingData, PaperdeskError, TryAgainLater, UsageError
from engine.journal import copies
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.reports.arena_report import arena_html
from engine.reports.csv_tables import TABLES, csv_table
from engine.reports.documents.backtest import as_text
from engine.reports.documents.desk_performance import desk_performance
from engine.reports.documents.operations import outcomes
from engine.reports.documents.row_json import Row
from engine.reports.documents.run_comparison import comparison_document
from engine.reports.documents.runs import StoredKind, StoredRun
from engine.reports.documents.session import session_document
from engine.reports.documents.trail import with_cards
from engine.reports.html import html
from engine.reports.stored import stored_cards, stored_document, stored_figures
from engine.services import Services
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
        raise MissingData(f"no run {unknown}: `paperdesk runs list` shows the existing ones")
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
    run = replace(_of_entry(run, entry), **figures)
    return replace(run, first=window[0], last=window[1], data=None if spec is None else spec.data.folder)


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


def compare_runs(runs: Sequence[StoredRun]) -> Row:
    """The document of a comparison, each run with the first one. Raises UsageError for runs that cannot be compared,
    MissingData for one that never came to a result."""
    kinds = {run.kind for run in runs}
    if len(runs) < 2:
        raise UsageError("compare needs two runs or more: paperdesk runs compare ID ID")
    if kinds == {StoredKind.BACKTEST}:
        return comparison_document([stored_document(run.id) for run in runs])
    named = ", ".join(f"{run.id} ({run.kind})" for run in runs if run.kind is not StoredKind.BACKTEST)
    raise UsageError(f"only backtests can be compared: {named} is not one (for an arena use --repeats)")


PRUNABLE = (StoredKind.BACKTEST, StoredKind.ARENA)
"""Kinds of runs that have files of their own."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """The end of a pruning: runs that were removed, and those that a process is playing and that stay."""

    removed: Sequence[StoredRun]
    at_work: Sequence[StoredRun]


def to_prune(runs: Sequence[StoredRun], keep: int) -> Sequence[StoredRun]:
    """Of runs, the latest first, those that are beyond the latest `keep` of their kind. Runs of desks are none of
    them."""
    return [run for kind in PRUNABLE for run in [one for one in runs if one.kind is kind][keep:]]


def check_prunable(runs: Sequence[StoredRun]) -> None:
    """Raise UsageError for a run of a desk: it is in the desk's journal, which is never pruned."""
    of_desk = next((run for run in runs if run.kind not in PRUNABLE), None)
    if of_desk is not None:
        raise UsageError(f"{of_desk.id} is a run of the desk {of_desk.desk}: a desk's journal is never pruned")


def prune_runs(runs: Sequence[StoredRun]) -> Pruned:
    """Remove runs, but for those that are being played, and the library's folders of DataFrames that no other run has
    read. Raises ConfigError or DataError for a file that cannot be removed, naming it; what went before is gone."""
    removed, at_work = [], []
    for run in runs:
        try:
            with _held(run):
                _remove(run)
            removed.append(run)
        except TryAgainLater:
            at_work.append(run)
    frames = {run.data for run in removed if run.data is not None and Path(run.data).parent == places.frames_dir()}
    left = stored_runs(Wanted(kind=StoredKind.BACKTEST)) if frames else ()
    for folder in frames.difference(run.data for run in left):
        _delete(Path(folder))
    return Pruned(removed, at_work)


def _held(run: StoredRun) -> AbstractContextManager[None]:
    return arena_lock(run.id) if run.kind is StoredKind.ARENA else run_lock(run.id)


def _remove(run: StoredRun) -> None:
    lock = places.arena_lock(run.id) if run.kind is StoredKind.ARENA else places.run_lock(run.id)
    for path in (*files_of(run), lock):
        _delete(path)


def _delete(path: Path) -> None:
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise places.unusable(path, error) from error


JOURNAL = "journal.db"
Texts = Mapping[str, str]


def export_run(services: Services, run: StoredRun, folder: Path) -> tuple[str, ...]:
    """Write a run's document, tables, reports and journal into a new folder, all or nothing; the names of the files.
    A run of a desk comes with the whole journal of its desk. Raises DataError where the folder is there or cannot be
    written, MissingData for a run that never came to a result."""
    if folder.exists():
        raise DataError(f"{folder} already exists: name another folder")
    made = {StoredKind.BACKTEST: _backtest_files, StoredKind.ARENA: _arena_files}.get(run.kind, _desk_files)
    texts, half = made(services, run), folder.with_name(f".{folder.name}.part")
    try:
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(parents=True)
        for name, text in texts.items():
            # Half of a surrogate pair, which models do answer with, has no place in UTF-8.
            (half / name).write_bytes(text.encode("utf-8", "replace"))
        if run.kind is StoredKind.ARENA:
            shutil.copyfile(run.path, half / "record.json")
        else:
            copies.backup(run.path, half / JOURNAL)
        half.rename(folder)
    except OSError as error:
        raise DataError(f"{folder} cannot be written ({error.strerror}): name another folder with --to") from None
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return tuple(sorted(file.name for file in folder.iterdir()))


def _backtest_files(services: Services, run: StoredRun) -> Texts:
    document = stored_document(run.id)
    tables = {f"{name}.csv": csv_table(document, name) for name in TABLES}
    return {"result.json": _json(document), "report.html": html(stored_cards(document)), **tables}


def _arena_files(services: Services, run: StoredRun) -> Texts:
    document = load_document(run.id)
    texts = {"result.json": _json(document)}
    return texts if "repeats" in document else {**texts, "report.html": arena_html(document)}


def _desk_files(services: Services, run: StoredRun) -> Texts:
    if run.desk is None:
        raise MissingData(f"no run {run.id}")
    with JournalReader(places.desk_journal(run.desk)) as reader:
        document = session_document(reader, run.desk, run.id)
        config = services.config
        whole = desk_performance(
            reader, run.desk, run.id, exchanges=config.exchanges, risk_free=config.metrics.risk_free
        )
        page = html(with_cards(reader, whole))
    return {"result.json": _json(document), "report.html": page}


def _json(document: Mapping[str, Any]) -> str:
    return as_text(document) + "\n"
