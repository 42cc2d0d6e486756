"""A backtest of a strategy: its target weights, session by session, drive the simulated broker directly.

A fast synchronous core beside the session loop of the agents: no model is asked and nothing is journalled meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

from engine.conventions.catalog import Convention
from engine.conventions.catalog import convention as convention_named
from engine.domain.execution import ExecutionRules, FillAt, PriceBasis
from engine.domain.market import PriceHistory, Symbol
from engine.domain.portfolio import Portfolio
from engine.domain.run import EquityPoint, Result, RunSpec, Stretch
from engine.errors import UsageError
from engine.lab.targets import RuleOrders, SignalTargets, TargetSource, VisibleCloses, WeightTargets
from engine.lab.window import (
    coverage,
    data_notes,
    decided_sessions,
    desk_calendar_of,
    execution_rules,
    on_convention,
    window,
)
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time, previous_session
from engine.ports import Calendar
from engine.simulation.price_basis import on_first_basis
from engine.simulation.simulated_broker import Actions, SimulatedBroker
from engine.strategies.catalog import in_file, make_strategy, strategy_class
from engine.strategies.strategy import Fitted, Strategy, TrainingHistory, WeightStrategy, parameters


def run_strategy(
    spec: RunSpec, market: Market, rules: ExecutionRules | None = None, cash: Decimal | None = None
) -> Result:
    """Run the strategy of a spec over its window. `rules` and `cash` are the convention's, with the spec's own changes,
    where they are not given.

    Raises UsageError for an unknown strategy, parameter or convention, for an empty window and for a strategy that has
    nothing to be fitted on; MissingData, StaleData or MalformedData where the bars do not cover it; MalformedData where
    a user's strategy fails.
    """
    run = RuleRun.of(spec, market, rules, cash)
    covered = coverage(spec, market)
    window_market = through(spec, market)
    played = run.play(run.strategy(), window_market, run.prices(window_market), run.sessions)
    return Result(
        spec=spec,
        test=played.test,
        warm_up=played.warm_up,
        dropped=market.dropped,
        notes=(*data_notes(spec, market, covered), *played.notes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The prices that are filled and valued at.

    histories: by symbol.
    actions: the corporate actions to apply; None where the prices hold them already.
    last: the session that they reach: a symbol that ends before has stopped trading. None: the last that is traded.
    """

    histories: Mapping[Symbol, PriceHistory]
    actions: Actions | None
    last: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The books of warm-up and test, what a reader has to know, and what a strategy with state answered in the test, by
    session and symbol."""

    test: Stretch
    warm_up: Stretch | None
    notes: tuple[str, ...]
    answers: Mapping[tuple[date, Symbol], Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRun:
    """A run of a strategy with its effective settings.

    spec: the run as it was requested.
    convention: its convention.
    rules, cash: costs, fills and starting cash.
    calendar: the one that decisions follow.
    sessions: the test, in order.
    """

    spec: RunSpec
    convention: Convention
    rules: ExecutionRules
    cash: Decimal
    calendar: Calendar
    sessions: Sequence[date]

    @classmethod
    def of(
        cls, spec: RunSpec, market: Market, rules: ExecutionRules | None = None, cash: Decimal | None = None
    ) -> RuleRun:
        """The run that a spec describes. Raises UsageError for an unknown convention, no cash and an empty window."""
        convention = convention_named(spec.convention).for_symbols(spec.symbols)
        if cash is None:
            cash = convention.starting_cash if spec.cash is None else spec.cash
        if cash <= 0:
            raise UsageError(f"--cash {cash}: it must be above zero")
        calendar = desk_calendar_of(market, spec.symbols)
        dropped = max(convention.bars_dropped_for(symbol) for symbol in spec.symbols)
        return cls(
            spec=spec,
            convention=convention,
            rules=execution_rules(spec, convention) if rules is None else rules,
            cash=cash,
            calendar=calendar,
            sessions=window(calendar, spec.first, spec.last, dropped),
        )

    def strategy(self) -> Strategy:
        """The strategy, not fitted yet. Raises UsageError for an unknown one and for one that is fitted without a
        warm-up, MalformedData where a user's cannot be made."""
        spec = self.spec
        if spec.strategy is None:
            raise UsageError("this run names no strategy; choose one with --strategy")
        params = dict(spec.params)
        if any(parameter.name == "seed" for parameter in parameters(strategy_class(spec.strategy))):
            params.setdefault("seed", str(spec.seed))
        strategy = make_strategy(spec.strategy, params)
        if isinstance(strategy, Fitted) and spec.warm_up_from is None:
            raise UsageError(
                f"strategy {spec.strategy} is fitted before it trades: --warm-up-from names the first session of its "
                "training part"
            )
        return strategy

    def prices(self, market: Market) -> Prices:
        """The bars of a market that ends with the window, on the convention's basis, adjusted ones from the first
        session on."""
        priced = on_convention(self.spec, market)
        actions = market.actions if self.convention.price_basis is PriceBasis.RAW else None
        last = self.calendar.sessions(self.sessions[0], self.spec.last)[-1]
        return Prices(histories=priced.histories, actions=actions, last=last)

    def play(self, strategy: Strategy, seen: Market, prices: Prices, sessions: Sequence[date]) -> Played:
        """Fit a strategy on the warm-up where it can be, or let it trade the warm-up, then trade these sessions of the
        test, each from books of its own; state stays. One that is fitted does not trade the warm-up: it knows it."""
        begin, before_test = self.spec.warm_up_from, previous_session(self.calendar, self.sessions[0])
        warm_up: Stretch | None = None
        notes: tuple[str, ...] = ()
        if begin is not None and isinstance(strategy, Fitted):
            training_end = seen.at(decision_time(self.calendar, before_test))
            history = TrainingHistory(first=begin, last=before_test, symbols=self.spec.symbols, market=training_end)
            with in_file(type(strategy)):
                strategy.fit(history)
            notes = (f"fitted on {begin} to {before_test}, which it did not trade",)
        elif begin is not None:
            warm_up = self.trade(strategy, window(self.calendar, begin, before_test, 0), seen, prices).test
        traded = self.trade(strategy, sessions, seen, prices)
        return replace(traded, warm_up=warm_up, notes=(*notes, *traded.notes))

    def trade(self, strategy: Strategy, sessions: Sequence[date], seen: Market, prices: Prices) -> Played:
        """Trade a strategy from fresh books through consecutive sessions: those that fill and are valued. A decision
        that fills next time reads the session before; one that fills at the same close reads that session."""
        rules, same_close = self.rules, self.rules.fill_at is FillAt.SAME_CLOSE
        decided = decided_sessions(self.calendar, sessions, rules)
        targets, closes = self._targets(strategy, seen, prices, decided)
        broker = SimulatedBroker(
            rules,
            Portfolio(self.cash, money_step=rules.money_step),
            closes.histories,
            prices.actions,
            last=prices.last or sessions[-1],
        )
        orders = RuleOrders(broker, closes, self.cash, name=strategy.name, run=self.spec.run)
        equity: list[EquityPoint] = []
        weights: dict[Symbol, list[float]] = {symbol: [] for symbol in closes.histories}
        wanted = dict.fromkeys(weights, 0.0)
        for number, session in enumerate(sessions):
            if same_close:
                orders.record(broker.open_session(session))
            due = targets.at(number, broker.portfolio)
            if due or orders.unfilled:
                orders.submit(number, decided[number], due)
            if not same_close:
                orders.record(broker.open_session(session))
            point, closing = broker.close_session(session)
            orders.record(closing)
            equity.append(point)
            if same_close:
                wanted |= {symbol: float(target.weight) for symbol, target in due}
                for symbol, row in weights.items():
                    row.append(wanted[symbol])
        broker.expire_waiting()
        test = Stretch(
            initial_value=self.cash,
            equity=tuple(equity),
            fills=tuple(broker.fills),
            cash_flows=tuple(broker.cash_flows),
            target_weights={symbol: tuple(row) for symbol, row in weights.items()} if same_close else None,
        )
        answers = targets.answers if isinstance(targets, WeightTargets) else {}
        return Played(test=test, warm_up=None, notes=broker.notes, answers=answers)

    def _targets(
        self, strategy: Strategy, seen: Market, prices: Prices, decided: Sequence[date]
    ) -> tuple[TargetSource, VisibleCloses]:
        """The source of a strategy's targets by decision, and the closes that each decision sees."""
        own = {symbol: seen.calendars[symbol] for symbol in prices.histories}
        calendars = {other.name: other for other in own.values()}
        closed = {name: _closed(decided, self.calendar, other) for name, other in calendars.items()}
        closes = VisibleCloses(prices.histories, {symbol: closed[other.name] for symbol, other in own.items()})
        if isinstance(strategy, WeightStrategy):
            source = WeightTargets(
                strategy=strategy, market=seen, calendar=self.calendar, decided=decided, closes=closes
            )
            return source, closes
        read = {symbol: on_first_basis(seen.histories[symbol], seen.actions.get(symbol)) for symbol in own}
        adds = self.convention.adds_to_positions
        return SignalTargets(strategy, read, closes.visible, adds_to_positions=adds), closes


def through(spec: RunSpec, market: Market) -> Market:
    """The market with the bars of a run's symbols through its window."""
    histories = {symbol: market.histories[symbol] for symbol in spec.symbols}
    cut = {symbol: history.slice(0, history.rows_through(spec.last)) for symbol, history in histories.items()}
    return replace(market, histories=cut)


def _closed(decided: Sequence[date], calendar: Calendar, other: Calendar) -> Sequence[int]:
    """By decision, the ordinal of another calendar's last session that has closed by then."""
    if other.name == calendar.name:
        return [session.toordinal() for session in decided]
    return [other.last_closed(decision_time(calendar, session)).toordinal() for session in decided]
