"""Read runs, their notes, and the events and commands in which processes meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeVar

from engine.domain.market import Dropped
from engine.domain.run import RunKind, RunOutcome
from engine.errors import MissingData
from engine.journal.database import reading
from engine.journal.entries import Note, RunEntry
from engine.journal.event_rows import event_of
from engine.journal.row_reader import RowReader, where
from engine.journal.rows import command_of
from engine.messages.commands import CONTROLS, Command
from engine.messages.events import Event

E = TypeVar("E", bound=Event)

COUNTED = ("events", "answers", "decisions", "orders", "fills", "cash_flows", "equity", "notes")

RUNS = """
    SELECT runs.*, state.outcome, state.value, state.detail, state.model, coalesce(state.extra, '{}') AS extra,
    state.packed,
    CASE WHEN state.outcome IS NOT NULL THEN state.time END AS ended,
    coalesce(json_extract(state.extra, '$.label'), runs.label) AS label
    FROM runs JOIN run_states AS state ON state.seq = (SELECT max(seq) FROM run_states WHERE run = runs.id)"""
"""Every run in its present state, which is its last; one that went on with another model is labelled by both."""


class RunReader(RowReader):
    """The tables of runs, events and commands."""

    def finished_run(self, session: date) -> str | None:
        """The id of the daily run of a session that was done, or None: the check that makes a second run a no-op."""
        found = self._rows(
            f"{RUNS} WHERE runs.kind = 'daily' AND runs.session = ? AND outcome = 'done' ORDER BY cycle DESC LIMIT 1",
            session.isoformat(),
        )
        return found[0]["id"] if found else None

    def runs(self, kind: RunKind | None = None) -> tuple[RunEntry, ...]:
        """Every run, the latest last."""
        return self._values(RunEntry, RUNS, {"kind": kind}, "runs.rowid")

    def last_session(
        self, kinds: Sequence[RunKind], outcomes: Sequence[RunOutcome] = (), until: date | None = None
    ) -> date | None:
        """The last session up to a day that a run of these kinds was for, of any outcome or of one of these; None
        without one."""
        terms = [f"runs.kind IN ({', '.join('?' * len(kinds))})", "session <= ?"]
        terms += [f"outcome IN ({', '.join('?' * len(outcomes))})"] if outcomes else []
        found = self._rows(
            f"SELECT max(session) AS session FROM ({RUNS} WHERE {' AND '.join(terms)})",
            *(*kinds, str(until or date.max), *outcomes),
        )
        with reading(found[0]):
            return None if found[0]["session"] is None else date.fromisoformat(found[0]["session"])

    def latest_run(self, kind: RunKind | None = None) -> RunEntry | None:
        """The run that was started last, of any kind but that of an operator's own order, or None."""
        narrow = {"kind": kind, "kind <>": RunKind.ORDER if kind is None else None}
        found = self._values(RunEntry, RUNS, narrow, "runs.rowid DESC LIMIT 1")
        return found[0] if found else None

    def run(self, run: str) -> RunEntry:
        """A run by its id. Raises MissingData that names the latest ones."""
        found = self.find_run(run)
        if found is None:
            known = [row["id"] for row in self._rows("SELECT id FROM runs ORDER BY rowid DESC LIMIT 5")]
            raise MissingData(f"no run {run} in {self.path}: the latest are {', '.join(known) or '(none)'}")
        return found

    def find_run(self, run: str) -> RunEntry | None:
        """A run by its id; None where there is no such run."""
        found = self._values(RunEntry, RUNS, {"runs.id": run}, "runs.rowid")
        return found[0] if found else None

    def awaited_since(self) -> datetime | None:
        """When a run first ended because entries of the account's history were awaited, with none since that found both
        sides to agree; None where the last one did."""
        agreed = """SELECT coalesce(max(seq), 0) FROM run_states
            WHERE json_extract(extra, '$.differences') IS NULL AND outcome IN ('done', 'waiting', 'halted', 'paused')"""
        awaited = "outcome IS NOT NULL AND json_extract(extra, '$.awaited')"
        row = self._rows(f"SELECT min(time) AS time FROM run_states WHERE {awaited} AND seq > ({agreed})")
        with reading(row[0]):
            return None if row[0]["time"] is None else datetime.fromisoformat(row[0]["time"])

    def counts(self, run: str | None = None) -> dict[str, int]:
        """The number of rows of each kind; of trades, cash flows and closes the account's alone."""
        found = {}
        for table in COUNTED:
            narrow, values = where({"run": run, "book": "" if table in ("fills", "cash_flows", "equity") else None})
            found[table] = self._rows(f"SELECT count(*) AS n FROM {table}{narrow}", *values)[0]["n"]
        return found

    def stretches(self, run: str) -> dict[str, Decimal]:
        """The parts of a backtest in order, with the money that each began with."""
        rows = self._rows("SELECT part, initial_value, run FROM stretches WHERE run = ? ORDER BY rowid", run)
        begun = {}
        for row in rows:
            with reading(row):
                begun[row["part"]] = Decimal(row["initial_value"])
        return begun

    def dropped(self, run: str | None = None) -> tuple[Dropped, ...]:
        """Items of sources that could not be used."""
        return self._values(Dropped, "dropped", {"run": run})

    def notes(self, run: str | None = None) -> tuple[Note, ...]:
        """Remarks that a reader of a run has to know."""
        return self._values(Note, "notes", {"run": run})

    def document(self, run: str, kind: str) -> str | None:
        """A run as one JSON document, as it was written; None where none of that kind was."""
        found = self._rows("SELECT * FROM documents WHERE run = ? AND kind = ?", run, kind)
        return found[0]["json"] if found else None

    def events_after(self, seq: int = 0, run: str | None = None, limit: int = 1000) -> tuple[tuple[int, Event], ...]:
        """The events after a number, at most `limit`, each with its own number: ask again from the last one."""
        narrow, values = where({"run": run}, "seq > ?")
        rows = self._rows(f"SELECT * FROM events{narrow} ORDER BY seq LIMIT ?", *values, seq, limit)
        return tuple((row["seq"], event_of(row, self._answer)) for row in rows)

    def _answer(self, seq: int) -> Mapping[str, Any]:
        """The row of an answer by its number. Raises LookupError."""
        return self._rows("SELECT * FROM answers WHERE seq = ?", seq)[0]

    def event_index(self, after: int = 0) -> tuple[tuple[int, str, str], ...]:
        """The number, the run and the kind of every event after a number, in order, without its content."""
        rows = self._rows("SELECT seq, run, type FROM events WHERE seq > ? ORDER BY seq", after)
        return tuple((row["seq"], row["run"], row["type"]) for row in rows)

    def last_event(self) -> int:
        """The number of the journal's last event, 0 where there is none."""
        number: int = self._rows("SELECT coalesce(max(seq), 0) AS last FROM events")[0]["last"]
        return number

    def last_of(self, kind: type[E]) -> E | None:
        """The last event of a kind, or None."""
        rows = self._rows("SELECT * FROM events WHERE type = ? ORDER BY seq DESC LIMIT 1", kind.__name__)
        found = next((event_of(row, self._answer) for row in rows), None)
        return found if isinstance(found, kind) else None

    def decided_event(self, session: date) -> int | None:
        """The number of the event with which the desk's daily run of a session first ended after a decision; where that
        run did not, the last with which one of a single symbol ended. None where nothing was decided."""
        runs = "SELECT id FROM runs WHERE kind IN ('daily', 'symbol') AND session = ?"
        # The first condition is that of an index.
        events = f"type IN ('DecisionMade', 'RunFinished') AND run IN ({runs})"
        made = f"SELECT min(seq) FROM events WHERE {events} AND type = 'DecisionMade'"
        ended = f"FROM events JOIN runs ON runs.id = run WHERE {events} AND type = 'RunFinished' AND seq > ({made})"
        which = "coalesce(min(CASE WHEN kind = 'daily' THEN seq END), max(seq))"
        number: int | None = self._rows(f"SELECT {which} AS seq {ended}", *[session.isoformat()] * 2)[0]["seq"]
        return number

    def commands(self, *kinds: type[Command]) -> tuple[tuple[datetime, Command], ...]:
        """Every command of the kinds, in order, each with its time; carried out or not."""
        return self._commands(kinds, "ORDER BY seq")

    def last_command(self, *kinds: type[Command]) -> tuple[datetime, Command] | None:
        """The last command of the kinds with its time, or None: one quick query, whoever has written it."""
        return next(iter(self._commands(kinds, "ORDER BY seq DESC LIMIT 1")), None)

    def controls(self, *, after: int = 0, event: int = 0) -> tuple[tuple[int, datetime, Command], ...]:
        """The operator controls after the command of a number, and once the event of a number was written, in order;
        each with the number of the last event before it, and its time."""
        kinds = [kind.__name__ for kind in CONTROLS]
        narrow = f"type IN ({', '.join('?' * len(kinds))}) AND seq > ? AND coalesce(event, 0) >= ?"
        rows = self._rows(f"SELECT * FROM commands WHERE {narrow} ORDER BY seq", *kinds, after, event)
        return tuple((row["event"] or 0, *command_of(row)) for row in rows)

    def last_command_number(self) -> int:
        """The number of the last command of any kind, 0 where there is none."""
        number: int = self._rows("SELECT coalesce(max(seq), 0) AS last FROM commands")[0]["last"]
        return number

    def _commands(self, kinds: Sequence[type[Command]], order: str) -> tuple[tuple[datetime, Command], ...]:
        names = [kind.__name__ for kind in kinds]
        rows = self._rows(f"SELECT * FROM commands WHERE type IN ({', '.join('?' * len(names))}) {order}", *names)
        return tuple(map(command_of, rows))
