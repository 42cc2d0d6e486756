"""The simulated broker of a desk that runs day by day: its books live in the journal, between one run and the next.

Orders wait in the journal for the next open. Settling plays the sessions that have passed since the books were last
closed; each is written whole or not at all, so a killed run goes on from the last closed session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from engine.domain.execution import ExecutionRules
from engine.domain.market import Symbol
from engine.domain.order import Order, OrderState, OrderUpdate, Side
from engine.domain.portfolio import ZERO, Portfolio
from engine.domain.run import EquityPoint
from engine.execution.venue import BuyingPower, SettledSession
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.ports import Calendar, Clock
from engine.session.recorder import JournalRecorder
from engine.simulation.simulated_broker import SimulatedBroker


class SimulatedVenue:
    """The simulated market behind a desk's daily runs (Venue)."""

    real_time = False
    """Its market is history: whatever session is asked for can still be traded."""

    def __init__(
        self,
        journal: JournalWriter,
        run: str,
        desk: str,
        market: Market,
        calendar: Calendar,
        rules: ExecutionRules,
        cash: Decimal,
        clock: Clock,
    ) -> None:
        """`cash` is what the desk begins with where its journal has no books yet."""
        self._journal = journal
        self._recorder = JournalRecorder(journal, run, desk, clock)
        self._run = run
        self._clock = clock
        self._market = market
        self._calendar = calendar
        self._rules = rules
        with JournalReader(journal.path) as reader:
            points = reader.equity()
            self.waiting = tuple(entry.order for entry in reader.orders(open_only=True))
        self.books = points[-1] if points else None
        self._placed: dict[str, Order] = {}
        self._cash = cash

    @property
    def portfolio(self) -> Portfolio:
        """Cash and positions at the last close that was settled."""
        return Portfolio(self._cash) if self.books is None else self.books.portfolio

    @property
    def means(self) -> BuyingPower:
        """Cash and shares, less what the orders placed since settling may take."""
        reserved, queued = ZERO, dict[Symbol, Decimal]()
        for order in self._placed.values():
            reserved += order.notional or ZERO
            if order.side is Side.SELL:
                queued[order.symbol] = queued.get(order.symbol, ZERO) + (order.quantity or ZERO)
        held = {symbol: position.quantity for symbol, position in self.portfolio.positions.items()}
        return BuyingPower(self.portfolio.cash, reserved, held, queued)

    async def refresh(self) -> BuyingPower:
        """The same: nothing happens here by itself."""
        return self.means

    async def whole_shares(self, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
        """None: the execution rules say what fills."""
        return frozenset()

    async def objection(self, symbol: Symbol) -> str:
        """None before the open: what does not trade is found when it fills."""
        return ""

    async def lookup(self, order_id: str) -> OrderUpdate | None:
        """None: an order whose handing over was cut short was not taken."""
        return None

    async def settle(self, session: date) -> Sequence[SettledSession]:
        """Plays every session after the last closed one up to `session`. The first run of a desk only opens its
        books."""
        taken = OrderState.ACKNOWLEDGED
        self._placed = {o.id: o for o in self.waiting if o.session == session and o.state is taken}
        if self.books is None:
            self.books = EquityPoint(session, self._cash, Portfolio(self._cash), {})
            self._recorder.settled(self.books)
            return ()
        broker = SimulatedBroker(
            self._rules, self.books.portfolio, self._market.histories, self._market.actions, closed=self.books.session
        )
        for order in self.waiting:
            if order.state is OrderState.SUBMITTING and order.session < session:
                expired = order.moved(OrderState.EXPIRED)
                self._journal.order_moved(expired, self._clock.now(), detail="its handing over was cut short")
            elif order.state is OrderState.ACKNOWLEDGED:
                broker.submit(replace(order, state=OrderState.INTENDED))
                self._recorder.resumed(order)
        played = []
        for day in self._calendar.sessions(self.books.session + timedelta(days=1), session):
            before = self.books
            opened = broker.open_session(day)
            after, closed = broker.close_session(day)
            with self._journal.together():
                self._recorder.traded(opened)
                self._recorder.traded(closed)
                self._recorder.settled(after)
            fills, flows = opened.fills + closed.fills, opened.cash_flows + closed.cash_flows
            played.append(SettledSession(before, after, fills, flows))
            self.books = after
        return played

    async def place(self, order: Order) -> OrderUpdate:
        """Takes an order for the next open."""
        self._placed[order.id] = order
        return OrderUpdate(order.id, OrderState.ACKNOWLEDGED)
