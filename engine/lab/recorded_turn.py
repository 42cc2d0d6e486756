"""A recorded turn, read from the journal so that it can be decided again, and the answers that its agents gave.

The books, the history and the orders of the rest of the batch come from the journal; the market and the memory, each as
it was then, are given. Nothing is written or sent.

A recorded day beside its replay, decision by decision and order by order; and today's data beside what was seen.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from math import isnan
from typing import Any, TypeVar

from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.recall import YEAR
from engine.cycle.turn import CycleResult, TradingHistory
from engine.domain.market import UNKNOWN, CorporateAction, PriceHistory, Symbol, from_nano
from engine.domain.order import ZERO, Order, Portfolio, Side
from engine.domain.run import EquityPoint, ExecutionRules, FillAt, RunSpec
from engine.errors import MissingData
from engine.execution.limits import cost
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.schema import TEST, WARM_UP
from engine.lab.decision_changes import Change, Comparison
from engine.lab.window import decided_sessions, windows
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time, previous_session, step_at
from engine.ports import Calendar
from engine.session.context import Moment, RunState, SessionContext
from engine.session.loop import run_session
from engine.session.owner_books import OwnerBooks
from engine.session.recorder import RecordedVenue, TurnInputs
from engine.simulation.simulated_broker import SimulatedBroker


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """A turn, as far as the journal has it.

    run: the run that decided.
    desk: the desk's name, which the orders bear.
    session: the session that was decided on.
    cycle: number of the cycle.
    calendar: the calendar that the run decided on.
    inputs: books, prices and market of the turn, on the price basis of the run.
    history: earlier opinions, and the outcomes that were known.
    orders: the orders of the batch.
    hindsight_until: in training, reflections saw moves known by then (UTC); None in the test.
    books: the owners' books; empty where the desk has one book only.
    """

    run: RunEntry
    desk: str
    session: date
    cycle: int
    calendar: Calendar
    inputs: TurnInputs
    history: TradingHistory
    orders: tuple[Order, ...]
    hindsight_until: datetime | None = None
    books: OwnerBooks = field(default_factory=OwnerBooks)

    @property
    def now(self) -> datetime:
        """The moment of the decision (UTC): the recorded one, else that of a decision after the close."""
        return self.inputs.now or decision_time(self.calendar, self.session)

    @property
    def step(self) -> float:
        """The time of memory at which it was decided."""
        if self.cycle == 1:
            return self.calendar.number(self.session)
        return step_at(self.calendar, self.session, self.now)


def backtest_turn(
    reader: JournalReader,
    run: RunEntry,
    spec: RunSpec,
    session: date,
    *,
    market: Market,
    calendar: Calendar,
    rules: ExecutionRules,
    desk: str,
) -> RecordedTurn:
    """The turn of a backtest's decisions of a session; warm-up and test have books of their own, what was learned goes
    over. `desk` is the name that orders bear where there were none. Raises MissingData for a run that left no such
    session."""
    part = WARM_UP if reader.decisions(run.id, first=session, last=session, part=WARM_UP) else TEST
    begun = reader.initial_values(run.id)
    if part not in begun:
        raise MissingData(f"the journal {reader.path} does not say what the {part} of {run.id} began with")
    # Who decides at a close trades at it: the books then are the ones that the session opened with.
    same_close = rules.fill_at is FillAt.SAME_CLOSE
    points = [
        point
        for point in reader.equity(run.id, part)
        if point.session < session or (point.session == session and not same_close)
    ]
    portfolio = points[-1].portfolio if points else Portfolio(begun[part], money_step=rules.money_step)
    if same_close:  # splits and dividends of the session are in its books
        closed = points[-1].session if points else None
        broker = SimulatedBroker(rules, portfolio, market.histories, market.actions, closed=closed)
        broker.open_session(session)
        portfolio = broker.portfolio
    now = decision_time(calendar, session)
    rows = [
        row
        for row in reader.outcomes(run.id)
        if market.calendars.get(row.symbol, calendar).last_closed(now) >= row.session
    ]
    before = [made for made in reader.decisions(run.id) if made.key.session < session]
    orders = [one for one in reader.orders(run.id, session=session) if one.cycle == 1]
    since = decided_sessions(calendar, windows(spec, calendar)[1], rules)[0] if part == TEST else date.min
    return RecordedTurn(
        run=run,
        desk=orders[0].desk if orders else desk,
        session=session,
        cycle=1,
        calendar=calendar,
        inputs=close_inputs(spec.symbols, portfolio, market, calendar, session),
        history=TradingHistory(since=since).with_outcomes(rows).with_opinions((one.opinion for one in before), before),
        orders=tuple(one.decided or one.order for one in orders),
        hindsight_until=decision_time(calendar, windows(spec, calendar)[0][-1]) if part == WARM_UP else None,
        books=_owner_books(reader.equity(run.id, part, book=None), session),
    )


def desk_turn(
    reader: JournalReader,
    run: RunEntry,
    session: date,
    *,
    cycle: int,
    desk: str,
    inputs: TurnInputs,
    calendar: Calendar,
) -> RecordedTurn:
    """The turn of a desk's decisions of a session, with what its runs had written by then. An earlier decision's
    outcome counts as known where a run up to this one has written it down."""
    history = TradingHistory()
    for earlier in reader.runs():
        if earlier.session is not None and (earlier.session, earlier.cycle) <= (session, cycle):
            history = history.with_outcomes(reader.outcomes(earlier.id))
    orders = [one for one in reader.orders(run.id, session=session) if one.cycle == cycle]
    before = [made for made in reader.decisions() if made.key.session < session]
    return RecordedTurn(
        run=run,
        desk=desk,
        session=session,
        cycle=cycle,
        calendar=calendar,
        inputs=inputs,
        history=history.with_opinions((one.opinion for one in before), before),
        orders=tuple(one.decided or one.order for one in orders),
        books=_owner_books(reader.equity(book=None), session),
    )


def close_inputs(
    symbols: tuple[Symbol, ...], portfolio: Portfolio, market: Market, calendar: Calendar, session: date
) -> TurnInputs:
    """The inputs of a decision after a close, with the whole cash at its disposal."""
    news_after = decision_time(calendar, previous_session(calendar, session))
    return TurnInputs(symbols=symbols, news_after=news_after, portfolio=portfolio, market=market)


def _owner_books(points: Iterable[EquityPoint], session: date) -> OwnerBooks:
    return OwnerBooks({point.book: point for point in points if point.book and point.session == session})


async def decide_again(recorded: RecordedTurn, cycle: Cycle, *, symbol: Symbol | None = None) -> CycleResult:
    """Run the session loop on a recorded turn: for the whole batch, or for one symbol beside the orders that the
    symbols before it in the batch had got."""
    inputs = recorded.inputs
    context = SessionContext(
        run=recorded.run.id,
        desk=recorded.desk,
        symbols=inputs.symbols,
        market=inputs.market,
        calendar=recorded.calendar,
        cycle=cycle,
        venue=RecordedVenue.of(inputs),
        clock=BacktestClock(recorded.now),
    )
    moment = Moment(
        session=recorded.session,
        cycle=recorded.cycle,
        now=recorded.now,
        news_after=inputs.news_after,
        symbols=None if symbol is None else (symbol,),
        hindsight_until=recorded.hindsight_until,
        prices=inputs.prices,
        taken={} if symbol is None else _taken_before(recorded, symbol),
    )
    return (await run_session(context, moment, RunState(recorded.history, books=recorded.books))).result


def _taken_before(recorded: RecordedTurn, symbol: Symbol) -> Mapping[str, Decimal]:
    """The cash by book, in the quote currency, that buys of symbols before one in the batch had taken."""
    inputs = recorded.inputs
    before, as_of = inputs.symbols[: inputs.symbols.index(symbol)], inputs.market.at(recorded.now)
    taken: dict[str, Decimal] = {}
    for order in recorded.orders:
        if order.symbol in before and order.side is Side.BUY:
            price = inputs.prices[order.symbol] if order.symbol in inputs.prices else as_of.close(order.symbol)
            taken[order.book] = taken.get(order.book, ZERO) + cost(order, price)
    return taken


T = TypeVar("T")
_COLUMNS = ("open", "high", "low", "close", "adj_close")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """The result of a replay of a day.

    run: the run that was replayed.
    session: the session that it decided on.
    label: the label of the model that answered.
    comparisons: both sides of every decision.
    orders: the number of recorded orders.
    order_changes: orders that are on one side alone or differ.
    data: sentences on today's data that are not what was seen, which changes nothing of the replay.
    """

    run: RunEntry
    session: date
    label: str
    comparisons: tuple[Comparison, ...]
    orders: int
    order_changes: tuple[Change, ...]
    data: tuple[str, ...] = ()

    @property
    def differing(self) -> tuple[Comparison, ...]:
        """Decisions that came out otherwise."""
        return tuple(one for one in self.comparisons if not one.same)

    @property
    def same(self) -> bool:
        """True where every decision and every order is the same."""
        return not self.differing and not self.order_changes


def data_changes(seen: TurnInputs, today: Market, now: datetime) -> Iterator[str]:
    """Sentences on data that are read today and are not what was seen at a moment, for each symbol and kind."""
    known = today.cut(now)
    for symbol, history in seen.market.histories.items():
        if symbol not in known.histories:
            yield f"{symbol}: there are no data of it any more"
            continue
        yield from _bars(symbol, history, known.histories[symbol])
        yield from _actions(symbol, history, seen.market.actions.get(symbol), known.actions.get(symbol))
        for kind, since in (("news", seen.news_after), ("filings", now - YEAR)):
            before = {item.id: item for item in getattr(seen.market, kind).get(symbol, ())}
            items = getattr(known, kind).get(symbol, ())
            after = {item.id: item for item in items if item.available_at > since}
            yield from _items(f"{symbol}: {kind}", before, after)
    said: dict[Hashable, Any] = {item.id: item for item in seen.market.commentary}
    told: dict[Hashable, Any] = {item.id: item for item in known.commentary if item.available_at > now - YEAR}
    yield from _items("commentary of funds", said, told)
    for name, series in seen.market.macro.items():
        new = known.macro.get(name)
        dates = {one.date for one in series.observations}
        figures = () if new is None else tuple(one for one in new.observations if one.date >= min(dates))
        if figures != series.observations:
            yield f"{name}: its figures are told otherwise"


def _bars(symbol: Symbol, seen: PriceHistory, today: PriceHistory) -> Iterator[str]:
    begin = seen.sessions[0] if len(seen) else 0
    today = today.slice(today.rows_through(date.fromordinal(max(begin - 1, 1))), len(today))
    missing = sorted(set(seen.sessions) - set(today.sessions))
    added = sorted(set(today.sessions) - set(seen.sessions))
    if missing:
        yield f"{symbol}: {_days(missing)} missing today"
    if added:
        yield f"{symbol}: {_days(added)} new, and had not been seen"
    restated = [found for found in (_restated(seen, row, today) for row in range(len(seen))) if found]
    if restated:
        more = f", and {len(restated) - 1} more sessions" if len(restated) > 1 else ""
        yield f"{symbol}: restated, {restated[-1]}{more}"


def _restated(seen: PriceHistory, row: int, today: PriceHistory) -> str:
    """The first difference in a bar; empty where there is none, or no bar today."""
    session = seen.session(row)
    place = today.index(session)
    if place is None:
        return ""
    for column in _COLUMNS:
        old, new = getattr(seen, column)[row], getattr(today, column)[place]
        if old != new:
            return f"{column} of {session} was {_price(old)} and is {_price(new)}"
    then, now = seen.volume[row], today.volume[place]
    if then != now and not (isnan(then) and isnan(now)):
        return f"volume of {session} was {then:g} and is {now:g}"
    return ""


def _price(nano: int) -> str:
    return "unknown" if nano == UNKNOWN else f"{from_nano(nano).normalize():f}"


def _days(ordinals: Sequence[int]) -> str:
    last = date.fromordinal(ordinals[-1])
    return f"the bar of {last} is" if len(ordinals) == 1 else f"{len(ordinals)} bars up to {last} are"


def _actions(
    symbol: Symbol,
    history: PriceHistory,
    seen: Sequence[CorporateAction] | None,
    today: Sequence[CorporateAction] | None,
) -> Iterator[str]:
    begin = history.session(0) if len(history) else date.max
    now = None if today is None else [action for action in today if action.ex_date > begin]
    if (None if seen is None else [*seen]) != now:
        yield f"{symbol}: its splits and dividends are told otherwise"


def _items(what: str, seen: Mapping[Hashable, T], today: Mapping[Hashable, T]) -> Iterator[str]:
    late = [item for name, item in today.items() if name not in seen]
    gone = [item for name, item in seen.items() if name not in today]
    other = [item for name, item in today.items() if name in seen and seen[name] != item]
    if late:
        yield f"{what}: {_first(late)} came late, dated as if it had been known"
    if gone:
        yield f"{what}: {_first(gone)} is gone"
    if other:
        yield f"{what}: {_first(other)} reads otherwise"


def _first(items: Iterable[object]) -> str:
    """The first of some items by its title, and how many there are beside it."""
    first, *others = items
    title = str(getattr(first, "headline", None) or getattr(first, "summary", ""))
    return f'"{title[:60]}"' + (f" and {len(others)} more" if others else "")
