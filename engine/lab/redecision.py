"""An old decision's occasion, put together again from the journal, so that it can be decided once more.

The books, the notebook and what the rest of the batch ordered come from the journal; the market and the memory, each
as it was then, are given. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal

from engine.cycle.turn import TradingHistory, Turn
from engine.domain.execution import ExecutionRules, FillAt
from engine.domain.market import Symbol
from engine.domain.order import Order, Side
from engine.domain.portfolio import ZERO, Portfolio
from engine.domain.run import RunSpec
from engine.errors import MissingData
from engine.execution.limits import cost
from engine.journal.entries import RunEntry
from engine.journal.migrations import TEST, WARM_UP
from engine.journal.reader import JournalReader
from engine.lab.backtest import windows
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time, previous_session, step_at
from engine.ports import Calendar
from engine.session.inputs import TurnInputs
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
    notebook: TradingHistory
    orders: tuple[Order, ...]
    hindsight_until: datetime | None = None
    reserved: Decimal = ZERO
    queued: Mapping[Symbol, Decimal] = field(default_factory=dict)
    whole_shares: frozenset[Symbol] = frozenset()
    now: datetime | None = None
    news_after: datetime | None = None
    prices: Mapping[Symbol, Decimal] = field(default_factory=dict)


def occasion_of_backtest(
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
    notebook = TradingHistory()
    notebook.remember([row for row in reader.outcomes(entry.id) if row.session <= session])
    notebook.decided([made for made in reader.decisions(entry.id) if made.key.session < session])
    orders = [one for one in reader.orders(entry.id, session=session) if one.cycle == 1]
    return RecordedTurn(
        run=entry,
        desk=orders[0].desk if orders else desk,
        session=session,
        cycle=1,
        symbols=spec.symbols,
        portfolio=points[-1].portfolio if points else Portfolio(begun[part], money_step=rules.money_step),
        closed=points[-1].session if points else None,
        notebook=notebook,
        orders=tuple(one.order for one in orders),
        hindsight_until=None if until is None else decision_time(calendar, until),
    )


def occasion_of_desk(
    reader: JournalReader, entry: RunEntry, session: date, cycle: int, desk: str, seen: TurnInputs | None
) -> RecordedTurn:
    """The occasion of a desk's decisions of a session: what its runs had written by then, and what this one has kept
    of its inputs (None: a run of before they were kept, whose books are those at the close). What an earlier decision
    earned counts as known where a run up to this one has written it down. Raises MissingData for a journal without
    books of that session."""
    points = [point for point in reader.equity() if point.session == session]
    if not points and seen is None:
        raise MissingData(f"the journal {reader.path} has no books of {session}, with which it was decided")
    notebook = TradingHistory()
    for run in reader.runs():
        if run.session is not None and run.session <= session:
            notebook.remember(reader.outcomes(run.id))
    notebook.decided([made for made in reader.decisions() if made.key.session < session])
    orders = [one for one in reader.orders(entry.id, session=session) if one.cycle == cycle]
    occasion = RecordedTurn(
        run=entry,
        desk=desk,
        session=session,
        cycle=cycle,
        symbols=entry.symbols,
        portfolio=points[-1].portfolio if seen is None else seen.portfolio,
        closed=session,
        notebook=notebook,
        orders=tuple(one.order for one in orders),
    )
    if seen is None:
        return occasion
    return replace(
        occasion,
        symbols=seen.symbols,
        reserved=seen.reserved,
        queued=seen.queued,
        whole_shares=seen.whole_shares,
        now=seen.now,
        news_after=seen.news_after,
        prices=seen.prices,
    )


def turn_of(occasion: RecordedTurn, market: Market, calendar: Calendar) -> Turn:
    """The whole batch's turn on a market that is on the price basis of its run; `calendar` is what the run decided
    on. Its notebook is the occasion's, to which deciding adds."""
    session, now = occasion.session, occasion.now or decision_time(calendar, occasion.session)
    known, portfolio, prices = market.at(now), occasion.portfolio, occasion.prices
    within = occasion.cycle > 1
    return Turn(
        run=occasion.run.id,
        desk=occasion.desk,
        session=session,
        number=occasion.cycle,
        symbols=occasion.symbols,
        market=known,
        news_after=occasion.news_after or decision_time(calendar, previous_session(calendar, session)),
        portfolio=portfolio,
        value=portfolio.value({s: prices[s] if s in prices else known.close(s) for s in portfolio.positions}),
        notebook=occasion.notebook,
        reserved=occasion.reserved,
        queued=occasion.queued,
        whole_shares=occasion.whole_shares,
        step=step_at(calendar, session, now) if within else calendar.number(session),
        prices=prices,
        hindsight_until=occasion.hindsight_until,
    )


def opened(occasion: RecordedTurn, market: Market, rules: ExecutionRules) -> RecordedTurn:
    """The occasion of a decision that is taken at the close of a session which it trades in: splits and dividends of
    that session are in its books."""
    broker = SimulatedBroker(rules, occasion.portfolio, market.histories, market.actions, closed=occasion.closed)
    broker.open_session(occasion.session)
    return replace(occasion, portfolio=broker.portfolio)


def part_of(turn: Turn, symbol: Symbol, orders: Sequence[Order]) -> Turn:
    """The same turn for one symbol alone, beside the orders that the symbols before it in the batch had got."""
    before = turn.symbols[: turn.symbols.index(symbol)]
    bought = [order for order in orders if order.symbol in before and order.side is Side.BUY]
    taken = sum((cost(order, turn.price(order.symbol)) for order in bought), ZERO)
    return replace(turn, symbols=(symbol,), taken=taken)
