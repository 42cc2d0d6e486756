"""The record of a run: what is kept of each step, whole or not at all, so that a run may be killed anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from engine.agents.ask import QuestionKey
from engine.cycle.turn import CycleResult, Turn
from engine.domain.decision import DecisionKey, Outcome
from engine.domain.json_text import to_json
from engine.domain.market import Symbol
from engine.domain.model_call import AnswerRecord, UnansweredCall
from engine.domain.order import Fill, Order, OrderState, OrderUpdate, is_final
from engine.domain.run import EquityPoint
from engine.execution.controls import approvals
from engine.execution.venue import SettledSession
from engine.journal.entries import OrderEntry, RunEntry, UnansweredEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.messages.events import Publish, RunStarted
from engine.ports import Clock
from engine.session.owner_books import BookOrders, BookSettlement
from engine.session.recorded_inputs import input_parts
from engine.simulation.simulated_broker import MarketActivity

BOOK_ORDERS = "book orders"
"""The kind of the document that keeps the orders of owners' books, with the session that they were decided on."""


class Recorder:
    """The record of a run: what it keeps of each step, and what it kept before it was killed. This one keeps nothing,
    which is enough for audits and forecasts."""

    def recorded(self) -> CycleResult | None:
        """The result of this cycle where it was decided before; None where it has to be decided."""
        return None

    def new_fills(self, settled: SettledSession) -> Sequence[Fill]:
        """The fills of a closed session that no earlier run has published."""
        return settled.fills

    def answered(self, record: AnswerRecord, cycle: int = 1) -> None:
        """Keep a call of a model."""

    def unanswered(self, question: QuestionKey, call: UnansweredCall, cycle: int = 1) -> None:
        """Keep a call of a model that no agent got an answer from."""

    def began(self, part: str, initial_value: Decimal) -> None:
        """Keep that a part of the run (warm-up or test) starts with fresh books."""

    def opened(self, books: EquityPoint) -> None:
        """Keep the first books, of the account or of an owner, where `began` has not."""

    def saw(self, turn: Turn) -> None:
        """Keep the inputs of a cycle within a session before it decides: a killed one goes on with them."""

    def decided(self, turn: Turn, result: CycleResult, books: BookOrders | None = None) -> None:
        """Keep the opinions of all owners with the memories that they were given, their debates, the cycle's decisions,
        and its intended orders; with the orders of the owners' books that these net, where there are any."""

    def ordered(self, update: OrderUpdate) -> None:
        """Keep the state of an order that the broker reported."""

    def settled(self, books: EquityPoint, activities: Sequence[MarketActivity]) -> None:
        """Keep a closed session: what was filled and paid in it, and its books."""

    def allocated(self, settlement: BookSettlement) -> None:
        """Keep a session's settlement of the owners' books."""

    def learned(self, rows: Sequence[Outcome]) -> None:
        """Keep outcomes that became known."""


@dataclass(eq=False)
class JournalRecorder(Recorder):
    """The record of one run in a journal; `clock` gives the times that are written. Orders go through every state that
    the broker reported."""

    journal: JournalWriter
    run: str
    desk: str
    clock: Clock
    _open: dict[str, Order] = field(default_factory=dict, init=False)

    def answered(self, record: AnswerRecord, cycle: int = 1) -> None:
        """Keep a call of a model."""
        self.journal.answer(record.in_run(self.run, cycle, self.clock.now()))

    def unanswered(self, question: QuestionKey, call: UnansweredCall, cycle: int = 1) -> None:
        """Keep a call of a model that no agent got an answer from."""
        key = DecisionKey(self.run, question.session, cycle, question.symbol, question.owner)
        self.journal.unanswered(UnansweredEntry(key=key, time=self.clock.now(), agent=question.agent, call=call))

    def began(self, part: str, initial_value: Decimal) -> None:
        """Keep that a part of the run (warm-up or test) starts with fresh books."""
        self.journal.stretch_started(self.run, part, initial_value)

    def decided(self, turn: Turn, result: CycleResult, books: BookOrders | None = None) -> None:
        """Keep the opinions of all owners with the memories that they were given, their debates, the cycle's decisions,
        and its intended orders; with the orders of the owners' books that these net, where there are any."""
        now = self.clock.now()
        for opinion in result.opinions:
            self.journal.opinion(opinion)
            self.journal.recalled(opinion, result.recollections.get(opinion.key, ()))
        for debate in result.debates:
            self.journal.debate(debate)
        for decision in result.decisions:
            self.journal.decision(decision)
        if books is not None:
            self.journal.document(self.run, f"{BOOK_ORDERS} {turn.session}", to_json(books))
        owners = {(made.key.symbol, made.book): made.key.owner for made in result.decisions}
        for order in result.orders:
            owner = owners.get((order.symbol, order.book), "")
            self.journal.order_intended(
                OrderEntry(order=order, run=self.run, desk=self.desk, cycle=turn.number, time=now, owner=owner)
            )
            self._open[order.id] = order

    def resumed(self, order: Order) -> None:
        """Go on with an order that the journal has already, from its present state."""
        self._open[order.id] = order

    def ordered(self, update: OrderUpdate) -> None:
        """Keep the state of an order that the broker reported."""
        order = self._open.get(update.order_id)
        if order is None:
            return
        now = self.clock.now()
        if order.state is OrderState.INTENDED:
            order = order.moved(OrderState.SUBMITTING)
            self.journal.order_moved(order, now)
        if order.state is OrderState.SUBMITTING and update.state is not OrderState.REJECTED:
            order = order.moved(OrderState.ACKNOWLEDGED)
            self.journal.order_moved(order, now)
        if order.state is not update.state:
            order = order.moved(update.state)
            self.journal.order_moved(order, now, filled=update.filled_quantity, detail=update.detail)
        if is_final(order.state):
            del self._open[order.id]
        else:
            self._open[order.id] = order

    def settled(self, books: EquityPoint, activities: Sequence[MarketActivity]) -> None:
        """Keep a closed session: what was filled and paid in it, and its books."""
        for activity in activities:
            for update in activity.updates:
                self.ordered(update)
            for fill in activity.fills:
                self.journal.fill(self.run, fill)
            for flow in activity.cash_flows:
                self.journal.cash_flow(self.run, flow)
        self.journal.session_settled(self.run, books)

    def allocated(self, settlement: BookSettlement) -> None:
        """Keep a session's settlement of the owners' books."""
        for fill in settlement.fills:
            self.journal.fill(self.run, fill)
        for flow in settlement.cash_flows:
            self.journal.cash_flow(self.run, flow)
        for point in settlement.points:
            self.journal.session_settled(self.run, point)

    def learned(self, rows: Sequence[Outcome]) -> None:
        """Keep outcomes that became known."""
        for row in rows:
            self.journal.outcome(self.run, row)


def begin_run(
    journal: JournalWriter,
    publish: Publish,
    entry: RunEntry,
    *,
    window: tuple[date, date],
    sessions: int,
    steps: Sequence[str],
    symbols: Sequence[Symbol] | None = None,
) -> None:
    """Write down, and publish, that a run over a window of so many sessions has begun or goes on; `steps` are the
    questions that its agents are asked, `symbols` those that are to be decided, where that is a part of the entry's."""
    journal.run_started(entry)
    publish(
        RunStarted(
            run=entry.id,
            time=entry.started,
            kind=entry.kind,
            name=entry.name,
            label=entry.label,
            symbols=entry.symbols if symbols is None else tuple(symbols),
            first=window[0],
            last=window[1],
            sessions=sessions,
            steps=tuple(steps),
        )
    )


@dataclass(eq=False, kw_only=True)
class DeskRecorder(JournalRecorder):
    """A JournalRecorder that goes on where a killed run stopped, and keeps a decision together with its inputs.
    `reader` reads the same journal; of `market` the last `bars` bars of a symbol are kept."""

    reader: JournalReader
    market: Market
    bars: int

    def recorded(self) -> CycleResult | None:
        """The decisions of the run so far, and its orders in their present states; None where nothing was decided."""
        decided = self.reader.decisions(run=self.run)
        if not decided:
            return None
        orders = tuple(entry.order for entry in self.reader.orders(run=self.run))
        return CycleResult(decided, orders, self.reader.opinions(run=self.run))

    def new_fills(self, settled: SettledSession) -> Sequence[Fill]:
        """The fills that this run has booked: others were published when they were booked."""
        own = frozenset(self.reader.fills_entered(self.run))
        return [fill for fill in settled.fills if fill in own]

    def opened(self, books: EquityPoint) -> None:
        """Keep the first books, of the desk or of an owner."""
        self.journal.session_settled(self.run, books)

    def settled(self, books: EquityPoint, activities: Sequence[MarketActivity]) -> None:
        """Keep a closed session, whole or not at all."""
        with self.journal.together():
            super().settled(books, activities)

    def saw(self, turn: Turn) -> None:
        """Keep the inputs of a cycle within a session, once; those of a daily run are kept with its decisions."""
        if turn.within_session and not self.reader.inputs(self.run, turn.number):
            self._keep_inputs(turn)

    def allocated(self, settlement: BookSettlement) -> None:
        """Keep a session's settlement of the owners' books, whole or not at all."""
        with self.journal.together():
            super().allocated(settlement)

    def decided(self, turn: Turn, result: CycleResult, books: BookOrders | None = None) -> None:
        """Keep decisions with their inputs; a later cycle takes the place of what earlier ones have not sent."""
        with self.journal.together():
            if turn.within_session:
                self._supersede(turn)
            else:
                self._keep_inputs(turn)
            super().decided(turn, result, books)

    def _keep_inputs(self, turn: Turn) -> None:
        self.journal.inputs(self.run, turn.number, input_parts(turn, self.market, self.bars))

    def _supersede(self, turn: Turn) -> None:
        """End orders that earlier cycles of the session intended, have not sent, and nobody has approved."""
        waiting = self.reader.orders(session=turn.session, open_only=True)
        approved = approvals(self.reader)
        for entry in waiting:
            order, approval = entry.order, approved.get(entry.order.id)
            sent = order.state is not OrderState.INTENDED
            if entry.cycle >= turn.number or sent or (approval is not None and approval.approved):
                continue
            self.expire(order, f"cycle {turn.number} of the session has decided since")

    def expire(self, order: Order, detail: str) -> None:
        self.journal.order_moved(order.moved(OrderState.EXPIRED), self.clock.now(), detail=detail)
