"""Write the journal: methods named after what happened, each all or nothing.

A desk's journal is committed, and synced to the disk, before a method returns: an order that is sent has always been
written down before. A backtest's is committed in batches, a fraction of a second behind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from engine.domain.brokerage import Activity
from engine.domain.decision import Debate, Decision, Opinion, Outcome, Recollection
from engine.domain.json_text import to_json
from engine.domain.market import Dropped
from engine.domain.model_call import AnswerRecord
from engine.domain.order import MOVES, Fill, Order, OrderState
from engine.domain.run import (
    Adoption,
    CashFlow,
    EquityPoint,
    ModelUse,
    Result,
    RunKind,
    RunOutcome,
    RunPart,
    Trial,
)
from engine.errors import InvariantBroken
from engine.journal.answer_rows import answer_row, charts_in, event_row
from engine.journal.entries import BoundAccount, OrderEntry, OrderMove, RunEntry, UnansweredEntry
from engine.journal.rows import Row, packed, positions_text, row_of, stored, version_name
from engine.journal.schema import DECISION_KEY, LIVE, TEST, WARM_UP
from engine.journal.store import Condition, RowStore
from engine.messages.commands import Command, OrderCommand
from engine.messages.events import AgentAnswered, Event

RUN_STATE = ("outcome", "value", "detail", "model", "extra")
"""Fields of a run that change: each state is a row of its own."""
RETURN_DIGITS = 10
"""Decimal places of a stored return."""


class JournalWriter(RowStore):
    """Writer of one journal; belongs to one thread. A context manager that commits and closes.

    Every method raises TryAgainLater where another process holds the write lock for longer than `wait` seconds,
    InvariantBroken for what contradicts the journal, and DataError where the disk refuses.
    """

    def backtest_result(self, run: str, result: Result, time: datetime, *, light: bool = False) -> None:
        """A backtest came to its result: write all of it, except the parts that were written down as they went, and
        finish the run; a light one has its document alone."""
        self.flush()
        for part, run_part in () if light else ((WARM_UP, result.warm_up), (TEST, result.test)):
            if run_part is not None and not self._find("stretches", {"run": run, "part": part}):
                self._run_part(run, part, run_part)
        for dropped in () if light else result.dropped:
            self.dropped(run, dropped)
        for note in () if light else result.notes:
            self.noted(run, "info", note)
        equity = result.test.equity
        self.run_finished(
            run,
            RunOutcome.INTERRUPTED if result.interrupted else RunOutcome.DONE,
            time,
            value=equity[-1].value if equity else result.test.initial_value,
            model=result.model,
            extra=result.extra,
        )

    def _run_part(self, run: str, part: str, run_part: RunPart) -> None:
        self.part_started(run, part, run_part.initial_value)
        for opinion in run_part.opinions:
            self.opinion(opinion)
        for decision in run_part.decisions:
            self.decision(decision)
        for fill in (*run_part.fills, *run_part.book_fills):
            self._write(("fills", self._fill_row(run, fill, self._owners.get(fill.order_id, ""))))
        for flow in run_part.cash_flows:
            self.cash_flow(run, flow)
        for point in (*run_part.equity, *run_part.books):
            self._write(("equity", self._close_row(run, point)))

    # Runs, events and commands

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

    def part_started(self, run: str, part: str, initial_value: Decimal) -> None:
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

    def keep_version(self, run: str, kind: str, text: str) -> None:
        """A run's document of a kind may have changed: keep the version, unless the last one is the same."""
        number, last = 0, None
        while (found := self._find("documents", {"run": run, "kind": version_name(kind, number)})) is not None:
            number, last = number + 1, found["json"]
        if text != last:
            self.document(run, version_name(kind, number), text)

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

    def trials(self, trials: Iterable[Trial]) -> None:
        """A strategy or a preset was evaluated on windows, all looks or none."""
        rows = ((trial, [round(value, RETURN_DIGITS) for value in trial.returns]) for trial in trials)
        self._write(*(("looks", row_of(trial) | {"returns": packed(to_json(returns))}) for trial, returns in rows))

    # Answers, opinions, decisions and outcomes

    def answer(self, entry: AnswerRecord) -> bool:
        """A model was called; its system prompt and charts are stored once, however often they are used. False where
        the answer is a recorded one that the journal has for the same question: its run was killed, and goes on."""
        if entry.result.cached and entry.result.request_hash and not self._batched:
            question = {"agent": entry.agent, "attempt": entry.attempt, "sample": entry.sample}
            question["request_hash"] = entry.result.request_hash
            if self._find("answers", row_of(entry.key) | question) is not None:
                return False
        system = hashlib.sha256(entry.system.encode("utf-8", "backslashreplace")).hexdigest()
        self._write_content("prompts", system, {"hash": system, "text": entry.system})
        for name, chart in charts_in(entry).items():
            if name not in self._contents:
                self._write_content("charts", name, {"fingerprint": name, "json": chart.text()})
        self._write(("answers", answer_row(entry, system)))
        return True

    def unanswered(self, entry: UnansweredEntry) -> None:
        """A model was called, and no agent got an answer."""
        self._write(("unanswered", row_of(entry)))

    def opinion(self, opinion: Opinion) -> bool:
        """An owner has an opinion, overruled or not; False where the journal has it already. Raises InvariantBroken
        for another opinion under the same key."""
        return self._write_once("opinions", row_of(opinion) | {"part": self._part(opinion.key.run)}, DECISION_KEY)

    def decision(self, decision: Decision) -> bool:
        """A decision was made and limited; False where the journal has it already. Raises InvariantBroken for another
        decision under the same key."""
        return self._write_once("decisions", row_of(decision) | {"part": self._part(decision.key.run)}, DECISION_KEY)

    def debate(self, debate: Debate) -> bool:
        """Owners debated a symbol; False where the journal has it already. Raises InvariantBroken for another debate
        under the same key."""
        return self._write_once("debates", row_of(debate), DECISION_KEY)

    def recalled(self, rests: Decision | Opinion, memories: Iterable[Recollection]) -> bool:
        """Memories were recalled for an opinion, or for the decision of a single owner; False where the journal has
        them already."""
        key = row_of(rests.key)
        if self._find("recalls", key) is not None:
            return False
        found = {memory.id: memory for memory in memories}.values()
        for memory in found:
            text = {"id": memory.id, "kind": memory.kind, "written": memory.session, "text": memory.text}
            self._write_content("memories", memory.id, text)
        rows = (row_of(one, "kind", "session", "text", "owner") | {"cited": one.id in rests.evidence} for one in found)
        if found:
            told = [{name: stored(value) for name, value in row.items()} for row in rows]
            self._write(("recalls", key | {"memories": told}))
        return True

    def inputs(self, run: str, cycle: int, seen: Mapping[str, Sequence[bytes]]) -> None:
        """A run read its inputs in a cycle, by name: parts that are stored once, whichever runs have read them too."""
        names: dict[str, list[str]] = {}
        for name, parts in seen.items():
            names[name] = [hashlib.sha256(part).hexdigest()[:32] for part in parts]
            for chunk, part in zip(names[name], parts, strict=True):
                self._write_content("chunks", chunk, {"hash": chunk, "text": part.decode()})
        self._write(("inputs", {"run": run, "cycle": cycle, "chunks": list(names.items())}))

    def outcome(self, run: str, outcome: Outcome) -> bool:
        """The outcome of a decision became known; `run` is the run that settled it. False where it is known
        already."""
        key = ("run", "decision_session", "symbol", "owner", "cycle", "horizon")
        return self._write_once("outcomes", row_of(outcome) | {"run": run}, key)

    # Orders with their states, trades, the books at each close, and the account at a broker

    def order_intended(self, entry: OrderEntry) -> bool:
        """An order is about to be sent; False where the journal has it already (an id is burnt for ever: go on from
        its present state). Raises InvariantBroken for another order under the same id."""
        row, before = (
            row_of(entry, "order", "decided", "ended") | row_of(entry.order, "state"),
            self._find("orders", {"id": entry.order.id}),
        )
        if before is not None:
            terms = [column for column in row if column not in ("run", "owner", "time")]
            return self._same("orders", {column: row[column] for column in terms}, before)
        self._owners[entry.order.id] = entry.owner
        move = OrderMove(entry.order.id, entry.time, entry.order.state)
        self._write(("orders", row), ("order_states", row_of(move)))
        return True

    def order_moved(self, order: Order, time: datetime, *, filled: Decimal = Decimal(0), detail: str = "") -> None:
        """An order entered its present state. Raises InvariantBroken where the journal's state of it cannot go
        there."""
        self._write_if("order_states", row_of(OrderMove(order.id, time, order.state, filled, detail)), _legal(order))

    def order_submitting(self, order: Order, time: datetime, *, seen: int) -> bool:
        """An order is about to be sent; False where a command came after the number `seen`, which has to be read before
        anything is sent. Raises InvariantBroken as `order_moved` does."""
        legal, last = _legal(order), "(SELECT coalesce(max(seq), 0) FROM commands)"
        unchanged = Condition(f"{legal.sql} AND {last} = ?", (*legal.values, seen))
        if self._insert_now_if("order_states", row_of(OrderMove(order.id, time, order.state)), unchanged):
            return True
        if self._last("commands") == seen:
            raise InvariantBroken(legal.complaint)
        return False

    def fill(self, run: str, fill: Fill, execution: str | None = None) -> bool:
        """A trade happened. `execution` is the broker's id of it, where there is one: an execution that is reported
        twice is written once (False)."""
        reported = {"order_id": fill.order_id, "execution": execution}
        if execution is not None and self._find("fills", reported) is not None:
            return False
        self._write(("fills", self._fill_row(run, fill, self._owner(fill.order_id), execution)))
        return True

    def _fill_row(self, run: str, fill: Fill, owner: str, execution: str | None = None) -> Row:
        return row_of(fill) | {"run": run, "part": self._part(run), "execution": execution, "owner": owner}

    def cash_flow(self, run: str, flow: CashFlow, execution: str | None = None) -> None:
        """Cash, or shares, moved without a trade. `execution` is the broker's id of it, where there is one."""
        self._write(("cash_flows", row_of(flow) | {"run": run, "part": self._part(run), "execution": execution}))

    def session_settled(self, run: str, point: EquityPoint) -> bool:
        """A session's books are closed; False where they were closed alike already. A desk whose owners have books of
        their own closes each of them, and all together under no book's name."""
        return self._write_once("equity", self._close_row(run, point), ("run", "session", "book"))

    def _close_row(self, run: str, point: EquityPoint) -> Row:
        key = {"run": run, "session": point.session, "book": point.book, "owner": point.book}
        money = {"value": point.value, "cash": point.portfolio.cash, "money_step": point.portfolio.money_step}
        return key | money | {"part": self._part(run), "positions": positions_text(point)}

    def account_bound(self, account: BoundAccount) -> None:
        """The desk trades in this account from now on."""
        self._write(("accounts", row_of(account)))

    def broker_order(self, order_id: str, broker_id: str) -> bool:
        """The broker has an order under an id of its own; False where that is known."""
        return self._write_once("broker_orders", {"broker_id": broker_id, "order_id": order_id}, ("broker_id",))

    def activity(self, run: str, activity: Activity, booked: bool) -> None:
        """The account's history has a new activity; `booked` where a trade or a cash flow is made of it. Raises
        InvariantBroken for one that is on record."""
        self._write(("activities", row_of(activity) | {"run": run, "booked": booked}))

    def adopted(self, run: str, adoption: Adoption, time: datetime) -> None:
        """A person took the broker's side in a difference."""
        self._write(("adoptions", row_of(adoption) | {"run": run, "time": time}))

    def _owner(self, order_id: str) -> str:
        """The owner who decided an order; empty where no one did, or the journal does not have it."""
        if order_id not in self._owners:
            order = self._find("orders", {"id": order_id})
            self._owners[order_id] = "" if order is None else order["owner"]
        return self._owners[order_id]


def _legal(order: Order) -> Condition:
    """The condition that the journal's state of an order can go to its present one."""
    before = [state.value for state in OrderState if order.state in MOVES[state]]
    return Condition(
        f"""(SELECT state FROM order_states WHERE order_id = ? ORDER BY seq DESC LIMIT 1)
        IN ({", ".join("?" * len(before))})""",
        (order.id, *before),
        f"order {order.id} is not in the journal, or cannot become {order.state} from its present state",
    )
