"""Read a journal in any process while the writer writes.

Importing this module loads the standard library and the domain, and nothing heavy.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeVar

from engine.domain.chart import ChartSpec
from engine.domain.decision import Debate, Decision, DecisionKey, Opinion, Outcome
from engine.domain.market import Dropped, Symbol
from engine.domain.model_call import REPAIRED, AnswerRecord
from engine.domain.order import Fill, Order, OrderState, is_final
from engine.domain.run import Adoption, CashFlow, EquityPoint, RunKind, RunOutcome, Trial
from engine.errors import MalformedData, MissingData
from engine.journal.answer_rows import answer_of, chart_of, event_of, event_of_answer, stated_answer_of
from engine.journal.database import reading
from engine.journal.entries import (
    AgentCall,
    BoundAccount,
    CallCost,
    Holding,
    Note,
    OrderEntry,
    OrderMove,
    Recalled,
    RunEntry,
    StatedAnswer,
    UnansweredEntry,
)
from engine.journal.row_reader import RowReader, where
from engine.journal.rows import command_of, equity_of, holdings_of, row_of, stored, unpacked, value_of, version_name
from engine.messages.commands import CONTROLS, Command, Edit, OrderCommand, in_force
from engine.messages.events import AgentAnswered, Event

E = TypeVar("E", bound=Event)

COUNTED = ("events", "answers", "decisions", "orders", "fills", "cash_flows", "equity", "notes")

RUNS = """
    SELECT runs.*, state.outcome, state.value, state.detail, state.model, coalesce(state.extra, '{}') AS extra,
    state.packed,
    CASE WHEN state.outcome IS NOT NULL THEN state.time END AS ended,
    coalesce(json_extract(state.extra, '$.label'), runs.label) AS label
    FROM runs JOIN run_states AS state ON state.seq = (SELECT max(seq) FROM run_states WHERE run = runs.id)"""
"""Every run in its present state, which is its last; one that went on with another model is labelled by both."""


_UNFILLED = ", ".join(f"'{state}'" for state in (OrderState.REJECTED, OrderState.CANCELED, OrderState.EXPIRED))
ORDERS = f"""
    SELECT orders.*, state.state,
    CASE WHEN state.state IN ({_UNFILLED}) THEN coalesce(state.detail, '') ELSE '' END AS ended
    FROM orders
    JOIN order_states AS state ON state.seq = (SELECT max(seq) FROM order_states WHERE order_id = orders.id)"""
"""Every order in its present state, which is its last, with the reason where that is an end before all was filled."""
# Times are texts that sort; those of a broker's fills are by its clock, which may be minutes from the desk's.
EARLY_FILLS = """
    SELECT seq FROM fills WHERE fills.time < (
        SELECT CASE WHEN fills.execution IS NULL THEN min(time)
        ELSE replace(datetime(min(time), '-5 minutes'), ' ', 'T') END
        FROM order_states WHERE order_id = fills.order_id AND state = 'submitting')"""
"""Trades that happened before their orders were sent: there can be none."""


class JournalReader(RowReader):
    """Reader of one journal; a context manager that closes. `run` narrows to a run's id, None means every run of the
    file; sessions are ISO dates of the market's calendar, `first` and `last` both included; rows come in the order in
    which they were written.

    Every method raises MalformedData for a file that turns out to be damaged and TryAgainLater for a locked one.
    """

    # Runs, events and commands

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

    def initial_values(self, run: str) -> dict[str, Decimal]:
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

    def trials(self, first: date | None = None, last: date | None = None, *, returns: bool = True) -> tuple[Trial, ...]:
        """The trials of an index on windows that have a day from `first` to `last`, with or without their returns."""
        narrow, values = where({"first <=": last, "last >=": first})
        return tuple(
            value_of(Trial, row, returns=tuple(json.loads(unpacked(row["returns"]))) if returns else ())
            for row in self._rows(f"SELECT * FROM looks{narrow} ORDER BY seq", *values)
        )

    def document(self, run: str, kind: str) -> str | None:
        """A run as one JSON document, as it was written; None where none of that kind was."""
        found = self._rows("SELECT * FROM documents WHERE run = ? AND kind = ?", run, kind)
        return found[0]["json"] if found else None

    def document_versions(self, run: str, kind: str) -> list[str]:
        """Every version of a run's document of a kind that may change while the run goes on, the latest last; none
        where it was never written."""
        texts: list[str] = []
        while (text := self.document(run, version_name(kind, len(texts)))) is not None:
            texts.append(text)
        return texts

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

    # Decisions, and the opinions and answers that they were made of

    def decisions(
        self,
        run: str | None = None,
        symbol: str | None = None,
        first: date | None = None,
        last: date | None = None,
        part: str | None = None,
    ) -> tuple[Decision, ...]:
        """Decisions by symbol and range of decision sessions."""
        narrow = {"run": run, "symbol": symbol, "part": part, "session >=": first, "session <=": last}
        return self._values(Decision, "decisions", narrow)

    def decided_alone(self, session: date) -> dict[str, str]:
        """The symbols that runs of their own have decided for a session, each with its run."""
        runs = "SELECT id FROM runs WHERE kind = 'symbol' AND session = ?"
        rows = self._rows(
            f"SELECT symbol, run FROM decisions WHERE run IN ({runs}) ORDER BY rowid", session.isoformat()
        )
        return {row["symbol"]: row["run"] for row in rows}

    def opinions(
        self,
        run: str | None = None,
        symbol: str | None = None,
        first: date | None = None,
        last: date | None = None,
        part: str | None = None,
    ) -> tuple[Opinion, ...]:
        """Opinions of all owners by symbol and range of decision sessions."""
        narrow = {"run": run, "symbol": symbol, "part": part, "session >=": first, "session <=": last}
        return self._values(Opinion, "opinions", narrow)

    def debates(
        self,
        run: str | None = None,
        symbol: str | None = None,
        first: date | None = None,
        last: date | None = None,
    ) -> tuple[Debate, ...]:
        """Debates by symbol and range of decision sessions."""
        narrow = {"run": run, "symbol": symbol, "session >=": first, "session <=": last}
        return self._values(Debate, "debates", narrow)

    def answers(self, key: DecisionKey | None = None, run: str | None = None) -> tuple[AnswerRecord, ...]:
        """Every call of a model for one opinion, or of a run, with its prompts and charts."""
        narrow, values = where({"run": run} if key is None else row_of(key))
        prompts: dict[str, str] = {}
        entries = []
        for row in self._rows(f"SELECT * FROM answers{narrow} ORDER BY seq", *values):
            name = row["system"]
            if name not in prompts:
                prompts[name] = self._prompt(name)
            entries.append(answer_of(row | {"system_text": prompts[name]}, self._chart))
        return tuple(entries)

    def agent_calls(self, run: str, session: date) -> tuple[AgentCall, ...]:
        """The calls of a session of a run that agents got answers from, without their texts."""
        columns = "SELECT run, session, cycle, symbol, owner, agent, attempt FROM answers"
        rows = self._rows(f"{columns} WHERE run = ? AND session = ? ORDER BY seq", run, session.isoformat())
        return tuple(value_of(AgentCall, row, key=value_of(DecisionKey, row)) for row in rows)

    def answer_events(self, run: str, session: date, steps: Sequence[str], time: datetime) -> tuple[AgentAnswered, ...]:
        """The events of the answers of a session of a run, without their questions; `steps` are the names of those."""
        rows = self._rows("SELECT * FROM answers WHERE run = ? AND session = ? ORDER BY seq", run, session.isoformat())
        return tuple(event_of_answer(row, step, time) for row, step in zip(rows, steps, strict=True))

    def counted_by_session(self, run: str) -> dict[date, tuple[int, int]]:
        """The number of answers and of decisions of each session of a run."""
        found: dict[date, tuple[int, int]] = {}
        of = "SELECT session, 1 AS answer, 0 AS decision FROM answers WHERE run = ? "
        of += "UNION ALL SELECT session, 0, 1 FROM decisions WHERE run = ?"
        rows = self._rows(
            f"SELECT session, sum(answer) AS answers, sum(decision) AS decisions FROM ({of}) GROUP BY session", run, run
        )
        for row in rows:
            with reading(row):
                found[date.fromisoformat(row["session"])] = row["answers"], row["decisions"]
        return found

    def stated_answers(
        self, run: str | None = None, symbol: str | None = None, first: date | None = None, last: date | None = None
    ) -> tuple[StatedAnswer, ...]:
        """The answers that were taken, by symbol and range of decision sessions, without their questions."""
        narrow = {"run": run, "symbol": symbol, "session >=": first, "session <=": last, "outcome": "answered"}
        conditions, values = where(narrow)
        return tuple(map(stated_answer_of, self._rows(f"SELECT * FROM answers{conditions} ORDER BY seq", *values)))

    def calls(
        self, run: str | None = None, since: datetime | None = None, owner: str | None = None
    ) -> tuple[CallCost, ...]:
        """Every call of a model by its cost, without its texts; those without an answer come last."""
        # The calls of a backtest bear the time of their session.
        month = "iif(run IN (SELECT id FROM runs WHERE kind = 'backtest'), '', substr(time, 1, 7)) AS month"
        columns = f"agent, model, input_tokens, output_tokens, cost, latency, {month}"
        answers = (
            f"SELECT {columns}, cached, cached_input_tokens, reasoning_tokens, outcome = 'abstained' AS abstained, "
            "'' AS kind, 0 AS estimated, failure IS 'refused' AS refused, tier, CASE notes WHEN '' THEN 0 ELSE "
            f"(SELECT count(*) FROM json_each(notes) WHERE value LIKE '{REPAIRED}%') END AS repairs FROM answers"
        )
        others = (
            f"SELECT {columns}, 0 AS cached, 0 AS cached_input_tokens, 0 AS reasoning_tokens, 0 AS abstained, kind, "
            "estimated, 0 AS refused, '' AS tier, 0 AS repairs FROM unanswered"
        )
        narrow = {"run": run, "owner": owner, "time >=": None if since is None else stored(since)}
        return (*self._values(CallCost, answers, narrow), *self._values(CallCost, others, narrow))

    def unanswered(self, key: DecisionKey | None = None, run: str | None = None) -> tuple[UnansweredEntry, ...]:
        """The calls of models that no agent got an answer from: those for one opinion, or of a run."""
        return self._values(UnansweredEntry, "unanswered", {"run": run} if key is None else row_of(key))

    def request_hashes(self, run: str | None = None, *, besides: str | None = None) -> frozenset[str]:
        """The hashes of the recorded answers that a run has, or all runs besides one."""
        narrow, values = where({"run": run, "run <>": besides}, "request_hash <> ''")
        rows = self._rows(f"SELECT DISTINCT request_hash FROM answers{narrow}", *values)
        return frozenset(row["request_hash"] for row in rows)

    def recalled(self, key: DecisionKey) -> tuple[Recalled, ...]:
        """The memories that were recalled for one opinion, layer by layer, best first."""
        together, values = where(row_of(key))
        for row in self._rows(f"SELECT * FROM recalls{together}", *values):
            with reading(row):
                found = json.loads(row["memories"])
            return tuple(value_of(Recalled, row | one | self._memory(one["memory"])) for one in found)
        return ()

    def inputs(self, run: str, cycle: int = 1) -> dict[str, tuple[bytes, ...]]:
        """The data that a run could read in a cycle, by name, in parts; empty where it kept none. Raises MalformedData
        where a part is gone."""
        found: dict[str, tuple[bytes, ...]] = {}
        for row in self._rows("SELECT * FROM inputs WHERE run = ? AND cycle = ? ORDER BY rowid", run, cycle):
            for name, chunks in _chunks_in(row).items():
                found[name] = tuple(self._part(chunk, name) for chunk in chunks)
        return found

    def outcomes(
        self, run: str | None = None, symbol: str | None = None, owner: str | None = None
    ) -> tuple[Outcome, ...]:
        """Outcomes of decisions."""
        return self._values(Outcome, "outcomes", {"run": run, "symbol": symbol, "owner": owner})

    def lost_prompts(self) -> list[str]:
        """The numbers of answers whose system prompt is not there; reads every answer."""
        known = {row["hash"] for row in self._rows("SELECT hash FROM prompts")}
        return [str(row["seq"]) for row in self._rows("SELECT * FROM answers") if row["system"] not in known]

    def lost_inputs(self) -> list[str]:
        """The names of inputs that have a part that is not there."""
        known = {row["hash"] for row in self._rows("SELECT hash FROM chunks")}
        lost = []
        for row in self._rows("SELECT * FROM inputs"):
            lost += [name for name, chunks in _chunks_in(row).items() if not known.issuperset(chunks)]
        return lost

    def _part(self, chunk: str, name: str) -> bytes:
        found = self._rows("SELECT * FROM chunks WHERE hash = ?", chunk)
        if not found:
            raise MalformedData(f"the journal {self.path} lacks a part of {name}: restore a backup")
        with reading(found[0]):
            part: bytes = found[0]["text"].encode()
            return part

    def _prompt(self, name: str) -> str:
        found = self._rows("SELECT text FROM prompts WHERE hash = ?", name)
        if not found:
            raise MalformedData(f"the journal {self.path} lacks the prompt {name}: restore a backup")
        text: str = found[0]["text"]
        return text

    def _memory(self, name: str) -> dict[str, Any]:
        found = self._rows("SELECT * FROM memories WHERE id = ?", name)
        if not found:
            raise MalformedData(f"the journal {self.path} lacks the memory {name}: restore a backup")
        return found[0]

    def _chart(self, name: str) -> ChartSpec:
        found = self._rows("SELECT * FROM charts WHERE fingerprint = ?", name)
        if not found:
            raise MalformedData(f"the journal {self.path} lacks the chart {name}: restore a backup")
        return chart_of(found[0])

    # Orders, trades, the books at each close, and the account at a broker

    def orders(
        self, run: str | None = None, symbol: str | None = None, session: date | None = None, open_only: bool = False
    ) -> tuple[OrderEntry, ...]:
        """Orders in their present state and size, by decision session; `open_only` leaves out those that nothing can
        follow."""
        final = ", ".join(f"'{state}'" for state in OrderState if is_final(state))
        orders = f"{ORDERS} AND state.state NOT IN ({final})" if open_only else ORDERS
        narrow, values = where({"run": run, "symbol": symbol, "session": session})
        edits = self._edits()
        entries = (
            value_of(OrderEntry, row, decided=None)
            for row in self._rows(f"{orders}{narrow} ORDER BY orders.rowid", *values)
        )
        return tuple(
            replace(entry, order=edits[entry.order.id].applied(entry.order), decided=entry.order)
            if entry.order.id in edits
            else entry
            for entry in entries
        )

    def order(self, order_id: str) -> Order | None:
        """An order in its present state, in the size that was decided; None where there is none of that id."""
        found = self._rows(f"{ORDERS} WHERE orders.id = ?", order_id)
        return value_of(OrderEntry, found[0], decided=None).order if found else None

    def edited(self, order: Order) -> Order:
        """An order in the size that an operator has given it, or as it is."""
        edit = self._edits().get(order.id)
        return order if edit is None else edit.applied(order)

    def order_commands(self, order_ids: Collection[str] | None = None) -> tuple[tuple[datetime, OrderCommand], ...]:
        """Every command about an order, in the order in which they were given, each with its time; `order_ids` narrows
        to these orders."""
        kinds, ids = [kind.__name__ for kind in OrderCommand.__subclasses__()], tuple(order_ids or ())
        narrow = f"type IN ({', '.join('?' * len(kinds))})"
        if order_ids is not None:
            narrow += f" AND json_extract(json, '$.order_id') IN ({', '.join('?' * len(ids))})"
        given = map(command_of, self._rows(f"SELECT * FROM commands WHERE {narrow} ORDER BY seq", *kinds, *ids))
        return tuple((time, command) for time, command in given if isinstance(command, OrderCommand))

    def _edits(self) -> Mapping[str, Edit]:
        """The last edit that holds of every order that has one, by order id."""
        if not self._rows("SELECT 1 FROM commands WHERE type = ? LIMIT 1", Edit.__name__):
            return {}
        held = ((name, command) for name, given in in_force(self.order_commands()).items() for _, command in given)
        return {name: command for name, command in held if isinstance(command, Edit)}

    def order_moves(self, order_id: str) -> tuple[OrderMove, ...]:
        """The life of an order, state by state."""
        return self._values(OrderMove, "order_states", {"order_id": order_id})

    def sent_at(self, order_id: str) -> datetime:
        """When an order was last about to be sent, UTC. Raises MissingData for one that never was."""
        sent = [move.time for move in self.order_moves(order_id) if move.state is OrderState.SUBMITTING]
        if not sent:
            raise MissingData(f"the order {order_id} was never sent")
        return sent[-1]

    def orders_sent(self) -> frozenset[str]:
        """The ids of orders that were ever submitted, or were about to be."""
        return frozenset(self.times_sent())

    def times_sent(self) -> dict[str, datetime]:
        """When orders were last about to be sent, UTC, by their ids."""
        moves = self._values(OrderMove, "order_states", {"state": OrderState.SUBMITTING.value})
        return {move.order_id: move.time for move in moves}

    def fills(
        self, run: str | None = None, order_id: str | None = None, part: str | None = None, *, book: str | None = ""
    ) -> tuple[Fill, ...]:
        """Trades of the account, or those allocated to an owner's `book`; of all of them with None."""
        return self._values(Fill, "fills", {"run": run, "order_id": order_id, "part": part, "book": book})

    def early_fills(self) -> tuple[Fill, ...]:
        """Trades of before their orders were sent."""
        return tuple(value_of(Fill, row) for row in self._rows(f"SELECT * FROM fills WHERE seq IN ({EARLY_FILLS})"))

    def fills_entered(self, run: str) -> tuple[Fill, ...]:
        """The account's trades of a run but for those that were booked ahead of it."""
        ahead = "SELECT 1 FROM activities WHERE id = fills.execution AND activities.run <> fills.run"
        rows = f"SELECT * FROM fills WHERE run = ? AND book = '' AND NOT EXISTS ({ahead}) ORDER BY rowid"
        return tuple(value_of(Fill, row) for row in self._rows(rows, run))

    def dated_fills(self, symbol: Symbol) -> tuple[tuple[datetime, Fill], ...]:
        """Trades of a symbol at a broker, each after its time (UTC) there."""
        rows = self._rows(
            "SELECT fills.*, activities.time AS moment FROM fills JOIN activities ON activities.id = fills.execution"
            " WHERE fills.symbol = ? AND fills.book = '' ORDER BY fills.rowid",
            symbol,
        )
        return tuple((datetime.fromisoformat(row["moment"]), value_of(Fill, row)) for row in rows)

    def cash_flows(
        self, run: str | None = None, part: str | None = None, *, book: str | None = ""
    ) -> tuple[CashFlow, ...]:
        """Cash, or shares, that moved without a trade in the account, or in an owner's `book`; in all with None."""
        return self._values(CashFlow, "cash_flows", {"run": run, "part": part, "book": book})

    def equity(self, run: str | None = None, part: str | None = None, book: str | None = "") -> tuple[EquityPoint, ...]:
        """The books at each close, positions and prices included."""
        narrow, values = where({"run": run, "part": part, "book": book})
        return tuple(map(equity_of, self._rows(f"SELECT * FROM equity{narrow} ORDER BY rowid", *values)))

    def closed_session(self) -> date | None:
        """The last session whose books are closed, or None."""
        last = self._rows("SELECT max(session) AS session FROM equity WHERE book = ''")[0]["session"]
        return None if last is None else date.fromisoformat(last)

    def holdings(
        self,
        run: str | None = None,
        symbol: str | None = None,
        first: date | None = None,
        last: date | None = None,
        book: str | None = "",
    ) -> tuple[Holding, ...]:
        """Every price that the books knew at closes, with the quantity held (0 where flat)."""
        narrow, values = where({"run": run, "book": book, "session >=": first, "session <=": last})
        closes = self._rows(f"SELECT * FROM equity{narrow} ORDER BY rowid", *values)
        return tuple(one for row in closes for one in holdings_of(row) if symbol in (None, one.symbol))

    def positions(self) -> tuple[Holding, ...]:
        """The holdings at the last close, of all books together."""
        last = "SELECT run, session FROM equity WHERE book = '' ORDER BY session DESC, rowid DESC LIMIT 1"
        for close in self._rows(last):
            held = self.holdings(close["run"], first=close["session"], last=close["session"])
            return tuple(holding for holding in held if holding.quantity)
        return ()

    def account(self) -> BoundAccount | None:
        """The account that the desk trades in, or None for one that never had any."""
        found = self._values(BoundAccount, "accounts")
        return found[-1] if found else None

    def broker_orders(self) -> dict[str, str]:
        """Our ids of orders by the broker's."""
        return {row["broker_id"]: row["order_id"] for row in self._rows("SELECT * FROM broker_orders")}

    def activities(self) -> dict[str, datetime]:
        """The account activity that is on record: time by id."""
        times = {}
        for row in self._rows("SELECT id, time FROM activities"):
            with reading(row):
                times[row["id"]] = datetime.fromisoformat(row["time"])
        return times

    def adoptions(self) -> tuple[Adoption, ...]:
        """Differences in which a person took the broker's side."""
        return self._values(Adoption, "adoptions")


def _chunks_in(row: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """The hashes of the parts of inputs, by name, in the order they had."""
    with reading(row):
        return dict(json.loads(row["chunks"]))


# Times are texts that sort; those of a broker's fills are by its clock, which may be minutes from the desk's.
