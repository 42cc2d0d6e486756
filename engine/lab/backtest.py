"""A backtest of the agents: the session loop on a backtest clock and the simulated market."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal

from engine.clock import BacktestClock
from engine.cycle.cycle import Cycle
from engine.cycle.recall import TradingMemory
from engine.cycle.turn import TradingHistory, Turn
from engine.domain.decision import Decision, Opinion
from engine.domain.market import PriceHistory, Symbol, from_nano
from engine.domain.model_call import AnswerRecord
from engine.domain.order import Order, Portfolio
from engine.domain.run import DataSpec, EquityPoint, ExecutionRules, FillAt, Result, RunPart, RunSpec
from engine.errors import UsageError
from engine.execution.venue import SettledSession
from engine.journal.schema import TEST, WARM_UP
from engine.lab.ahead import Ahead, SendWave
from engine.lab.window import coverage, data_notes, decided_sessions, desk_calendar_of, windows
from engine.market.as_of import Market
from engine.market.trading_hours import completed_at, decision_time, previous_session
from engine.messages.events import Event, SessionOpened
from engine.ports import Calendar
from engine.preset import Preset
from engine.session.context import Moment, RunState, SessionContext, Settled
from engine.session.loop import run_session, settle
from engine.session.owner_books import BookSettlement, OwnerBooks, has_books
from engine.session.recorder import Recorder
from engine.session.simulated_venue import Awaited, DirectSubmission, SimulatedVenue


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestContext:
    """Everything that a backtest of agents needs.

    spec: the run.
    desk: the desk's name, which orders bear.
    market: all data, on the price basis of the run.
    clock: is moved to the moment of each decision.
    cycle: the agents' round of decisions.
    rules: how orders fill, and what that costs.
    cash: what each part begins with, in the quote currency.
    publish: receives every event.
    recorder: keeps each step.
    stop: asked before each session.
    decided: hears the decisions of each session; what it raises ends the run.
    histories: the prices that the broker trades at, where they are not the market's own: a market that is cut in the
        middle of a crypto pair's day has no bar of it, and fills still come.
    memory: the cycle's.
    ahead: the number of sessions ahead of which the agents that read the market alone are asked.
    on_ahead: hears of every answer that comes ahead.
    send: makes the questions of all sessions ready that those agents are asked; None where they are asked one by one.
    """

    spec: RunSpec
    desk: str
    market: Market
    clock: BacktestClock
    cycle: Cycle
    rules: ExecutionRules
    cash: Decimal
    publish: Callable[[Event], None] = lambda event: None
    recorder: Recorder = field(default_factory=Recorder)
    stop: Callable[[], bool] = lambda: False
    decided: Callable[[Sequence[Decision]], None] = lambda decisions: None
    histories: Mapping[Symbol, PriceHistory] | None = None
    memory: TradingMemory | None = None
    ahead: int = 0
    on_ahead: Callable[[AnswerRecord], None] = lambda record: None
    send: SendWave | None = None

    @property
    def calendar(self) -> Calendar:
        """The calendar of the sessions that are decided on."""
        return desk_calendar_of(self.market, self.spec.symbols)

    @property
    def same_close(self) -> bool:
        """True where orders fill at the close that they were decided on."""
        return self.rules.fill_at is FillAt.SAME_CLOSE


FORESEEN = "in the warm-up each action was set by the move that followed, to fill the memory: its figures show no skill"


async def run_agents(context: BacktestContext) -> Result:
    """Play the warm-up (if any) and the test. Both are simulated trading; at `spec.first` cash and positions start
    afresh, while what the desk has learned stays. Source: FinVision §4.1 [V9].

    Raises UsageError for an empty window; MissingData, StaleData or MalformedData where the bars do not cover it.
    """
    spec = context.spec
    warming, sessions = windows(spec, context.calendar)
    covered = coverage(spec, context.market)
    if context.same_close and has_books(context.cycle.preset):
        raise UsageError(
            "owners with separate books need orders that fill after the close: choose another --convention"
        )
    total, state = len(warming) + len(sessions), RunState(TradingHistory())
    parts: list[_Part] = []
    async with _ahead(context, warming, sessions) as ahead:
        for name, days in ((WARM_UP, warming), (TEST, sessions)):
            if days:
                done = parts[-1].done if parts else 0
                parts.append(
                    _Part(
                        context,
                        name,
                        days,
                        total=total,
                        done=done,
                        ahead=ahead if context.ahead or context.send else None,
                    )
                )
                if not any(part.stopped for part in parts):
                    state = await parts[-1].play(state)
    notes = (
        *data_notes(spec, context.market, covered),
        *unread_series(context.cycle.preset, spec.data, context.market),
        *unread_funds(context.cycle.preset, spec, context.market),
        *((FORESEEN,) if warming and context.cycle.preset.decision == "three-way" else ()),
        *dict.fromkeys(note for part in parts for note in part.venue.notes),
    )
    return Result(
        spec=spec,
        test=parts[-1].run_part(),
        warm_up=parts[0].run_part() if warming else None,
        dropped=context.market.dropped,
        notes=notes,
        interrupted=any(part.stopped for part in parts),
    )


def _ahead(context: BacktestContext, *parts: Sequence[date]) -> Ahead:
    """The questions ahead of the sessions of a run's parts."""
    spec, calendar, cash = context.spec, context.calendar, context.cash

    def turn(session: date) -> Turn:
        return Turn(
            run=spec.run,
            desk=context.desk,
            session=session,
            number=1,
            symbols=spec.symbols,
            universe=spec.symbols,
            market=context.market.at(decision_time(calendar, session)),
            news_after=decision_time(calendar, previous_session(calendar, session)),
            portfolio=Portfolio(cash),
            value=cash,
            history=TradingHistory(),
            step=calendar.number(session),
        )

    read = [day for days in parts if days for day in decided_sessions(calendar, days, context.rules)]
    return Ahead(
        context.cycle,
        read,
        turn,
        within=context.ahead,
        on_answer=context.on_ahead,
        send=context.send,
        stop=context.stop,
    )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a run between two sessions of its test, to go on from: the books at the last closed session, what
    the last fills at a decision's own close wait for, the run's state, a copy of its memory, and the orders that wait
    for a trade."""

    books: EquityPoint | None
    awaited: Awaited | None
    state: RunState
    memory: TradingMemory | None = None
    waiting: tuple[Order, ...] = ()


async def play_to(
    context: BacktestContext, read: date, start: Checkpoint | None = None
) -> tuple[tuple[Decision, ...], Checkpoint]:
    """Play as `run_agents` does, from a checkpoint (or the beginning, warm-up included) until the decision that reads
    the session `read` has been taken, and no further: nothing is needed that comes after.

    `context.memory` is at the checkpoint already, being a copy of its memory. Returns the decisions, in order, and the
    run's state once `read` is settled. The data is not checked.
    """
    warming, sessions = windows(context.spec, context.calendar)
    total, decisions = len(warming) + len(sessions), list[Decision]()
    state = RunState(TradingHistory())
    if start is None and warming:
        warm_up = _Part(context, WARM_UP, warming, total=total)
        state = await warm_up.play(state)
        decisions = warm_up.decisions
    elif start is not None:
        start = start if context.same_close else _marked_anew(start, context)
        state = start.state
    test = _Part(context, TEST, sessions, total=total, last=read, start=start)
    checkpoint = await test.play_to(read, state)
    return (*decisions, *test.decisions), checkpoint


def _marked_anew(start: Checkpoint, context: BacktestContext) -> Checkpoint:
    """A checkpoint with the closes that were not known when it was taken: those of crypto, whose UTC day went on."""
    histories = context.market.histories if context.histories is None else context.histories

    def marked(point: EquityPoint) -> EquityPoint:
        prices = dict(point.prices)
        for symbol in prices:
            row = histories[symbol].index(point.session) if symbol in histories else None
            if row is not None:
                prices[symbol] = from_nano(histories[symbol].close[row])
        return replace(point, prices=prices, value=point.portfolio.value(prices))

    state = start.state
    books = {owner: marked(point) for owner, point in state.books.points.items()}
    unlearned = [replace(one, before=marked(one.before), after=marked(one.after)) for one in state.unlearned]
    return replace(
        start,
        books=None if start.books is None else marked(start.books),
        state=replace(state, unlearned=tuple(unlearned), books=replace(state.books, points=books)),
    )


class _Part:
    """One part of a run, the warm-up or the test, with books of its own."""

    def __init__(
        self,
        context: BacktestContext,
        name: str,
        sessions: Sequence[date],
        *,
        total: int,
        done: int = 0,
        last: date | None = None,
        start: Checkpoint | None = None,
        ahead: Ahead | None = None,
    ) -> None:
        """`total` counts the sessions of the whole run, `done` those of the parts before; `last` is the last session
        that is traded in, the last of all where it is not given."""
        self.done = done
        self.stopped = False
        self.decisions: list[Decision] = []
        self._opinions: list[Opinion] = []
        self._context = context
        self._name = name
        self._sessions = sessions
        self._total = total
        self._start = start
        self._ahead = ahead
        self._settled: list[SettledSession] = []
        self._books: list[BookSettlement] = []
        self._trades: date | None = None
        self._hindsight = decision_time(context.calendar, sessions[-1]) if name == WARM_UP else None
        self.venue = SimulatedVenue(
            context.rules,
            context.market.histories if context.histories is None else context.histories,
            context.market.actions,
            calendar=context.calendar,
            recorder=context.recorder,
            cash=context.cash,
            books=None if start is None else start.books,
            last=last or sessions[-1],
            mark=self._mark,
            awaited=None if start is None else start.awaited,
        )
        if start is not None and start.waiting:
            self.venue.take_over(start.waiting, sessions[0])
        self._session_context = SessionContext(
            run=context.spec.run,
            desk=context.desk,
            symbols=context.spec.symbols,
            market=context.market,
            calendar=context.calendar,
            cycle=context.cycle,
            venue=self.venue,
            orders=DirectSubmission(self.venue, context.recorder),
            recorder=context.recorder,
            clock=context.clock,
            publish=context.publish,
            marks_at_decisions=context.same_close,
        )
        context.recorder.began(name, context.cash)

    async def play(self, state: RunState) -> RunState:
        """Play all sessions, until it is to stop; the books are closed after the last one."""
        state = self._begin(state)
        for read, trades in self._pairs():
            if self._ahead is not None and not self._context.stop():
                await self._ahead.reach(read)
            if self._context.stop():
                self.stopped = True
                break
            state = await self._decide(read, trades, state)
        state = await self._close(state, final=self._name == TEST and not self.stopped)
        if not self.stopped:
            self.venue.expire_waiting()
        return state

    async def play_to(self, read: date, state: RunState) -> Checkpoint:
        """Play until the decision that reads a session has been taken."""
        context, begun = self._context, self._begun()
        if self._start is None:
            state = self._begin(state)
        for day, trades in self._pairs():
            if day > read:
                break
            if begun is not None and (day < begun or (day == begun and context.same_close)):
                continue
            if day == read and not context.same_close:
                context.clock.advance(decision_time(context.calendar, day))
                settled, state = await settle(self._session_context, day, state, context.clock.now())
                self._keep(settled)
                checkpoint = self._checkpoint(state)
                await self._decide(day, trades, state)
                return checkpoint
            state = await self._decide(day, trades, state)
        return self._checkpoint(await self._close(state))

    def _begin(self, state: RunState) -> RunState:
        """The state that the part begins with: no books yet, and in the test no record of training."""
        first = next((read for read, _ in self._pairs()), date.min)
        history = state.history if self._name == WARM_UP else replace(state.history, since=first)
        return replace(state, history=history, books=OwnerBooks())

    def _begun(self) -> date | None:
        """The session whose books the part goes on from. Its decision is taken again where orders fill later: the
        checkpoint was taken before it."""
        return None if self._start is None or self._start.books is None else self._start.books.session

    def run_part(self) -> RunPart:
        """The part as a value."""
        return RunPart(
            initial_value=self._context.cash,
            equity=tuple(one.after for one in self._settled),
            fills=tuple(fill for one in self._settled for fill in one.fills),
            cash_flows=tuple(flow for one in self._settled for flow in one.cash_flows),
            decisions=tuple(self.decisions),
            opinions=tuple(self._opinions),
            books=tuple(point for one in self._books for point in one.points),
            book_fills=tuple(fill for one in self._books for fill in one.fills),
        )

    def _keep(self, settled: Settled) -> None:
        self._settled += settled.sessions
        self._books += settled.books

    def _pairs(self) -> Iterator[tuple[date, date]]:
        """The session that a decision reads, and the one that it trades in: the next, or the same."""
        read = decided_sessions(self._context.calendar, self._sessions, self._context.rules)
        return zip(read, self._sessions, strict=True)

    async def _decide(self, read: date, trades: date, state: RunState) -> RunState:
        context, calendar = self._context, self._context.calendar
        now = decision_time(calendar, read)
        context.clock.advance(now)
        self.done += 1
        context.publish(
            SessionOpened(
                run=context.spec.run,
                time=now,
                session=read,
                index=self.done,
                total=self._total,
                part=self._name,
            )
        )
        moment = Moment(
            session=read,
            now=now,
            news_after=decision_time(calendar, previous_session(calendar, read)),
            hindsight_until=self._hindsight,
        )
        done = await run_session(self._session_context, moment, state)
        self._keep(done.settled)
        self.decisions += done.result.decisions
        self._opinions += done.result.opinions
        self._trades = trades
        context.decided(done.result.decisions)
        return done.state

    async def _close(self, state: RunState, *, final: bool = False) -> RunState:
        """Close the session that the last orders trade in. Nothing is decided after the `final` one: what crypto does
        in its last day is learned, too."""
        if self._trades is None:
            return state
        if self._context.same_close:
            self._settled += self.venue.finish().sessions
            return state
        calendar, market, symbols = self._context.calendar, self._context.market, self._context.spec.symbols
        decides = decision_time(calendar, self._trades)
        now = completed_at(calendar, symbols, self._trades) if final else decides
        settled, state = await settle(self._session_context, self._trades, state, now)
        self._keep(settled)
        self._context.cycle.feedback(state.history, market.at(decides), calendar.number(self._trades))
        return state

    def _mark(self, session: date, portfolio: Portfolio) -> EquityPoint:
        """The books at the closes that can be seen when a session's decision is taken, held or not: the UTC day of
        crypto may still be going on."""
        context = self._context
        known = context.market.at(decision_time(context.calendar, session))
        seen = {symbol: known.close(symbol) for symbol in context.spec.symbols if known.count(symbol)}
        return EquityPoint(session, portfolio.value(seen), portfolio, seen)

    def _checkpoint(self, state: RunState) -> Checkpoint:
        memory = self._context.memory
        copied = None if memory is None else memory.copy()
        return Checkpoint(self.venue.books, self.venue.awaited, state, copied, self.venue.waiting)


def unread_series(preset: Preset, data: DataSpec, market: Market) -> Iterator[str]:
    """The macro series that a preset reads and that the market does not have, in a sentence."""
    missing = [name for name in data.macro if name not in market.macro]
    if missing and "macro" in preset.steps:
        yield f"no figures of the economy for {', '.join(missing)}: the agents decide without (paperdesk fetch macro)"


def unread_funds(preset: Preset, spec: RunSpec, market: Market) -> Iterator[str]:
    """The reference funds whose trades are to guide the warm-up and of which there are none, in a sentence."""
    missing = [fund for fund in preset.reference_funds if not market.holdings.get(fund)]
    if missing and spec.warm_up_from is not None:
        yield (
            f"no holdings of {', '.join(missing)}: the warm-up goes without the trades of a reference fund "
            "(paperdesk import holdings FILE --data DIR)"
        )
