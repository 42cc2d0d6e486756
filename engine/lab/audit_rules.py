"""A rule strategy under audit: its signals, and what it trades on them, from data that is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from engine.conventions.catalog import convention
from engine.domain.execution import ExecutionRules, FillAt, PriceBasis
from engine.domain.market import PriceHistory, Symbol
from engine.domain.order import Fill
from engine.domain.run import RunSpec, Stretch
from engine.errors import UsageError
from engine.lab.audit import Leg, Trace, venue
from engine.lab.rule_backtest import priced, run_strategy, trade_strategy
from engine.lab.watched_market import Inputs
from engine.lab.window import desk_calendar_of, window
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time, previous_session
from engine.simulation.price_basis import on_first_basis
from engine.strategies.catalog import make_strategy


class RuleSubject:
    """A strategy over its window (a warm-up trades by itself and teaches a rule nothing). Raises UsageError for an
    unknown strategy or parameter and an empty window."""

    beside: tuple[str, ...] = ()
    hindsight = 0

    def __init__(self, spec: RunSpec, market: Market, rules: ExecutionRules, cash: Decimal) -> None:
        if spec.strategy is None:
            raise UsageError("this run names no strategy; choose one with --strategy")
        params = dict(spec.params)
        if spec.strategy == "random":
            params.setdefault("seed", str(spec.seed))
        known = convention(spec.convention)
        self.name = spec.strategy
        self.market = market
        self.calendar = desk_calendar_of(market, spec.symbols)
        self._spec, self._rules, self._cash, self._known = spec, rules, cash, known
        self._strategy = make_strategy(spec.strategy, params)
        dropped = max(known.bars_dropped_for(symbol) for symbol in spec.symbols)
        self._sessions = window(self.calendar, spec.first, spec.last, dropped)
        self._same_close = rules.fill_at is FillAt.SAME_CLOSE
        before = previous_session(self.calendar, self._sessions[0])
        self.decided: Sequence[date] = self._sessions if self._same_close else [before, *self._sessions[:-1]]

    async def whole(self) -> tuple[Trace, Mapping[str, Inputs]]:
        """The run as a backtest makes it, and the signals of the whole history."""
        result = run_strategy(self._spec, self.market, self._rules, self._cash)
        read, _ = priced(self._spec, self._known, self.market, self._spec.first)
        trace: dict[tuple[date, Symbol, str], Any] = _fills(result.test, self._sessions, self._spec.symbols)
        inputs = Inputs()
        for symbol, history in read.items():
            signals = self._strategy.signals(history)
            for session in self.decided:
                row = self._last_row(self.market, history, session)
                trace[session, symbol, "signal"] = int(signals[row]) if row >= 0 else None
            self._count(inputs, history)
        return trace, {"bars": inputs}

    async def leg(self, market: Market, read: date, start: Any, plant: Sequence[str] = ()) -> Leg:
        """The signal at a session, and the trades through the session that it fills in. Every leg begins at the
        beginning: a rule remembers nothing, and is quick."""
        now = decision_time(self.calendar, read)
        seen = {s: on_first_basis(market.histories[s], market.actions[s]) for s in self._spec.symbols}
        trace: dict[tuple[date, Symbol, str], Any] = {}
        for symbol, history in seen.items():
            row = self._last_row(market, history, read)
            trace[read, symbol, "signal"] = int(self._strategy.signals(history)[row]) if row >= 0 else None
        following = self.calendar.sessions(read + timedelta(days=1), self._sessions[-1])[:1]
        through = read if self._same_close or not following else following[0]
        sessions = [session for session in self._sessions if session <= through]
        if sessions:
            trace |= _fills(self._trade(seen, sessions, through, now), sessions, self._spec.symbols)
        return Leg(trace, None)

    def _trade(
        self, seen: Mapping[Symbol, PriceHistory], sessions: Sequence[date], through: date, now: datetime
    ) -> Stretch:
        """Trades what is seen, at the prices that the market really had through the session of the last fill."""
        raw = self._known.price_basis is PriceBasis.RAW
        _, traded = priced(self._spec, self._known, self.market, self._spec.first)
        last_fill = decision_time(self.calendar, through)
        stretch, _ = trade_strategy(
            self._strategy,
            sessions,
            self.calendar,
            seen,
            venue(replace(self.market, histories=traded), through, now, self._rules.fill_at),
            self._rules,
            self._cash,
            actions=self.market.cut(last_fill).actions if raw else None,
            calendars=self.market.calendars,
            adds_to_positions=self._known.adds_to_positions,
            last=through,
            run=self._spec.run,
        )
        return stretch

    def _last_row(self, market: Market, history: PriceHistory, session: date) -> int:
        """The row that a decision reads last, -1 where there is none yet."""
        now = decision_time(self.calendar, session)
        return history.rows_through(market.calendars[history.symbol].last_closed(now)) - 1

    def _count(self, inputs: Inputs, history: PriceHistory) -> None:
        calendar = self.market.calendars[history.symbol]
        for session in self.decided:
            row = self._last_row(self.market, history, session)
            if row >= 0:
                closed = calendar.closes_at(history.session(row))
                inputs.add([(history.symbol, history.sessions[row])], closed, decision_time(self.calendar, session))
        inputs.items.update((history.symbol, day) for day in history.sessions[: max(row, 0)])


def _fills(
    stretch: Stretch, sessions: Sequence[date], symbols: Sequence[Symbol]
) -> dict[tuple[date, Symbol, str], tuple[Fill, ...]]:
    """The trades of every session and symbol."""
    by_key: dict[tuple[date, Symbol, str], tuple[Fill, ...]] = {(d, s, "trade"): () for d in sessions for s in symbols}
    for fill in stretch.fills:
        by_key[fill.session, fill.symbol, "trade"] += (fill,)
    return by_key
