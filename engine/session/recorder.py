"""Writes what a run of agents does into its journal, as it happens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from engine.agents.ask import AnswerRecord
from engine.cycle.turn import CycleResult
from engine.domain.decision import DecisionKey, Outcome
from engine.domain.order import Order, OrderState, OrderUpdate, is_final
from engine.domain.run import EquityPoint
from engine.journal.entries import AnswerEntry, OrderEntry
from engine.journal.writer import JournalWriter
from engine.ports import Clock
from engine.simulation.simulated_broker import MarketActivity


class JournalRecorder:
    """The journal's view of one run; `clock` gives the times that are written. Orders go through every state that
    the broker reported."""

    def __init__(self, journal: JournalWriter, run: str, desk: str, clock: Clock) -> None:
        self._journal = journal
        self._run = run
        self._desk = desk
        self._clock = clock
        self._open: dict[str, Order] = {}

    def began(self, part: str, initial_value: Decimal) -> None:
        """A part of the run (warm-up or test) starts with fresh books."""
        self._journal.stretch_started(self._run, part, initial_value)

    def heard(self, record: AnswerRecord, cycle: int = 1) -> None:
        """A model was called."""
        self._journal.answer(answer_entry(record, self._run, cycle, self._clock.now()))

    def decided(self, verdict: CycleResult, cycle: int = 1) -> None:
        """A cycle's decisions stand, with what was recalled for them; its orders are intended and handed over."""
        now = self._clock.now()
        for decision in verdict.decisions:
            self._journal.decision(decision)
            self._journal.recalled(decision, verdict.recollections.get(decision.key, ()))
        for order in verdict.orders:
            self._journal.order_intended(OrderEntry(order, self._run, self._desk, cycle, now))
            self._open[order.id] = order

    def resumed(self, order: Order) -> None:
        """An order that the journal has already is gone on with, from the state that it stands in."""
        self._open[order.id] = order

    def ordered(self, update: OrderUpdate) -> None:
        """The broker said how an order stands."""
        order = self._open.get(update.order_id)
        if order is None:
            return
        now = self._clock.now()
        if order.state is OrderState.INTENDED:
            order = order.moved(OrderState.SUBMITTING)
            self._journal.order_moved(order, now)
        if order.state is OrderState.SUBMITTING and update.state is not OrderState.REJECTED:
            order = order.moved(OrderState.ACKNOWLEDGED)
            self._journal.order_moved(order, now)
        if order.state is not update.state:
            order = order.moved(update.state)
            self._journal.order_moved(order, now, filled=update.filled_quantity, detail=update.detail)
        if is_final(order.state):
            del self._open[order.id]
        else:
            self._open[order.id] = order

    def traded(self, happened: MarketActivity) -> None:
        """A session's open or close brought fills and cash."""
        for update in happened.updates:
            self.ordered(update)
        for fill in happened.fills:
            self._journal.fill(self._run, fill)
        for flow in happened.cash_flows:
            self._journal.cash_flow(self._run, flow)

    def settled(self, books: EquityPoint) -> None:
        """A session's books are closed."""
        self._journal.session_settled(self._run, books)

    def learned(self, rows: Sequence[Outcome]) -> None:
        """What decisions earned is known."""
        for row in rows:
            self._journal.outcome(self._run, row)


def answer_entry(record: AnswerRecord, run: str, cycle: int, time: datetime) -> AnswerEntry:
    """A call of a model as the journal keeps it."""
    asked = record.asked
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
    """Keeps nothing: for audits."""

    def began(self, part: str, initial_value: Decimal) -> None:
        """Nothing."""

    def decided(self, verdict: CycleResult, cycle: int = 1) -> None:
        """Nothing."""

    def ordered(self, update: OrderUpdate) -> None:
        """Nothing."""

    def traded(self, happened: MarketActivity) -> None:
        """Nothing."""

    def settled(self, books: EquityPoint) -> None:
        """Nothing."""

    def learned(self, rows: Sequence[Outcome]) -> None:
        """Nothing."""
