"""Remove runs with all their files. The index of looks at windows stays, and so do the journals of desks."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.app.arena.record import arena_lock
from engine.app.research.resumption import run_lock
from engine.app.runs.inventory import files_of
from engine.errors import TryAgainLater, UsageError
from engine.reports.documents.runs import StoredKind, StoredRun
from engine.settings import places

PRUNABLE = (StoredKind.BACKTEST, StoredKind.ARENA)
"""Kinds of runs that have files of their own."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """The end of a pruning: runs that were removed, and those that a process is playing and that stay."""

    removed: Sequence[StoredRun]
    at_work: Sequence[StoredRun]


def to_prune(
    runs: Sequence[StoredRun], now: datetime, *, keep: int | None = None, older_than: int | None = None
) -> Sequence[StoredRun]:
    """Of runs, the latest first, those that are beyond the latest `keep` of their kind and begun more than `older_than`
    days ago; None sets no limit. Runs of desks are none of them."""
    found = []
    for kind in PRUNABLE:
        found += [run for run in runs if run.kind is kind][keep or 0 :]
    oldest = None if older_than is None else now - timedelta(days=older_than)
    return [run for run in found if oldest is None or run.time < oldest]


def check_prunable(runs: Sequence[StoredRun]) -> None:
    """Raise UsageError for a run of a desk: it is in the desk's journal, which is never pruned."""
    of_desk = next((run for run in runs if run.kind not in PRUNABLE), None)
    if of_desk is not None:
        raise UsageError(f"{of_desk.id} is a run of the desk {of_desk.desk}: a desk's journal is never pruned")


def prune_runs(runs: Sequence[StoredRun]) -> Pruned:
    """Remove runs, but for those that are being played. Raises ConfigError or DataError for a file that cannot be
    removed, naming it; what went before is gone."""
    removed, at_work = [], []
    for run in runs:
        try:
            with _held(run):
                _remove(run)
            removed.append(run)
        except TryAgainLater:
            at_work.append(run)
    return Pruned(removed, at_work)


def _held(run: StoredRun) -> AbstractContextManager[None]:
    return arena_lock(run.id) if run.kind is StoredKind.ARENA else run_lock(run.id)


def _remove(run: StoredRun) -> None:
    lock = places.arena_lock(run.id) if run.kind is StoredKind.ARENA else places.run_lock(run.id)
    for path in (*files_of(run), lock):
        try:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise places.unusable(path, error) from error
