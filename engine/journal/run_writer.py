"""Write runs with their states, remarks on them, and the events and commands in which processes meet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from engine.domain.market import Dropped
from engine.domain.run import ModelUse, RunKind, RunOutcome
from engine.errors import InvariantBroken
from engine.journal.codec import Row, moment, text_or_none, to_json
from engine.journal.entries import RunEntry
from engine.journal.row_writer import RowWriter
from engine.journal.run_rows import run_row, run_state_row
from engine.journal.schema import LIVE, TEST
from engine.journal.store import Condition
from engine.messages.commands import Command
from engine.messages.events import Event, to_plain


class RunWriter(RowWriter):
    """The tables of runs, events and commands."""

    def run_started(self, run: RunEntry) -> bool:
        """A run began, or (False) goes on after it was killed, interrupted, failed or halted. Raises InvariantBroken
        for one that was done."""
        self._parts[run.id] = TEST if run.kind is RunKind.BACKTEST else LIVE
        before = self._store.find("run_states", {"run": run.id}, latest="seq")
        if before is None:
            self._store.write(("runs", run_row(run)), ("run_states", run_state_row(run, run.started)))
        elif before["outcome"] in (RunOutcome.DONE, RunOutcome.SKIPPED):
            raise InvariantBroken(f"the run {run.id} is {before['outcome']} in {self.path}: it cannot start again")
        else:
            state = {column: before[column] for column in ("run", "value", "model", "extra")}
            self._store.write(("run_states", state | {"time": moment(run.started), "outcome": None, "detail": ""}))
        self.flush()
        return before is None

    def run_finished(
        self,
        run: str,
        outcome: RunOutcome,
        time: datetime,
        *,
        value: Decimal | None = None,
        detail: str = "",
        model: ModelUse | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """A run ended; `extra` holds JSON's types only. Raises InvariantBroken for a run that never began."""
        row: Row = {
            "run": run,
            "time": moment(time),
            "outcome": outcome.value,
            "value": text_or_none(value),
            "detail": detail,
            "model": None if model is None else to_json(model),
            "extra": to_json(extra) if extra else None,
        }
        began = Condition(
            "EXISTS (SELECT 1 FROM runs WHERE id = ?)", (run,), f"there is no run {run} in {self.path} to finish"
        )
        self._store.write_if("run_states", row, began)
        self.flush()

    def stretch_started(self, run: str, part: str, initial_value: Decimal) -> None:
        """A part of a backtest (WARM_UP or TEST) began with that much money: the rows that follow belong to it."""
        self._parts[run] = part
        row = {"run": run, "part": part, "initial_value": str(initial_value)}
        self._store.write_once("stretches", row, ("run", "part"))

    def dropped(self, run: str, dropped: Dropped) -> None:
        """Items of a source could not be used."""
        row = {"run": run, "source": dropped.source, "reason": dropped.reason, "count": dropped.count}
        self._store.write(("dropped", row))

    def noted(self, run: str, level: str, text: str, time: datetime | None = None) -> None:
        """A reader of the run has to know something; level is `info`, `warning` or `error`."""
        row = {"run": run, "time": None if time is None else moment(time), "level": level, "text": text}
        self._store.write(("notes", row))

    def document(self, run: str, kind: str, text: str) -> None:
        """A run as one JSON document; written once. Raises InvariantBroken where another is there already."""
        self._store.write_once("documents", {"run": run, "kind": kind, "json": text}, ("run", "kind"))

    def event(self, event: Event) -> None:
        """Something happened; events that may be lost are not stored."""
        if event.durable:
            kind = type(event).__name__
            row = {"run": event.run, "time": moment(event.time), "type": kind, "json": to_json(to_plain(event))}
            self._store.write(("events", row))

    def command(self, command: Command, time: datetime) -> int:
        """A person or a schedule asked for something; returns the command's number."""
        row = {"time": moment(time), "type": type(command).__name__, "json": to_json(command)}
        return self._store.insert_numbered("commands", row)

    def command_done(self, seq: int, time: datetime) -> bool:
        """A command was carried out; False where another process had done so already."""
        waits = Condition(
            """EXISTS (SELECT 1 FROM commands WHERE seq = ?)
            AND NOT EXISTS (SELECT 1 FROM command_states WHERE command = ? AND state = 'done')""",
            (seq, seq),
        )
        return self._store.insert_if("command_states", {"command": seq, "time": moment(time), "state": "done"}, waits)
