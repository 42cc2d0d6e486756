"""Runs that lie on this machine, as `paperdesk runs` prints them: the list, what was removed, what was exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path

from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row

SCHEMA = 1


class StoredKind(StrEnum):
    """The kind of a stored run; all but BACKTEST and ARENA are runs of a desk and lie in its journal."""

    BACKTEST = "backtest"
    ARENA = "arena"
    DAILY = "daily"
    SESSION = "session"
    SYMBOL = "symbol"
    ORDER = "order"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """One run.

    desk: whose run it is, None for a backtest or an arena.
    name: the preset or strategy, of an arena the market's preset.
    first, last: the window, or the session that was decided for; None where it has none.
    time: when it began, of an arena when it was last written, UTC.
    outcome: None where it is at work or was killed.
    metrics: by name; empty where it came to none.
    cost: of models in USD; None where a price is unknown.
    sessions: that were measured, or days of an arena.
    trades, final: the number of trades of a backtest and its value at the end; None where it came to none.
    size: bytes of its own files, 0 for a run of a desk.
    path: its journal or record.
    data: the data folder that a backtest read; None for the demo market.
    problem: why it cannot be read; empty where it can.
    """

    id: str
    kind: StoredKind
    time: datetime
    path: Path
    desk: str | None = None
    name: str = ""
    symbols: tuple[str, ...] = ()
    first: date | None = None
    last: date | None = None
    ended: datetime | None = None
    outcome: str | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    cost: Decimal | None = Decimal(0)
    sessions: int = 0
    trades: int | None = None
    final: Decimal | None = None
    size: int = 0
    data: str | None = None
    problem: str = ""


def runs_document(shown: Sequence[StoredRun], of: Sequence[StoredRun]) -> Row:
    """The runs that are shown, the latest first, with the count and the bytes of all that fit."""
    return {"schema": SCHEMA, "count": len(of), "bytes": _size(of), "runs": [_row(run) for run in shown]}


def pruned_document(removed: Sequence[StoredRun], at_work: Sequence[StoredRun], retained: int) -> Row:
    """The runs that were removed, those that were left because a process is playing them, and how many stay."""
    return {
        "schema": SCHEMA,
        "removed": [run.id for run in removed],
        "at_work": [run.id for run in at_work],
        "bytes": _size(removed),
        "retained": retained,
    }


def exported_document(run: StoredRun, folder: Path, files: Sequence[str]) -> Row:
    """The folder that a run was written to, and the files in it."""
    return {"schema": SCHEMA, "run": run.id, "kind": run.kind.value, "folder": str(folder), "files": list(files)}


def _row(run: StoredRun) -> Row:
    names = ("id", "kind", "desk", "name", "symbols", "first", "last", "time", "ended", "outcome")
    return {
        **row_json.fields(run, *names),
        "finished": run.outcome is not None,
        "sessions": run.sessions,
        "metrics": dict(run.metrics),
        **row_json.fields(run, "cost"),
        "bytes": run.size,
        "path": str(run.path),
        "problem": run.problem or None,
    }


def _size(runs: Sequence[StoredRun]) -> int:
    return sum(run.size for run in runs)
