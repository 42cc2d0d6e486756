"""An old decision's occasion, put together again from the journal, so that it can be decided once more.

The books, the history and what the rest of the batch ordered come from the journal; the market and the memory, each
as it was then, are given. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal

from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.turn import TradingHistory
from engine.domain.execution import ExecutionRules, FillAt
from engine.domain.market import Symbol
from engine.domain.order import Order, Side
from engine.domain.portfolio import ZERO, Portfolio
from engine.domain.run import EquityPoint, RunSpec
from engine.errors import MissingData
from engine.execution.limits import cost
from engine.execution.venue import BuyingPower
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.schema import TEST, WARM_UP
from engine.lab.backtest import windows
from engine.market.as_of import Market
from engine.market.point_in_time import MarketAsOf
from engine.market.trading_hours import decision_time, previous_session, step_at
from engine.ports import Calendar
from engine.session.context import Moment, RunState, SessionContext, SessionResult
from engine.session.loop import run_session
from engine.session.owner_books import OwnerBooks
from engine.session.recorded_inputs import NoSubmission, RecordedVenue, TurnInputs
from engine.session.recorder import Silent
from engine.simulation.simulated_broker import SimulatedBroker


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """What stood when a batch was decided, as far as the journal has it; `orders` are what the batch came to.

    `portfolio` are the books at the close of `closed`, None for books that begin with this decision; what follows
    `orders` is as in Turn, and `now` its moment: None for one second after the close.
    """

    run: RunEntry
    desk: str
    session: date
    cycle: int
    symbols: tuple[Symbol, ...]
    portfolio: Portfolio
    closed: date | None
    history: TradingHistory
    orders: tuple[Order, ...]
    hindsight_until: datetime | None = None
    reserved: Decimal = ZERO
    queued: Mapping[Symbol, Decimal] = field(default_factory=dict)
    whole_shares: frozenset[Symbol] = frozenset()
    now: datetime | None = None
    news_after: datetime | None = None
    prices: Mapping[Symbol, Decimal] = field(default_factory=dict)
    books: OwnerBooks = field(default_factory=OwnerBooks)


def backtest_turn(
    reader: JournalReader,
    entry: RunEntry,
    spec: RunSpec,
    session: date,
    calendar: Calendar,
    rules: ExecutionRules,
    desk: str,
) -> RecordedTurn:
    """The occasion of a backtest's decisions of a session; warm-up and test have books of their own, what was learned
    goes over. `desk` is whose name the orders bear where there were none. Raises MissingData for a run that left no
    such session."""
    part = WARM_UP if reader.decisions(entry.id, first=session, last=session, part=WARM_UP) else TEST
    begun = reader.stretches(entry.id)
    if part not in begun:
        raise MissingData(f"the journal {reader.path} does not say what the {part} of {entry.id} began with")
    # Who decides at a close trades at it: the books then are the ones that the session opened with.
    same_close = rules.fill_at is FillAt.SAME_CLOSE
    points = [
        point
        for point in reader.equity(entry.id, part)
        if point.session < session or (point.session == session and not same_close)
    ]
    until = windows(spec, calendar)[0][-1] if part == WARM_UP else None
    rows = [row for row in reader.outcomes(entry.id) if row.session <= session]
    before = [made.opinion for made in reader.decisions(entry.id) if made.key.session < session]
    orders = [one for one in reader.orders(entry.id, session=session) if one.cycle == 1]
    return RecordedTurn(
        books=_owner_books(reader.equity(entry.id, part, book=None), session),
        run=entry,
        desk=orders[0].desk if orders else desk,
        session=session,
        cycle=1,
        symbols=spec.symbols,
        portfolio=points[-1].portfolio if points else Portfolio(begun[part], money_step=rules.money_step),
        closed=points[-1].session if points else None,
        history=TradingHistory().with_outcomes(rows).with_opinions(before),
        orders=tuple(one.order for one in orders),
        hindsight_until=None if until is None else decision_time(calendar, until),
    )


def desk_turn(
    reader: JournalReader, entry: RunEntry, session: date, cycle: int, desk: str, inputs: TurnInputs | None
) -> RecordedTurn:
    """The occasion of a desk's decisions of a session: what its runs had written by then, and what this one has kept
    of its inputs (None: a run of before they were kept, whose books are those at the close). What an earlier decision
    earned counts as known where a run up to this one has written it down. Raises MissingData for a journal without
    books of that session."""
    points = [point for point in reader.equity() if point.session == session]
    if not points and inputs is None:
        raise MissingData(f"the journal {reader.path} has no books of {session}, with which it was decided")
    history = TradingHistory()
    for run in reader.runs():
        if run.session is not None and run.session <= session:
            history = history.with_outcomes(reader.outcomes(run.id))
    history = history.with_opinions(made.opinion for made in reader.decisions() if made.key.session < session)
    orders = [one for one in reader.orders(entry.id, session=session) if one.cycle == cycle]
    recorded = RecordedTurn(
        books=_owner_books(reader.equity(book=None), session),
        run=entry,
        desk=desk,
        session=session,
        cycle=cycle,
        symbols=entry.symbols,
        portfolio=points[-1].portfolio if inputs is None else inputs.portfolio,
        closed=session,
        history=history,
        orders=tuple(one.order for one in orders),
    )
    if inputs is None:
        return recorded
    return replace(
        recorded,
        symbols=inputs.symbols,
        reserved=inputs.reserved,
        queued=inputs.queued,
        whole_shares=inputs.whole_shares,
        now=inputs.now,
        news_after=inputs.news_after,
        prices=inputs.prices,
    )


def _owner_books(points: Iterable[EquityPoint], session: date) -> OwnerBooks:
    """The owners' books that a decision of a session was taken with; empty where the desk has one book only."""
    return OwnerBooks({point.book: point for point in points if point.book and point.session == session})


def step_of(recorded: RecordedTurn, calendar: Calendar) -> float:
    """The time of memory at which a recorded turn was decided."""
    if recorded.cycle == 1:
        return calendar.number(recorded.session)
    return step_at(calendar, recorded.session, recorded.now or decision_time(calendar, recorded.session))


async def decide_again(
    recorded: RecordedTurn, market: Market, calendar: Calendar, cycle: Cycle, *, symbol: Symbol | None = None
) -> SessionResult:
    """The session loop on a recorded turn: for the whole batch, or for one symbol beside the orders that the symbols
    before it in the batch had got. `market` is on the price basis of the run, `calendar` what it decided on. Nothing is
    written or sent."""
    session, now = recorded.session, recorded.now or decision_time(calendar, recorded.session)
    power = BuyingPower(recorded.portfolio.cash, recorded.reserved, queued=recorded.queued)
    context = SessionContext(
        run=recorded.run.id,
        desk=recorded.desk,
        symbols=recorded.symbols,
        market=market,
        calendar=calendar,
        cycle=cycle,
        venue=RecordedVenue(recorded.portfolio, power, recorded.whole_shares),
        orders=NoSubmission(),
        recorder=Silent(),
        clock=BacktestClock(now),
        publish=lambda event: None,
    )
    moment = Moment(
        session=session,
        cycle=recorded.cycle,
        now=now,
        news_after=recorded.news_after or decision_time(calendar, previous_session(calendar, session)),
        symbols=None if symbol is None else (symbol,),
        hindsight_until=recorded.hindsight_until,
        prices=recorded.prices,
        taken={} if symbol is None else taken_before(recorded, symbol, market.at(now)),
    )
    return await run_session(context, moment, RunState(recorded.history, books=recorded.books))


def taken_before(recorded: RecordedTurn, symbol: Symbol, known: MarketAsOf) -> Mapping[str, Decimal]:
    """The cash by book, in the quote currency, that buys of symbols before one in the batch had taken."""
    before, prices = recorded.symbols[: recorded.symbols.index(symbol)], recorded.prices
    taken: dict[str, Decimal] = {}
    for order in recorded.orders:
        if order.symbol in before and order.side is Side.BUY:
            price = prices[order.symbol] if order.symbol in prices else known.close(order.symbol)
            taken[order.book] = taken.get(order.book, ZERO) + cost(order, price)
    return taken


def opened(recorded: RecordedTurn, market: Market, rules: ExecutionRules) -> RecordedTurn:
    """The turn of a decision that is taken at the close of a session which it trades in: splits and dividends of that
    session are in its books."""
    broker = SimulatedBroker(rules, recorded.portfolio, market.histories, market.actions, closed=recorded.closed)
    broker.open_session(recorded.session)
    return replace(recorded, portfolio=broker.portfolio)
