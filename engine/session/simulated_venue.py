"""The simulated market as the venue of a run: of a backtest, or of a desk whose books live in its journal.

Orders wait for the next open, or fill at the close that they were decided on, as the execution rules say. A desk's
open orders wait in the journal between one run and the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

from engine.domain.market import PriceHistory, Symbol, is_crypto
from engine.domain.order import ZERO, Fill, Order, OrderState, OrderUpdate, Portfolio, Side
from engine.domain.run import EquityPoint, ExecutionRules, FillAt
from engine.execution.limits import Price
from engine.execution.submission import OrderRoute, SubmissionResult
from engine.execution.venue import BuyingPower, OrderTerms, SettledSession, Settlement
from engine.journal.reader import JournalReader
from engine.market.trading_hours import AroundTheClock, fill_session, previous_session, session_after
from engine.ports import Calendar, Clock
from engine.session.recorder import DeskRecorder, Recorder
from engine.simulation.simulated_broker import Actions, MarketActivity, SimulatedBroker

Awaited = tuple[EquityPoint, tuple[Fill, ...]]
"""The mark before orders filled at the close that they were decided on, and those fills."""


@dataclass(eq=False)
class SimulatedVenue:
    """The simulated market behind the sessions of a run (Venue). Its market is history: whatever session is asked for
    can still be traded.

    rules: how orders fill, and what that costs
    histories, actions: prices and corporate actions by symbol
    calendar: the sessions that are played
    recorder: keeps each closed session
    cash: what the books open with where there are none, in the quote currency
    books: the last closed ones, None before the first
    last: the last session of a backtest's window, where symbols whose bars end earlier stop trading
    mark: values the books at the prices that can be seen when a session's decision is taken; only rules that fill at
        the same close need it
    awaited: as a part of a run that goes on was left
    """

    real_time = False

    rules: ExecutionRules
    histories: Mapping[Symbol, PriceHistory]
    actions: Actions
    _: KW_ONLY
    calendar: Calendar
    recorder: Recorder
    cash: Decimal
    books: EquityPoint | None = None
    last: date | None = None
    mark: Callable[[date, Portfolio], EquityPoint] | None = None
    awaited: Awaited | None = None

    def __post_init__(self) -> None:
        self._broker = None if self.books is None else self._market(self.books.portfolio, self.books.session)
        self._open: tuple[EquityPoint, MarketActivity] | None = None
        self._placed: dict[str, Order] = {}

    @property
    def portfolio(self) -> Portfolio:
        """Cash and positions by now."""
        if self._broker is not None:
            return self._broker.portfolio
        return Portfolio(self.cash, money_step=self.rules.money_step)

    @property
    def buying_power(self) -> BuyingPower:
        """Cash and shares, less what the orders placed since settling, and those that wait for a trade, may take."""
        reserved, queued = ZERO, dict[Symbol, Decimal]()
        for order in ({order.id: order for order in self.waiting} | self._placed).values():
            reserved += order.notional or ZERO
            if order.side is Side.SELL:
                queued[order.symbol] = queued.get(order.symbol, ZERO) + (order.quantity or ZERO)
        held = {symbol: position.quantity for symbol, position in self.portfolio.positions.items()}
        return BuyingPower(self.portfolio.cash, reserved, held, queued)

    @property
    def waiting(self) -> tuple[Order, ...]:
        """The orders that wait for a trade."""
        return () if self._broker is None else self._broker.waiting

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on positions that were closed because their symbol stopped trading."""
        return () if self._broker is None else self._broker.notes

    async def refresh(self) -> BuyingPower:
        """The same buying power: nothing happens here by itself."""
        return self.buying_power

    async def whole_shares(self, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
        """None: the execution rules say what fills."""
        return frozenset()

    async def terms(self, symbols: Iterable[Symbol]) -> Mapping[Symbol, OrderTerms]:
        """None: the execution rules say what fills."""
        return {}

    async def restriction(self, symbol: Symbol) -> str:
        """None before the open: a symbol that does not trade is dropped when its orders fill."""
        return ""

    async def lookup(self, order_id: str) -> OrderUpdate | None:
        """None: an order whose submission was cut short was not taken."""
        return None

    async def settle(self, session: date) -> Settlement:
        """Play every session after the last closed one up to `session`; where orders fill at the same close, up to the
        open of `session`."""
        self._placed = {}
        if self.rules.fill_at is FillAt.SAME_CLOSE:
            return self._to_the_close_of(session)
        if self.books is None:
            self.books = EquityPoint(session, self.cash, self.portfolio, {})
            self._broker = self._market(self.books.portfolio, session)
            self.recorder.opened(self.books)
            return Settlement()
        first = self.books.session + timedelta(days=1)
        return Settlement.of([self._play(day) for day in self.calendar.sessions(first, session)])

    async def place(self, order: Order) -> OrderUpdate:
        """Take an order."""
        assert self._broker is not None  # settling comes first
        self._placed[order.id] = order
        return self._broker.submit(order)

    def finish(self) -> Settlement:
        """Close a session that is still open at its close."""
        return Settlement() if self._open is None else Settlement((self._close_open(),))

    def take_over(self, waiting: Iterable[Order], session: date) -> None:
        """Take orders that an earlier run has placed: those of `session` count against the buying power."""
        assert self._broker is not None  # a desk with orders has books
        for order in waiting:
            self._broker.submit(replace(order, state=OrderState.INTENDED), after=self._sent_after(order))
            if order.session == session:
                self._placed[order.id] = order

    def _sent_after(self, order: Order) -> date:
        return order.session

    def expire_waiting(self) -> None:
        """End the orders that wait for a trade: the window is over."""
        for update in () if self._broker is None else self._broker.expire_waiting():
            self.recorder.ordered(update)

    def _market(self, portfolio: Portfolio, closed: date | None) -> SimulatedBroker:
        return SimulatedBroker(self.rules, portfolio, self.histories, self.actions, closed=closed, last=self.last)

    def _play(self, session: date) -> SettledSession:
        """One session from its open to its close."""
        assert self._broker is not None and self.books is not None  # settling has opened them
        before = self.books
        opened = self._broker.open_session(session)
        return self._close(session, before, opened)

    def _close(self, session: date, before: EquityPoint, opened: MarketActivity) -> SettledSession:
        assert self._broker is not None
        books, closed = self._broker.close_session(session)
        opened, closed = self._dated(opened, session, at_open=True), self._dated(closed, session, at_open=False)
        self.recorder.settled(books, (opened, closed))
        self.books = books
        return SettledSession(before, books, opened.fills + closed.fills, opened.cash_flows + closed.cash_flows)

    def _dated(self, activity: MarketActivity, session: date, *, at_open: bool) -> MarketActivity:
        """Trades and lapses at the open or the close of a session; a desk's trades have the time of that."""
        return activity

    def _to_the_close_of(self, session: date) -> Settlement:
        """Close the session that is open, open the next one, and mark the books before its orders fill."""
        assert self.mark is not None  # rules that fill at the same close come with it
        ended = self.finish().sessions
        if self._broker is None:
            self._broker = self._market(self.portfolio, None)
        opened = self._broker.open_session(session)
        now = self.mark(session, self._broker.portfolio)
        self._open = (now, opened)
        if self.awaited is None:
            return Settlement(ended)
        before, fills = self.awaited
        return Settlement(ended, (SettledSession(before, now, fills, opened.cash_flows),))

    def _close_open(self) -> SettledSession:
        assert self._open is not None
        mark, opened = self._open
        ended = self._close(mark.session, self.books or mark, opened)
        self._open, self.awaited = None, (mark, ended.fills[len(opened.fills) :])
        return ended


@dataclass(eq=False)
class DeskVenue(SimulatedVenue):
    """The simulated market behind a desk's runs, each of which goes on from the books and orders of the journal that
    `reader` reads. An order fills at the first open after it was sent, by the desk's `clock`. `cash` is what the desk
    begins with where its journal has no books yet."""

    recorder: DeskRecorder
    reader: JournalReader
    clock: Clock

    def __post_init__(self) -> None:
        self.books = next(reversed(self.reader.equity()), None)
        self._waiting: dict[str, tuple[Order, date, datetime]] = {}
        self._taken = set[str]()
        super().__post_init__()

    async def place(self, order: Order) -> OrderUpdate:
        """Take an order. An update that names the open at which it fills says that the one before has passed."""
        update = await super().place(order)
        filled_in, time = fill_session(self.calendar, order, self.clock.now())
        if filled_in == session_after(self.calendar, order.session):
            return update
        passed = f"the open after {order.session} has passed: it fills at that of {time:%Y-%m-%d %H:%M} UTC"
        return replace(update, detail=passed)

    async def settle(self, session: date) -> Settlement:
        """Play every session after the last closed one up to `session`, with the orders that wait in the journal. The
        first run of a desk only opens its books."""
        self._waiting = {} if self.books is None else self._found_waiting(session)
        for order, fills, _ in self._waiting.values():
            if fills <= session:
                self.recorder.resumed(order)
        settlement = await super().settle(session)
        # One whose session had no trade waits on, though the books have passed it.
        for order, _, _ in self._waiting.values():
            if order.id not in self._taken:
                self.take_over([order], order.session)
        return settlement

    def _play(self, session: date) -> SettledSession:
        """One session, before whose open the orders that fill in it are taken."""
        for order, fills, _ in self._waiting.values():
            if fills <= session and order.id not in self._taken:
                self._taken.add(order.id)
                self.take_over([order], session)
        return super()._play(session)

    def _sent_after(self, order: Order) -> date:
        return previous_session(self.calendar, self._waiting[order.id][1])

    def _dated(self, activity: MarketActivity, session: date, *, at_open: bool) -> MarketActivity:
        def dated(fill: Fill) -> Fill:
            calendar = AroundTheClock() if is_crypto(fill.symbol) else self.calendar
            if not at_open:
                return replace(fill, time=calendar.closes_at(session))
            opens, waited = calendar.opens_at(session), self._waiting.get(fill.order_id)
            return replace(fill, time=opens if waited is None else max(opens, waited[2]))

        return activity._replace(fills=tuple(map(dated, activity.fills)))

    def _found_waiting(self, session: date) -> dict[str, tuple[Order, date, datetime]]:
        """Orders that the market has taken and not filled, each with the session and the moment at which it fills; what
        was cut short on its way there in an earlier session expires."""
        found = {}
        for entry in self.reader.orders(open_only=True):
            order = entry.order
            if order.state is OrderState.SUBMITTING and order.session < session:
                self.recorder.expire(order, "its submission was cut short")
            elif order.state is OrderState.ACKNOWLEDGED:
                found[order.id] = order, *fill_session(self.calendar, order, self.reader.sent_at(order.id))
        return found


class DirectSubmission(OrderRoute):
    """The route of a backtest's orders: the simulated market takes every order at once, and its answer is kept."""

    def __init__(self, venue: SimulatedVenue, recorder: Recorder) -> None:
        self._venue = venue
        self._recorder = recorder

    async def submit(self, orders: Sequence[Order], price: Price, until: datetime | None = None) -> SubmissionResult:
        """Place every order."""
        for order in orders:
            self._recorder.ordered(await self._venue.place(order))
        return SubmissionResult(tuple(orders))
