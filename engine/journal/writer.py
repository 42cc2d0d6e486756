"""The one who writes the journal: methods named after what happened, each all or nothing.

A desk's journal is committed, and synced to the disk, before a method returns: an order that is sent has always been
written down before. A backtest's is committed in batches, a fraction of a second behind.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from engine.domain.brokerage import Activity
from engine.domain.decision import Decision, Outcome
from engine.domain.market import Dropped
from engine.domain.order import MOVES, Fill, Order, OrderState
from engine.domain.recollection import Recollection
from engine.domain.run import (
    Adoption,
    CashFlow,
    EquityPoint,
    ModelUse,
    Result,
    RunKind,
    RunOutcome,
    Stretch,
)
from engine.errors import InvariantBroken
from engine.journal import account_rows, book_rows, decision_rows
from engine.journal.codec import moment, text_or_none, to_json
from engine.journal.database import WAIT
from engine.journal.entries import AnswerEntry, BoundAccount, OrderEntry, OrderMove, RunEntry
from engine.journal.migrations import DECISION_KEY, LIVE, TEST, WARM_UP
from engine.journal.store import RowStore
from engine.messages.commands import Command
from engine.messages.events import Event, to_plain


class JournalWriter:
    """Writes one journal; belongs to one thread. A context manager that commits and closes.

    Every method raises TryAgainLater where another process holds the write lock for longer than `wait` seconds,
    InvariantBroken for what contradicts the journal, and DataError where the disk refuses.
    """

    def __init__(self, path: Path, *, batched: bool = False, wait: float = WAIT) -> None:
        """Opens or creates a journal and brings it to this program's version; `batched` is for backtests. Raises
        MalformedData for a file that is damaged or no journal, ConfigError for a journal of a newer program."""
        self.path = path
        self._batched = batched
        self._store = RowStore(path, batched=batched, wait=wait)
        self._parts: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Commits what is waiting and closes."""
        self._store.close()

    # Runs

    def run_started(self, run: RunEntry) -> bool:
        """A run began, or (False) goes on after it was killed, interrupted, failed or halted. Raises InvariantBroken
        for one that was done."""
        self._parts[run.id] = TEST if run.kind is RunKind.BACKTEST else LIVE
        before = self._store.find("runs", {"id": run.id})
        if before is None:
            self._store.write(("runs", decision_rows.run_row(run)))
        elif before["outcome"] in (RunOutcome.DONE, RunOutcome.SKIPPED):
            raise InvariantBroken(f"the run {run.id} is {before['outcome']} in {self.path}: it cannot start again")
        else:
            self._store.update(
                "UPDATE runs SET ended = NULL, outcome = NULL, detail = '' WHERE id = ?",
                (run.id,),
                f"the run {run.id} is gone from {self.path}",
            )
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
        """A run ended; `extra` holds JSON's types only."""
        ends = {
            "ended": moment(time),
            "outcome": outcome.value,
            "value": text_or_none(value),
            "detail": detail,
            "model": None if model is None else to_json(model),
            "extra": to_json(extra) if extra else None,
        }
        self._store.update(
            f"UPDATE runs SET {', '.join(f'{column} = ?' for column in ends)} WHERE id = ?",
            (*ends.values(), run),
            f"there is no run {run} in {self.path} to finish",
        )
        self.flush()

    def stretch_started(self, run: str, part: str, initial_value: Decimal) -> None:
        """A part of a backtest (WARM_UP or TEST) began with that much money: what follows belongs to it."""
        self._parts[run] = part
        row = {"run": run, "part": part, "initial_value": str(initial_value)}
        self._store.write_once("stretches", row, ("run", "part"))

    def backtest_result(self, run: str, result: Result, time: datetime) -> None:
        """A backtest came to its result: writes all of it, except the stretches that were written down as they went,
        and finishes the run."""
        self.flush()
        for part, stretch in ((WARM_UP, result.warm_up), (TEST, result.test)):
            if stretch is not None and not self._store.find("stretches", {"run": run, "part": part}):
                self._stretch(run, part, stretch)
        for dropped in result.dropped:
            self.dropped(run, dropped)
        for note in result.notes:
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

    def dropped(self, run: str, dropped: Dropped) -> None:
        """Items of a source could not be used."""
        row = {"run": run, "source": dropped.source, "reason": dropped.reason, "count": dropped.count}
        self._store.write(("dropped", row))

    def noted(self, run: str, level: str, text: str, time: datetime | None = None) -> None:
        """Something that a reader of the run has to know; level is `info`, `warning` or `error`."""
        row = {"run": run, "time": None if time is None else moment(time), "level": level, "text": text}
        self._store.write(("notes", row))

    def document(self, run: str, kind: str, text: str) -> None:
        """A run as one JSON document; written once. Raises InvariantBroken where another stands already."""
        self._store.write_once("documents", {"run": run, "kind": kind, "json": text}, ("run", "kind"))

    # Where processes meet

    def event(self, event: Event) -> None:
        """Something happened; events that may be lost are not kept."""
        if event.durable:
            kind = type(event).__name__
            row = {"run": event.run, "time": moment(event.time), "type": kind, "json": to_json(to_plain(event))}
            self._store.write(("events", row))

    def command(self, command: Command, time: datetime) -> int:
        """A person or a schedule asked for something; returns its number."""
        row = {"time": moment(time), "type": type(command).__name__, "json": to_json(command), "done": None}
        return self._store.insert_numbered("commands", row)

    def command_done(self, seq: int, time: datetime) -> bool:
        """A command was carried out; False where another process had done so already."""
        done = "UPDATE commands SET done = ? WHERE seq = ? AND done IS NULL"
        return self._store.change(done, (moment(time), seq)) == 1

    # Decisions

    def answer(self, entry: AnswerEntry) -> bool:
        """A model was called; its system prompt and charts are kept once, however often they are used. False where the
        answer is a recorded one that the journal has for the same question: its run was killed, and goes on."""
        if entry.result.cached and entry.result.request_hash and not self._batched:
            asked = {"agent": entry.agent, "attempt": entry.attempt, "sample": entry.sample}
            said = {"request_hash": entry.result.request_hash}
            if self._store.find("answers", decision_rows.key_row(entry.key) | asked | said) is not None:
                return False
        system = hashlib.sha256(entry.system.encode("utf-8", "backslashreplace")).hexdigest()
        self._store.keep("prompts", system, {"hash": system, "text": entry.system})
        for fingerprint, chart in decision_rows.charts_in(entry).items():
            if not self._store.keeps(fingerprint):
                self._store.keep("charts", fingerprint, decision_rows.chart_row(fingerprint, chart))
        self._store.write(("answers", decision_rows.answer_row(entry, system)))
        return True

    def decision(self, decision: Decision) -> bool:
        """A decision stands after the limits; False where the journal has it already. Raises InvariantBroken for
        another decision under the same key."""
        row = decision_rows.decision_row(decision) | {"part": self._part(decision.key.run)}
        return self._store.write_once("decisions", row, DECISION_KEY)

    def recalled(self, decision: Decision, memories: Iterable[Recollection]) -> bool:
        """What memory brought up for a decision; False where the journal has it already."""
        if self._store.find("recollections", decision_rows.key_row(decision.key)) is not None:
            return False
        for memory in {memory.id: memory for memory in memories}.values():
            self._store.keep("memories", memory.id, decision_rows.memory_row(memory))
            row = decision_rows.recalled_row(decision.key, memory, memory.id in decision.evidence)
            self._store.write(("recollections", row))
        return True

    def inputs(self, run: str, cycle: int, seen: Mapping[str, Sequence[bytes]]) -> None:
        """What a run could read in a cycle, by name: parts that are kept once, whoever has read them too."""
        for name, parts in seen.items():
            hashes = [hashlib.sha256(part).hexdigest()[:32] for part in parts]
            for known, part in zip(hashes, parts, strict=True):
                self._store.keep("chunks", known, {"hash": known, "data": zlib.compress(part, 9)})
            self._store.write(("inputs", {"run": run, "cycle": cycle, "name": name, "chunks": to_json(hashes)}))

    def outcome(self, run: str, outcome: Outcome) -> bool:
        """What a decision earned became known; `run` is the run that settled it. False where it is known already."""
        row = decision_rows.outcome_row(outcome) | {"run": run}
        return self._store.write_once("outcomes", row, ("run", "decision_session", "symbol", "owner"))

    # Orders and books

    def order_intended(self, entry: OrderEntry) -> bool:
        """An order is about to be sent; False where the journal has it already (an id is burnt for ever: go on from
        the state that it stands in). Raises InvariantBroken for another order under the same id."""
        order, known = book_rows.order_row(entry), self._store.find("orders", {"id": entry.order.id})
        if known is not None:
            terms = [c for c in order if c not in ("run", "state", "time")]
            return self._store.same("orders", {c: order[c] for c in terms}, known)
        move = OrderMove(entry.order.id, entry.time, entry.order.state)
        self._store.write(("orders", order), ("order_moves", book_rows.move_row(move)))
        return True

    def order_moved(self, order: Order, time: datetime, *, filled: Decimal = Decimal(0), detail: str = "") -> None:
        """An order entered the state that it is in now. Raises InvariantBroken where the journal's state of it cannot
        go there."""
        before = [state.value for state in OrderState if order.state in MOVES[state]]
        marks = ", ".join("?" * len(before))
        self._store.update(
            f"UPDATE orders SET state = ? WHERE id = ? AND state IN ({marks})",
            (order.state.value, order.id, *before),
            f"order {order.id} is not in the journal, or cannot become {order.state} from where it stands",
        )
        self._store.write(("order_moves", book_rows.move_row(OrderMove(order.id, time, order.state, filled, detail))))

    def fill(self, run: str, fill: Fill, execution: str | None = None) -> bool:
        """A trade happened. `execution` is the broker's id of it, where there is one: an execution that is told of
        twice is written once (False)."""
        known = {"order_id": fill.order_id, "execution": execution}
        if execution is not None and self._store.find("fills", known) is not None:
            return False
        row = book_rows.fill_row(fill) | {"run": run, "part": self._part(run), "execution": execution}
        self._store.write(("fills", row))
        return True

    def cash_flow(self, run: str, flow: CashFlow, execution: str | None = None) -> None:
        """Cash, or shares, moved without a trade. `execution` is the broker's id of it, where there is one."""
        row = book_rows.cash_flow_row(flow) | {"run": run, "part": self._part(run), "execution": execution}
        self._store.write(("cash_flows", row))

    def session_settled(self, run: str, point: EquityPoint) -> bool:
        """A session's books are closed; False where they were closed alike already."""
        key = {"run": run, "session": point.session.isoformat()}
        row = book_rows.equity_row(point) | key | {"part": self._part(run)}
        known = self._store.find("equity", key)
        if known is not None:
            return self._store.same("equity", row, known)
        self._store.write(("equity", row), *(("positions", p | key) for p in book_rows.position_rows(point)))
        return True

    # A broker's account

    def account_bound(self, account: BoundAccount) -> None:
        """The desk trades in this account from now on."""
        self._store.write(("accounts", account_rows.bound_row(account)))

    def broker_order(self, order_id: str, broker_id: str) -> bool:
        """The broker has an order under an id of its own; False where that is known."""
        return self._store.write_once("broker_orders", {"broker_id": broker_id, "order_id": order_id}, ("broker_id",))

    def activity(self, run: str, activity: Activity, booked: bool) -> None:
        """The account's history told of something, for the first time; `booked` where a trade or a cash flow is made
        of it. Raises InvariantBroken for one that is known."""
        self._store.write(("activities", account_rows.activity_row(activity) | {"run": run, "booked": int(booked)}))

    def adopted(self, run: str, adoption: Adoption, time: datetime) -> None:
        """A person took the broker's side in a difference."""
        row = account_rows.adoption_row(adoption) | {"run": run, "time": moment(time)}
        self._store.write(("adoptions", row))

    def together(self) -> AbstractContextManager[None]:
        """A block whose writes are committed at its end as one, or not at all; they are not seen before."""
        return self._store.together()

    def flush(self) -> None:
        """Commits all that is waiting."""
        self._store.flush()

    def _part(self, run: str) -> str:
        return self._parts.get(run, LIVE)

    def _stretch(self, run: str, part: str, stretch: Stretch) -> None:
        self.stretch_started(run, part, stretch.initial_value)
        for decision in stretch.decisions:
            self.decision(decision)
        for fill in stretch.fills:
            self.fill(run, fill)
        for flow in stretch.cash_flows:
            self.cash_flow(run, flow)
        for point in stretch.equity:
            self.session_settled(run, point)
