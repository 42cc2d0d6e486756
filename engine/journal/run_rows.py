"""Rows of runs, notes and commands, beside the values that they stand for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from engine.domain.run import ModelUse, RunKind, RunOutcome, RunSpec
from engine.journal.codec import Row, decimal_or_none, from_json, moment, text_or_none, to_json
from engine.journal.entries import Note, RunEntry
from engine.messages import commands


def run_of(row: Mapping[str, Any]) -> RunEntry:
    """A run from its row joined with its present state."""
    outcome = None if row["outcome"] is None else RunOutcome(row["outcome"])
    return RunEntry(
        id=row["id"],
        kind=RunKind(row["kind"]),
        name=row["name"],
        started=datetime.fromisoformat(row["started"]),
        label=row["label"],
        spec=None if row["spec"] is None else from_json(RunSpec, row["spec"]),
        symbols=tuple(json.loads(row["symbols"])),
        session=None if row["session"] is None else date.fromisoformat(row["session"]),
        cycle=row["cycle"],
        ended=None if outcome is None else datetime.fromisoformat(row["state_time"]),
        outcome=outcome,
        value=decimal_or_none(row["value"]),
        detail=row["detail"],
        model=None if row["model"] is None else from_json(ModelUse, row["model"]),
        extra=json.loads(row["extra"] or "{}"),
    )


def run_row(run: RunEntry) -> Row:
    """A run as a row; its state is one of its own."""
    return {
        "id": run.id,
        "kind": run.kind.value,
        "name": run.name,
        "label": run.label,
        "spec": None if run.spec is None else to_json(run.spec),
        "symbols": to_json(run.symbols),
        "session": text_or_none(run.session),
        "cycle": run.cycle,
        "started": moment(run.started),
    }


def run_state_row(run: RunEntry, time: datetime) -> Row:
    """The state that a run entered at a time, as a row."""
    return {
        "run": run.id,
        "time": moment(time),
        "outcome": None if run.outcome is None else run.outcome.value,
        "value": text_or_none(run.value),
        "detail": run.detail,
        "model": None if run.model is None else to_json(run.model),
        "extra": to_json(run.extra) if run.extra else None,
    }


def note_of(row: Mapping[str, Any]) -> Note:
    """A note from its row."""
    time = None if row["time"] is None else datetime.fromisoformat(row["time"])
    return Note(row["run"], row["level"], row["text"], time)


def command_of(row: Mapping[str, Any]) -> tuple[int, datetime, commands.Command]:
    """A command from its row: number, time, command."""
    kind: type[commands.Command] = getattr(commands, row["type"])
    return row["seq"], datetime.fromisoformat(row["time"]), from_json(kind, row["json"])
