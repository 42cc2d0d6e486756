"""A backtest of a strategy: its target weights, session by session, drive the simulated broker directly.

A fast synchronous core beside the session loop of the agents: no model is asked and nothing is journalled meanwhile.

Target weights by decision, of rules from their signals and of strategies with state, and the orders that they make.

Signals of a whole history are computed at once (a rule is causal), so a session touches only the symbols whose target
changes in it; a strategy with state is asked at every decision. Each symbol trades with its own share of the cash; only
targets that rebalance move cash between symbols. An order that expired unfilled is submitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import ROUND_DOWN, Decimal
from enum import Enum
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np

from engine.conventions.catalog import Convention
from engine.conventions.catalog import convention as convention_named
from engine.domain.market import PriceHistory, Symbol
from engine.domain.order import CENT, EXACT, ZERO, Order, OrderState, Portfolio, Side, order_id
from engine.domain.run import EquityPoint, ExecutionRules, FillAt, PriceBasis, Result, RunPart, RunSpec
from engine.errors import UsageError
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
from engine.market.price_faults import Coverage
from engine.market.trading_hours import decision_time, previous_session
from engine.ports import Calendar
from engine.simulation.price_basis import on_first_basis
from engine.simulation.simulated_broker import Actions, MarketActivity, SimulatedBroker
from engine.strategies.catalog import in_file, make_strategy, signals_of, strategy_class, weights_of
from engine.strategies.learned import Learner
from engine.strategies.strategy import (
    Fitted,
    Signal,
    Signals,
    SignalStrategy,
    Strategy,
    StrategyView,
    TrainingHistory,
    WeightStrategy,
    parameters,
)


def run_strategy(
    spec: RunSpec,
    market: Market,
    rules: ExecutionRules | None = None,
    cash: Decimal | None = None,
    report: Callable[[str], None] = lambda text: None,
    *,
    shared: Shared | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Result:
    """Run the strategy of a spec over its window. `rules` and `cash` are the convention's, with the spec's own changes,
    where they are not given; `report` hears how far a long training is. `shared` are windows of this market that other
    runs have left, and it leaves its own there.

    Raises KeyboardInterrupt once `stop` says so before a session: a part of a strategy's trades is no result.
    UsageError for an unknown strategy, parameter or convention, for an empty window and for a strategy that has
    nothing to be fitted on; MissingData, StaleData or MalformedData where the bars do not cover it; MalformedData where
    a user's strategy fails.
    """
    run = replace(RuleRun.of(spec, market, rules, cash), report=report, stop=stop)
    shared = {} if shared is None else shared
    key = spec.symbols, spec.first, spec.last, spec.warm_up_from, spec.convention
    if key not in shared:
        covered, seen = coverage(spec, market), through(spec, market)
        shared[key] = covered, seen, run.prices(seen)
    covered, seen, prices = shared[key]
    played = run.play(run.strategy(), seen, prices, run.sessions)
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
    closes: by session those of every symbol that has traded by then, made once for all runs at these prices.
    """

    histories: Mapping[Symbol, PriceHistory]
    actions: Actions | None
    last: date | None = None
    closes: dict[date, dict[Symbol, Decimal]] = field(default_factory=dict)


Shared = dict[tuple[object, ...], tuple[Mapping[Symbol, Coverage], Market, Prices]]
"""Windows of one market that its runs share, by symbols, dates and convention: the sessions that the bars cover, the
market through the window, and the prices of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The books of warm-up and test, what a reader has to know, and what a strategy with state answered in the test, by
    session and symbol."""

    test: RunPart
    warm_up: RunPart | None
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
    report: hears how far a long training is.
    """

    spec: RunSpec
    convention: Convention
    rules: ExecutionRules
    cash: Decimal
    calendar: Calendar
    sessions: Sequence[date]
    report: Callable[[str], None] = lambda text: None
    stop: Callable[[], bool] = lambda: False

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
        warm_up: RunPart | None = None
        notes: tuple[str, ...] = ()
        if begin is not None and isinstance(strategy, Fitted):
            training_end = seen.at(decision_time(self.calendar, before_test))
            history = TrainingHistory(
                first=begin,
                last=before_test,
                symbols=self.spec.symbols,
                market=training_end,
                fill_at=self.rules.fill_at,
                cost=self.rules.cost_rate,
                report=self.report,
            )
            with in_file(type(strategy)):
                strategy.fit(history)
            own = strategy.notes if isinstance(strategy, Learner) else ()
            notes = (f"fitted on {begin} to {before_test}, which it did not trade", *own)
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
            closes=prices.closes,
        )
        orders = RuleOrders(broker, closes, self.cash, name=strategy.name, run=self.spec.run)
        equity: list[EquityPoint] = []
        weights: dict[Symbol, list[float]] = {symbol: [] for symbol in closes.histories}
        wanted = dict.fromkeys(weights, 0.0)
        for number, session in enumerate(sessions):
            if self.stop():
                raise KeyboardInterrupt
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
        test = RunPart(
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


class Reach(Enum):
    """The way to a target; the value names it in the reason of an order."""

    WEIGHT = "rebalance"
    """By buying or selling, at the portfolio's present value."""
    ENTER = "buy if not held"
    """By buying with the symbol's own cash, where nothing of it is held."""
    ADD = "buy"
    """By buying with the symbol's own cash, beside what is held."""


class Target(NamedTuple):
    """The share of the portfolio that a symbol is to have, exact; 0 sells all of it."""

    weight: Fraction
    reach: Reach = Reach.WEIGHT

    @property
    def verb(self) -> str:
        """The target as an order's reason names it."""
        return self.reach.value if self.weight else "sell"


Targets = Sequence[tuple[Symbol, Target]]


class TargetSource(Protocol):
    """Targets by the number of the decision."""

    def at(self, number: int, portfolio: Portfolio) -> Targets:
        """The targets that change at a decision, given the books before it. Decisions come in order."""


@dataclass(frozen=True, slots=True)
class VisibleCloses:
    """The closes that each decision may see: `histories` are what the books are valued at, `visible` the ordinal of the
    last visible session by symbol and number of the decision."""

    histories: Mapping[Symbol, PriceHistory]
    visible: Mapping[Symbol, Sequence[int]]

    def close(self, symbol: Symbol, number: int) -> Decimal | None:
        """The last visible close, or None where the symbol has not traded yet."""
        history = self.histories[symbol]
        rows = history.rows_through(date.fromordinal(self.visible[symbol][number]))
        return history.close_at(rows - 1) if rows else None

    def closes(self, number: int, portfolio: Portfolio) -> dict[Symbol, Decimal]:
        """The last visible close of every symbol that is held."""
        closes = {symbol: self.close(symbol, number) for symbol in portfolio.positions}
        return {symbol: close for symbol, close in closes.items() if close is not None}


class SignalTargets:
    """The adapter from a rule's signals: each symbol has the same share, and its last signal since the decision before
    is its target. Signals that only repeat what is wanted already are left out."""

    def __init__(
        self,
        rule: SignalStrategy,
        histories: Mapping[Symbol, PriceHistory],
        visible: Mapping[Symbol, Sequence[int]],
        *,
        adds_to_positions: bool,
    ) -> None:
        share = Fraction(1, len(histories))
        targets: dict[int, Target] = {
            Signal.OUT: Target(Fraction(0)),
            Signal.LONG: Target(share, Reach.ADD),
            Signal.ENTER: Target(share, Reach.ENTER),
            Signal.REBALANCE: Target(share),
        }
        self._targets: dict[int, list[tuple[Symbol, Target]]] = {}
        for symbol, history in histories.items():
            numbers, signals = _changes(signals_of(rule, history), history, visible[symbol], adds_to_positions)
            for number, signal in zip(numbers, signals, strict=True):
                self._targets.setdefault(number, []).append((symbol, targets[signal]))

    def at(self, number: int, portfolio: Portfolio) -> Targets:
        """The targets computed for the decision, whatever the books are."""
        return self._targets.get(number, ())


def _changes(
    signals: Signals, history: PriceHistory, visible: Sequence[int], adds_to_positions: bool
) -> tuple[list[int], list[int]]:
    """The numbers of the decisions at which something new is wanted, and the signals."""
    seen = np.searchsorted(np.asarray(history.sessions), np.asarray(visible), side="right")
    start, stop = max(int(seen[0]) - 1, 0), int(seen[-1])
    rows = np.flatnonzero(signals[start:stop]) + start
    wanted = signals[rows]
    if not adds_to_positions:
        wanted = np.where(wanted == Signal.LONG, Signal.ENTER, wanted)
    numbers = np.searchsorted(seen, rows, side="right")
    latest = np.append(numbers[1:] != numbers[:-1], np.ones(min(len(rows), 1), bool))
    numbers, wanted = numbers[latest], wanted[latest]
    repeats = np.zeros(len(wanted), bool)
    repeats[1:] = (wanted[1:] == wanted[:-1]) & np.isin(wanted[1:], (Signal.OUT, Signal.ENTER))
    return numbers[~repeats].tolist(), wanted[~repeats].tolist()


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightTargets:
    """The answers of a strategy with state, each as of the close of the session in `decided`.

    strategy: the strategy.
    market: what its view is taken from.
    calendar: the one that decisions follow.
    decided: the sessions that decisions read.
    closes: what the books are valued at for the view.
    answers: every weight that it gave so far, by session and symbol.
    """

    strategy: WeightStrategy
    market: Market
    calendar: Calendar
    decided: Sequence[date]
    closes: VisibleCloses
    answers: dict[tuple[date, Symbol], Fraction] = field(default_factory=dict)

    def at(self, number: int, portfolio: Portfolio) -> Targets:
        """Ask the strategy. Raises MalformedData for weights that no portfolio without short positions and credit can
        have, and, naming file and line, where the strategy of a user fails."""
        session = self.decided[number]
        weights = weights_of(self.strategy, self._view(number, session, portfolio))
        self.answers.update({(session, symbol): weight for symbol, weight in weights.items()})
        return [(symbol, Target(weight)) for symbol, weight in weights.items()]

    def _view(self, number: int, session: date, portfolio: Portfolio) -> StrategyView:
        closes = self.closes.closes(number, portfolio)
        value = portfolio.value(closes)
        worth = {symbol: EXACT.multiply(portfolio.quantity(symbol), close) for symbol, close in closes.items()}
        return StrategyView(
            session=session,
            market=self.market.at(decision_time(self.calendar, session)),
            symbols=tuple(self.closes.histories),
            value=value,
            held={symbol: float(amount / value) for symbol, amount in worth.items()} if value else {},
        )


SMALLEST_REBALANCE = Decimal(1)
"""The smallest trade of a rebalancing, in the quote currency: brokers take no smaller buys."""


class RuleOrders:
    """The orders of one run, submitted to `broker`; `name` opens the reason of each, `run` its id."""

    def __init__(self, broker: SimulatedBroker, closes: VisibleCloses, cash: Decimal, *, name: str, run: str) -> None:
        self.unfilled: dict[Symbol, Target] = {}
        """Targets whose order expired, to be ordered again at the next decision."""
        self._broker, self._closes = broker, closes
        self._name, self._run = name, run
        share = (cash / len(closes.histories)).quantize(broker.rules.money_step, ROUND_DOWN)
        self._cash = dict.fromkeys(closes.histories, share)
        self._ordered: dict[str, tuple[Symbol, Target]] = {}

    def record(self, activity: MarketActivity) -> None:
        """Book a session's activity on the symbols' shares of the cash."""
        for fill in activity.fills:
            amount = self._broker.portfolio.money(EXACT.multiply(fill.quantity, fill.price))
            self._cash[fill.symbol] += (-amount if fill.side is Side.BUY else amount) - fill.fee
        for flow in activity.cash_flows:
            self._cash[flow.symbol] += flow.amount
        for update in activity.updates:
            if update.state is OrderState.EXPIRED and update.order_id in self._ordered:
                symbol, target = self._ordered[update.order_id]
                # What was bought in part is held by now: the rest is an addition to it.
                self.unfilled[symbol] = target._replace(reach=Reach.ADD) if target.reach is Reach.ENTER else target

    def submit(self, number: int, session: date, targets: Targets) -> None:
        """Submit the orders of one decision. Cash that an order may use is reserved; sells free none yet."""
        wanted = self._with_unfilled(targets)
        self.unfilled, self._ordered = {}, {}
        others = (order for order in self._broker.waiting if order.symbol not in wanted)
        free = self._broker.portfolio.cash - sum((order.notional or ZERO for order in others), ZERO)
        balanced: dict[Symbol, Target] = {}
        for symbol, target in wanted.items():
            held = self._broker.portfolio.quantity(symbol)
            if not target.weight:
                if held > 0:
                    self._order(symbol, target, session, Side.SELL, quantity=held)
            elif target.reach is Reach.WEIGHT:
                balanced[symbol] = target
            elif target.reach is Reach.ADD or not held:
                notional = min(self._cash[symbol], free)
                if notional > 0:
                    self._order(symbol, target, session, Side.BUY, notional=notional)
                    free -= notional
        if balanced:
            self._rebalance(balanced, number, session, free)

    def _with_unfilled(self, targets: Targets) -> dict[Symbol, Target]:
        """The targets of a decision beside those that were not reached before."""
        wanted = dict(self.unfilled)
        for symbol, target in targets:
            # Being in is what an unfilled buy or rebalancing is about already, and it wants more than that.
            if target.reach is not Reach.ENTER or symbol not in wanted or not wanted[symbol].weight:
                wanted[symbol] = target
        return wanted

    def _rebalance(self, targets: dict[Symbol, Target], number: int, session: date, free: Decimal) -> None:
        """Sell what is above its weight and buy, with the cash that there is, what is below; where the sales are to pay
        for more, the rest is bought at the next decision."""
        portfolio = self._broker.portfolio
        value = portfolio.value(self._closes.closes(number, portfolio))
        sells, buys = [], {}
        for symbol, target in targets.items():
            price = self._closes.close(symbol, number)
            if price is None:
                continue
            share = EXACT.multiply(value, Decimal(target.weight.numerator)) / target.weight.denominator
            excess = EXACT.multiply(portfolio.quantity(symbol), price) - share
            if excess >= SMALLEST_REBALANCE:
                sells.append(symbol)
                self._order(symbol, target, session, Side.SELL, quantity=excess / price)
            elif excess <= -SMALLEST_REBALANCE:
                buys[symbol] = -excess
        wanted = sum(buys.values(), ZERO)
        part = min(Decimal(1), max(free, ZERO) / wanted) if wanted else ZERO
        for symbol, notional in buys.items():
            notional = (notional * part).quantize(CENT, ROUND_DOWN)
            if notional >= SMALLEST_REBALANCE:
                self._order(symbol, targets[symbol], session, Side.BUY, notional=notional)
            if part < 1 and sells:
                self.unfilled[symbol] = targets[symbol]

    def _order(
        self,
        symbol: Symbol,
        target: Target,
        session: date,
        side: Side,
        *,
        quantity: Decimal | None = None,
        notional: Decimal | None = None,
    ) -> None:
        order = Order(
            id=order_id(self._run, session, 1, symbol, side),
            symbol=symbol,
            side=side,
            session=session,
            quantity=quantity,
            notional=notional,
            reason=f"{self._name}: {target.verb}",
        )
        self._ordered[order.id] = (symbol, target)
        self._broker.submit(order)
