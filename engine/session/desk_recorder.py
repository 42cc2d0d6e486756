"""The record of one run of a desk: whole steps, or none of them, so that a run may be killed anywhere."""

from __future__ import annotations

from collections.abc import Sequence

from engine.cycle.turn import CycleResult, Turn
from engine.domain.order import Fill, Order, OrderState
from engine.domain.run import EquityPoint
from engine.execution.controls import approvals
from engine.execution.venue import SettledSession
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.ports import Clock
from engine.session.inputs import input_parts
from engine.session.owner_books import BookOrders, BookSettlement
from engine.session.recorder import JournalRecorder
from engine.simulation.simulated_broker import MarketActivity


class DeskRecorder(JournalRecorder):
    """A JournalRecorder that goes on where a killed run stopped, and keeps a decision together with its inputs."""

    def __init__(
        self,
        journal: JournalWriter,
        run: str,
        desk: str,
        clock: Clock,
        *,
        reader: JournalReader,
        market: Market,
        bars: int,
    ) -> None:
        """`market` and `bars` say which inputs are kept: how many bars of a symbol are read."""
        super().__init__(journal, run, desk, clock)
        self._reader = reader
        self._market = market
        self._bars = bars

    def recorded(self) -> CycleResult | None:
        """The decisions of the run so far, and its orders in their present states; None where nothing was decided."""
        decided = self._reader.decisions(run=self.run)
        if not decided:
            return None
        orders = tuple(entry.order for entry in self._reader.orders(run=self.run))
        return CycleResult(decided, orders, self._reader.opinions(run=self.run))

    def new_fills(self, settled: SettledSession) -> Sequence[Fill]:
        """The fills that this run has booked: others were published by the run that booked them."""
        own = frozenset(self._reader.fills(run=self.run))
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
        if turn.within_session and not self._reader.inputs(self.run, turn.number):
            self._keep_inputs(turn)

    def allocated(self, settlement: BookSettlement) -> None:
        """Keep what a session brought the owners' books, whole or not at all."""
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
        self.journal.inputs(self.run, turn.number, input_parts(turn, self._market, self._bars))

    def _supersede(self, turn: Turn) -> None:
        """End what earlier cycles of the session meant to trade, have not sent, and nobody has approved."""
        waiting = self._reader.orders(session=turn.session, open_only=True)
        approved = approvals(self._reader)
        for entry in waiting:
            order, approval = entry.order, approved.get(entry.order.id)
            sent = order.state is not OrderState.INTENDED
            if entry.cycle >= turn.number or sent or (approval is not None and approval.approved):
                continue
            self.expire(order, f"cycle {turn.number} of the session has decided since")

    def expire(self, order: Order, detail: str) -> None:
        self.journal.order_moved(order.moved(OrderState.EXPIRED), self.clock.now(), detail=detail)
