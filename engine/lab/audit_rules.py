"""A rule strategy under audit: its signals or weights, and what it trades on them, from data that is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from engine.domain.execution import ExecutionRules, FillAt
from engine.domain.market import PriceHistory, Symbol
from engine.domain.order import Fill
from engine.domain.run import RunSpec, Stretch
from engine.lab.audit import Leg, Trace, venue
from engine.lab.rule_backtest import Played, Prices, RuleRun, through
from engine.lab.watched_market import Inputs, WatchedMarket
from engine.lab.window import coverage, decided_sessions
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.simulation.price_basis import on_first_basis
from engine.strategies.answers import signals_of
from engine.strategies.strategy import Fitted, SignalStrategy, WeightStrategy


class RuleSubject:
    """A strategy over its test. Every leg begins at the beginning: with the fit, or with the warm-up of a strategy that
    keeps state. Raises what `run_strategy` raises."""

    beside: tuple[str, ...] = ()
    as_traded = True
    hindsight = 0

    def __init__(self, spec: RunSpec, market: Market, rules: ExecutionRules, cash: Decimal) -> None:
        run = RuleRun.of(spec, market, rules, cash)
        learns = isinstance(run.strategy(), WeightStrategy | Fitted)
        # A rule learns nothing from its warm-up, and what it trades there is not compared.
        self._run = run if learns else replace(run, spec=replace(spec, warm_up_from=None))
        self.name = spec.strategy or ""
        self.market = market
        self.calendar = run.calendar
        self._same_close = rules.fill_at is FillAt.SAME_CLOSE
        self.decided = decided_sessions(self.calendar, run.sessions, rules)
        self.test: Stretch | None = None

    async def whole(self) -> tuple[Trace, Mapping[str, Inputs]]:
        """The run as a backtest makes it, and what its strategy read."""
        run, strategy = self._run, self._run.strategy()
        coverage(run.spec, self.market)
        watched = WatchedMarket.of(through(run.spec, self.market))
        played = run.play(strategy, watched, run.prices(watched), run.sessions)
        self.test = played.test
        trace = _trace(played, run.sessions, run.spec.symbols)
        if not isinstance(strategy, WeightStrategy):
            trace |= self._signals(strategy, self.market, self.decided)
            watched.read["bars"] = self._inputs()
        return trace, watched.read

    async def training(self, seed: int) -> None:
        """None: rules write no texts."""

    async def leg(self, market: Market, read: date, start: Any, plant: Sequence[str] = ()) -> Leg:
        """The signal or the weights at a session, and the trades through the session that they fill in."""
        strategy = self._run.strategy()
        following = self.calendar.sessions(read + timedelta(days=1), self._run.sessions[-1])[:1]
        filled = read if self._same_close or not following else following[0]
        sessions = [session for session in self._run.sessions if session <= filled]
        played = self._run.play(strategy, market, self._prices(read, filled), sessions)
        trace = _trace(played, sessions, self._run.spec.symbols)
        if not isinstance(strategy, WeightStrategy):
            trace |= self._signals(strategy, market, [read])
        return Leg(trace, None)

    def _prices(self, read: date, filled: date) -> Prices:
        """The prices that the market really had through the session of the last fill, as far as they were known once
        the last decision was taken."""
        real = self._run.prices(through(self._run.spec, self.market))
        traded = replace(self.market, histories=real.histories)
        actions = self.market.cut(decision_time(self.calendar, filled)).actions
        return Prices(
            histories=venue(traded, filled, decision_time(self.calendar, read), self._run.rules.fill_at),
            actions=None if real.actions is None else actions,
            last=filled,
        )

    def _signals(
        self, rule: SignalStrategy, market: Market, decided: Sequence[date]
    ) -> dict[tuple[date, Symbol, str], Any]:
        """The signal at each of some decisions, None where there is no bar yet."""
        found: dict[tuple[date, Symbol, str], Any] = {}
        for symbol in self._run.spec.symbols:
            history = on_first_basis(market.histories[symbol], market.actions[symbol])
            signals = signals_of(rule, history)
            for session in decided:
                row = self._last_row(market, history, session)
                found[session, symbol, "signal"] = int(signals[row]) if row >= 0 else None
        return found

    def _last_row(self, market: Market, history: PriceHistory, session: date) -> int:
        """The row that a decision reads last, -1 where there is none yet."""
        now = decision_time(self.calendar, session)
        return history.rows_through(market.calendars[history.symbol].last_closed(now)) - 1

    def _inputs(self) -> Inputs:
        """The bars that a rule read: all of them up to each decision."""
        inputs = Inputs()
        for symbol in self._run.spec.symbols:
            history, calendar, row = self.market.histories[symbol], self.market.calendars[symbol], -1
            for session in self.decided:
                row = self._last_row(self.market, history, session)
                if row >= 0:
                    closed = calendar.closes_at(history.session(row))
                    inputs.add([(symbol, history.sessions[row])], closed, decision_time(self.calendar, session))
            inputs.items.update((symbol, day) for day in history.sessions[: max(row, 0)])
        return inputs


def _trace(played: Played, sessions: Sequence[date], symbols: Sequence[Symbol]) -> dict[tuple[date, Symbol, str], Any]:
    """The trades of every session and symbol, and the weights of a strategy that answers them."""
    trace: dict[tuple[date, Symbol, str], Any] = {(d, s, "trade"): () for d in sessions for s in symbols}
    fill: Fill
    for fill in played.test.fills:
        trace[fill.session, fill.symbol, "trade"] += (fill,)
    return trace | {(*decided, "weight"): weight for decided, weight in played.answers.items()}
