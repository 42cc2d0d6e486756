"""A backtest of the agents: the one cycle, session by session, on a backtest clock and the simulated broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal

from engine.clock import BacktestClock
from engine.conventions.catalog import convention
from engine.cycle.cycle import Cycle
from engine.cycle.recall import TradingMemory
from engine.cycle.turn import CycleResult, TradingHistory, Turn
from engine.domain.decision import Decision, Outcome
from engine.domain.execution import ExecutionRules, FillAt
from engine.domain.market import PriceHistory, Symbol
from engine.domain.order import Fill
from engine.domain.portfolio import Portfolio
from engine.domain.run import EquityPoint, Result, RunSpec, Stretch
from engine.lab.window import coverage, data_notes, unread_series, window
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time, previous_session
from engine.messages.events import Event, OrderFilled, SessionOpened, SessionSettled
from engine.ports import Calendar
from engine.session.recorder import JournalRecorder, Silent
from engine.session.reward import known_books, outcomes
from engine.simulation.simulated_broker import MarketActivity, SimulatedBroker


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestContext:
    """What a run of agents needs, all of it given. `venue` are the prices that the broker trades at, where they are
    not the market's own: a market that is cut in the middle of a coin's day has no bar of it, and fills still come.
    `memory` is the cycle's."""

    run: str
    desk: str
    symbols: tuple[Symbol, ...]
    market: Market
    calendar: Calendar
    clock: BacktestClock
    cycle: Cycle
    rules: ExecutionRules
    cash: Decimal
    publish: Callable[[Event], None] = lambda event: None
    recorder: JournalRecorder | Silent = field(default_factory=Silent)
    stop: Callable[[], bool] = lambda: False
    venue: Mapping[Symbol, PriceHistory] | None = None
    memory: TradingMemory | None = None


async def run_agents(spec: RunSpec, setting: BacktestContext) -> Result:
    """Plays the warm-up (if any) and the test. Both are simulated trading; at `spec.first` cash and positions start
    afresh, while what the desk has learned stays. Source: FinVision §4.1 [V9].

    Raises UsageError for an empty window; MissingData, StaleData or MalformedData where the bars do not cover it.
    """
    warming, sessions = windows(spec, setting.calendar)
    covered = coverage(spec, setting.market)
    player = _Player(setting, len(warming) + len(sessions))
    warm_up = await player.play("warm-up", warming) if warming else None
    test = await player.play("test", sessions)
    notes = (
        *data_notes(spec, setting.market, covered),
        *unread_series(setting.cycle.preset, spec.data, setting.market),
        *player.notes,
    )
    return Result(
        spec=spec, test=test, warm_up=warm_up, dropped=setting.market.dropped, notes=notes, interrupted=player.stopped
    )


def windows(spec: RunSpec, calendar: Calendar) -> tuple[Sequence[date], Sequence[date]]:
    """The sessions of the warm-up (none without one) and of the test. Raises UsageError where one has none."""
    known = convention(spec.convention)
    sessions = window(calendar, spec.first, spec.last, max(known.bars_dropped_for(symbol) for symbol in spec.symbols))
    if spec.warm_up_from is None:
        return (), sessions
    return window(calendar, spec.warm_up_from, sessions[0] - timedelta(days=1), 0), sessions


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a run stands between two sessions of its test: enough to go on from. `closed` is the session that was
    settled last, None before the first; `awaited` is what the last decisions rest on until their reward is known;
    `memory` a copy of its own."""

    closed: date | None
    portfolio: Portfolio
    notebook: TradingHistory
    awaited: tuple[tuple[Decision, ...], EquityPoint, tuple[Fill, ...]] | None = None
    memory: TradingMemory | None = None


async def play_to(
    setting: BacktestContext,
    warming: Sequence[date],
    sessions: Sequence[date],
    read: date,
    start: Checkpoint | None = None,
) -> tuple[tuple[Decision, ...], Checkpoint]:
    """Plays as `run_agents` does, from a checkpoint (or the beginning, warm-up included) until the decision that reads
    the session `read` has been taken, and no further: nothing is needed that comes after. `sessions` are all of the
    test's.

    `setting.memory` stands where the checkpoint stands already, being a copy of its memory. Returns the decisions, in
    order, and where the run stands once `read` is settled. The data is not checked.
    """
    player = _Player(setting, len(warming) + len(sessions), None if start is None else start.notebook)
    decisions: list[Decision] = []
    if start is None and warming:
        decisions += (await player.play("warm-up", warming)).decisions
    played = player.begin("test", read, start)
    due = [s for s in sessions if s <= read and (start is None or start.closed is None or s > start.closed)]
    await player.advance(played, due)
    closed = due[-1] if due else None if start is None else start.closed
    memory = None if setting.memory is None else setting.memory.copy()
    checkpoint = Checkpoint(closed, played.broker.portfolio, _copy(player.notebook), played.awaited, memory)
    if setting.rules.fill_at is not FillAt.SAME_CLOSE:
        played.decisions += (await player.decide("test", read, played.broker)).decisions
    return (*decisions, *played.decisions), checkpoint


@dataclass(slots=True)
class _Books:
    """One part's books so far; `awaited` as in Checkpoint."""

    part: str
    broker: SimulatedBroker
    equity: list[EquityPoint] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    awaited: tuple[tuple[Decision, ...], EquityPoint, tuple[Fill, ...]] | None = None


class _Player:
    """Carries the notebook and the count of sessions from the warm-up into the test."""

    def __init__(self, setting: BacktestContext, total: int, notebook: TradingHistory | None = None) -> None:
        self.stopped = False
        self.notes: list[str] = []
        self._setting = setting
        self._hindsight_until: datetime | None = None
        self.notebook = TradingHistory() if notebook is None else _copy(notebook)
        self._total = total
        self._done = 0

    async def play(self, part: str, sessions: Sequence[date]) -> Stretch:
        """One part of the run, with books of its own."""
        played = self.begin(part, sessions[-1])
        await self.advance(played, sessions)
        broker = played.broker
        self.notes += [note for note in broker.notes if note not in self.notes]
        return Stretch(
            initial_value=self._setting.cash,
            equity=tuple(played.equity),
            fills=tuple(broker.fills),
            cash_flows=tuple(broker.cash_flows),
            decisions=tuple(played.decisions),
        )

    def begin(self, part: str, last: date, start: Checkpoint | None = None) -> _Books:
        """Fresh books, or those of a checkpoint, and a broker that keeps them until `last`."""
        setting = self._setting
        money_step = setting.rules.money_step
        broker = SimulatedBroker(
            setting.rules,
            Portfolio(setting.cash, money_step=money_step) if start is None else start.portfolio,
            setting.market.histories if setting.venue is None else setting.venue,
            setting.market.actions,
            closed=None if start is None else start.closed,
            last=last,
        )
        setting.recorder.began(part, setting.cash)
        self._hindsight_until = decision_time(setting.calendar, last) if part == "warm-up" else None
        return _Books(part, broker, awaited=None if start is None else start.awaited)

    async def advance(self, played: _Books, sessions: Sequence[date]) -> None:
        """Lives through sessions, until told to stop."""
        same_close = self._setting.rules.fill_at is FillAt.SAME_CLOSE
        live = self._decide_at_close if same_close else self._decide_before_open
        for session in sessions:
            if self._setting.stop():
                self.stopped = True
                return
            await live(session, played)

    async def _decide_before_open(self, session: date, played: _Books) -> None:
        """Decides on what the session before has shown, trades in this one. What it earned is reckoned at the prices
        that are known when the next decision is taken. Source: FinVision §3.4 [V5, V7]."""
        broker = played.broker
        decided_on = previous_session(self._setting.calendar, session)
        before = self._marked(decided_on, broker.portfolio)
        verdict = await self.decide(played.part, decided_on, broker)
        opened = broker.open_session(session)
        books, closed = broker.close_session(session)
        after = self._marked(session, broker.portfolio)
        fills, flows = opened.fills + closed.fills, opened.cash_flows + closed.cash_flows
        self._learn(outcomes(verdict.decisions, before, after, fills, flows, self.notebook.outcomes))
        self._close(played, verdict, books, (opened, closed))

    async def _decide_at_close(self, session: date, played: _Books) -> None:
        """Decides on a session's close and trades at it, as some papers do: the reward of a decision is what comes
        between this close and the next, and is known before the next decision."""
        broker = played.broker
        opened = broker.open_session(session)
        standing = self._marked(session, broker.portfolio)
        if played.awaited is not None:
            decisions, before, fills = played.awaited
            self._learn(outcomes(decisions, before, standing, fills, opened.cash_flows, self.notebook.outcomes))
        verdict = await self.decide(played.part, session, broker)
        books, closed = broker.close_session(session)
        played.awaited = (verdict.decisions, standing, closed.fills)
        self._close(played, verdict, books, (opened, closed))

    async def decide(self, part: str, session: date, broker: SimulatedBroker) -> CycleResult:
        """Runs the cycle on what a session's close has shown and hands its orders to the broker."""
        setting = self._setting
        now = decision_time(setting.calendar, session)
        setting.clock.advance(now)
        self._done += 1
        setting.publish(
            SessionOpened(run=setting.run, time=now, session=session, index=self._done, total=self._total, part=part)
        )
        turn = Turn(
            run=setting.run,
            desk=setting.desk,
            session=session,
            number=1,
            symbols=setting.symbols,
            market=setting.market.at(now),
            news_after=decision_time(setting.calendar, previous_session(setting.calendar, session)),
            portfolio=broker.portfolio,
            value=self._marked(session, broker.portfolio).value,
            notebook=self.notebook,
            step=setting.calendar.number(session),
            hindsight_until=self._hindsight_until,
        )
        verdict = await setting.cycle.run(turn)
        setting.recorder.decided(verdict)
        for order in verdict.orders:
            setting.recorder.ordered(broker.submit(order))
        return verdict

    def _marked(self, session: date, portfolio: Portfolio) -> EquityPoint:
        setting = self._setting
        return known_books(setting.market, setting.calendar, setting.symbols, session, portfolio)

    def _learn(self, rows: Sequence[Outcome]) -> None:
        self._setting.cycle.learn(self.notebook, rows)
        self._setting.recorder.learned(rows)

    def _close(
        self, played: _Books, verdict: CycleResult, books: EquityPoint, traded: Sequence[MarketActivity]
    ) -> None:
        played.decisions += verdict.decisions
        played.equity.append(books)
        setting = self._setting
        for happened in traded:
            setting.recorder.traded(happened)
            for fill in happened.fills:
                setting.publish(_filled(setting.run, setting.clock.now(), fill))
        setting.recorder.settled(books)
        held = tuple((s, p.quantity, books.prices[s]) for s, p in books.portfolio.positions.items())
        setting.publish(
            SessionSettled(
                run=setting.run,
                time=setting.clock.now(),
                session=books.session,
                value=books.value,
                cash=books.portfolio.cash,
                positions=held,
            )
        )


def _copy(notebook: TradingHistory) -> TradingHistory:
    return TradingHistory({key: [*rows] for key, rows in notebook.outcomes.items()}, dict(notebook.decisions))


def _filled(run: str, now: datetime, fill: Fill) -> OrderFilled:
    side = fill.side.value
    return OrderFilled(
        run=run,
        time=now,
        order_id=fill.order_id,
        session=fill.session,
        symbol=fill.symbol,
        side=side,
        quantity=fill.quantity,
        price=fill.price,
        fee=fill.fee,
    )
