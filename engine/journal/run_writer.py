"""Write runs with their states, remarks on them, and the events and commands in which processes meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from engine.domain.json_text import to_json
from engine.domain.market import Dropped
from engine.domain.order import OrderState
from engine.domain.run import ModelUse, RunKind, RunOutcome, WindowLook
from engine.errors import InvariantBroken
from engine.journal.entries import RunEntry
from engine.journal.event_rows import event_row
from engine.journal.rows import Row, packed, row_of
from engine.journal.schema import LIVE, TEST
from engine.journal.store import Condition, RowStore
from engine.messages.commands import Command, OrderCommand
from engine.messages.events import AgentAnswered, Event

RUN_STATE = ("outcome", "value", "detail", "model", "extra")
"""Fields of a run that change: each state is a row of its own."""
RETURN_DIGITS = 10
"""Decimal places of a stored return."""


class RunWriter(RowStore):
    """The tables of runs, events and commands, and the index of looks at windows."""

    def run_started(self, run: RunEntry) -> bool:
        """A run began, or (False) goes on after it was killed, interrupted, failed or halted. Raises InvariantBroken
        for one that was done."""
        self._parts[run.id] = TEST if run.kind is RunKind.BACKTEST else LIVE
        before = self._find("run_states", {"run": run.id}, latest="seq")
        if before is None:
            state = {name: getattr(run, name) for name in RUN_STATE} | {"run": run.id, "time": run.started}
            state["extra"] = run.extra or None
            self._write(("runs", row_of(run, "ended", *RUN_STATE)), ("run_states", state))
        elif before["outcome"] in (RunOutcome.DONE, RunOutcome.SKIPPED):
            raise InvariantBroken(f"the run {run.id} is {before['outcome']} in {self.path}: it cannot start again")
        else:
            state = {column: before[column] for column in ("run", "value", "model", "extra")}
            self._write(("run_states", state | {"time": run.started, "outcome": None, "detail": ""}))
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
        state = {"run": run, "time": time, "outcome": outcome, "value": value, "detail": detail, "model": model}
        began = Condition(
            "EXISTS (SELECT 1 FROM runs WHERE id = ?)", (run,), f"there is no run {run} in {self.path} to finish"
        )
        self._write_if("run_states", state | {"extra": extra or None}, began)
        self.flush()

    def stretch_started(self, run: str, part: str, initial_value: Decimal) -> None:
        """A part of a backtest (WARM_UP or TEST) began with that much money: the rows that follow belong to it."""
        self._parts[run] = part
        self._write_once("stretches", {"run": run, "part": part, "initial_value": initial_value}, ("run", "part"))

    def dropped(self, run: str, dropped: Dropped) -> None:
        """Items of a source could not be used."""
        self._write(("dropped", row_of(dropped) | {"run": run}))

    def noted(self, run: str, level: str, text: str, time: datetime | None = None) -> None:
        """A reader of the run has to know something; level is `info`, `warning` or `error`."""
        self._write(("notes", {"run": run, "time": time, "level": level, "text": text}))

    def document(self, run: str, kind: str, text: str) -> None:
        """A run as one JSON document; written once. Raises InvariantBroken where another is there already."""
        self._write_once("documents", {"run": run, "kind": kind, "json": text}, ("run", "kind"))

    def event(self, event: Event) -> None:
        """Something happened; events that may be lost are not stored."""
        if event.durable:
            self._write(("events", event_row(event, self._answer_before(event))))

    def _answer_before(self, event: Event) -> Row | None:
        """The last answer that an event may be about, None where none was committed."""
        if not isinstance(event, AgentAnswered):
            return None
        about = {"run": event.run, "session": event.session, "symbol": event.symbol, "owner": event.owner}
        return self._find("answers", about, latest="seq")

    def command(self, command: Command, time: datetime) -> int:
        """An operator or a schedule gave a command; returns its number."""
        row = {"time": time, "type": type(command).__name__, "json": to_json(command)}
        return self._insert_numbered("commands", row)

    def order_command(self, command: OrderCommand, time: datetime) -> bool:
        """An operator gave a command about an order, which takes effect by being there; False where the order is on its
        way, or ended, and nothing about it can count any more."""
        row = {"time": time, "type": type(command).__name__, "json": to_json(command)}
        unsent = Condition(
            "NOT EXISTS (SELECT 1 FROM order_states WHERE order_id = ? AND state != ?)",
            (command.order_id, OrderState.INTENDED.value),
        )
        number = self._insert_now_if("commands", row, unsent)
        return bool(number) and self.command_done(number, time)

    def command_done(self, seq: int, time: datetime) -> bool:
        """A command was carried out; False where another process had done so already."""
        waits = Condition(
            """EXISTS (SELECT 1 FROM commands WHERE seq = ?)
            AND NOT EXISTS (SELECT 1 FROM command_states WHERE command = ? AND state = 'done')""",
            (seq, seq),
        )
        return bool(self._insert_now_if("command_states", {"command": seq, "time": time, "state": "done"}, waits))

    def looks(self, looks: Iterable[WindowLook]) -> None:
        """A strategy or a preset was evaluated on windows, all looks or none."""
        rows = ((look, [round(value, RETURN_DIGITS) for value in look.returns]) for look in looks)
        self._write(*(("looks", row_of(look) | {"returns": packed(to_json(returns))}) for look, returns in rows))
