"""The record of a run of agents, written as it happens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from engine.agents.ask import AnswerRecord
from engine.cycle.turn import CycleResult, Turn
from engine.domain.decision import DecisionKey, Outcome
from engine.domain.order import Fill, Order, OrderState, OrderUpdate, is_final
from engine.domain.run import EquityPoint
from engine.execution.venue import SettledSession
from engine.journal.codec import to_json
from engine.journal.entries import AnswerEntry, OrderEntry
from engine.journal.writer import JournalWriter
from engine.ports import Clock
from engine.session.owner_books import BookOrders, BookSettlement
from engine.simulation.simulated_broker import MarketActivity

BOOK_ORDERS = "book orders"
"""The kind of the document that keeps the orders of owners' books, with the session that they were decided on."""


class JournalRecorder:
    """The record of one run in a journal; `clock` gives the times that are written. Orders go through every state that
    the broker reported."""

    def __init__(self, journal: JournalWriter, run: str, desk: str, clock: Clock) -> None:
        self.journal = journal
        self.run = run
        self.desk = desk
        self.clock = clock
        self._open: dict[str, Order] = {}

    def answered(self, record: AnswerRecord, cycle: int = 1) -> None:
        """Keep a call of a model."""
        self.journal.answer(answer_entry(record, self.run, cycle, self.clock.now()))

    def recorded(self) -> CycleResult | None:
        """None: a run whose journal is new decides everything."""
        return None

    def new_fills(self, settled: SettledSession) -> Sequence[Fill]:
        """All fills: no other run trades in these books."""
        return settled.fills

    def began(self, part: str, initial_value: Decimal) -> None:
        """Keep that a part of the run (warm-up or test) starts with fresh books."""
        self.journal.stretch_started(self.run, part, initial_value)

    def opened(self, books: EquityPoint) -> None:
        """Nothing: what a part begins with is kept by `began`."""

    def saw(self, turn: Turn) -> None:
        """Nothing: a backtest has its inputs at hand."""

    def decided(self, turn: Turn, result: CycleResult, books: BookOrders | None = None) -> None:
        """Keep the opinions of all owners with the memories that they were given, the cycle's decisions, and its
        intended orders; with the orders of the owners' books that these net, where there are any."""
        now = self.clock.now()
        for opinion in result.opinions:
            self.journal.opinion(opinion)
            self.journal.recalled(opinion, result.recollections.get(opinion.key, ()))
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
        """Keep what a session brought the owners' books."""
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


def answer_entry(record: AnswerRecord, run: str, cycle: int, time: datetime) -> AnswerEntry:
    """A call of a model as the journal keeps it."""
    asked = record.key
    return AnswerEntry(
        key=DecisionKey(run, asked.session, cycle, asked.symbol, asked.owner),
        time=time,
        agent=asked.agent,
        attempt=record.attempt,
        prompt_hash=record.prompt_hash,
        system=record.system,
        messages=record.messages,
        result=record.result,
        outcome=record.outcome,
        reason=record.reason,
        answer=record.answer,
        charts=record.charts,
        seen=record.seen,
        sample=asked.sample,
        view=record.view_summary,
    )


class Silent:
    """A record of nothing: for audits and forecasts."""

    def recorded(self) -> CycleResult | None:
        """None."""
        return None

    def new_fills(self, settled: SettledSession) -> Sequence[Fill]:
        """All fills."""
        return settled.fills

    def began(self, part: str, initial_value: Decimal) -> None:
        """Nothing."""

    def opened(self, books: EquityPoint) -> None:
        """Nothing."""

    def saw(self, turn: Turn) -> None:
        """Nothing."""

    def decided(self, turn: Turn, result: CycleResult, books: BookOrders | None = None) -> None:
        """Nothing."""

    def allocated(self, settlement: BookSettlement) -> None:
        """Nothing."""

    def ordered(self, update: OrderUpdate) -> None:
        """Nothing."""

    def settled(self, books: EquityPoint, activities: Sequence[MarketActivity]) -> None:
        """Nothing."""

    def learned(self, rows: Sequence[Outcome]) -> None:
        """Nothing."""
