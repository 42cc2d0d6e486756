"""A backtest of a rule strategy: its signals, read session by session, drive the simulated broker directly.

Signals of a whole history are computed at once (a strategy is causal), so a session touches only the symbols whose
wish changes in it. Every symbol has its own share of the cash and trades with that; only a strategy that rebalances
moves cash between symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_DOWN, Decimal

import numpy as np

from engine.conventions.catalog import Convention, convention
from engine.domain.execution import ExecutionRules, FillAt, PriceBasis
from engine.domain.market import PriceHistory, Symbol, from_nano
from engine.domain.order import Order, OrderState, Side, order_id
from engine.domain.portfolio import CENT, EXACT, ZERO, Portfolio
from engine.domain.run import EquityPoint, Result, RunSpec, Stretch
from engine.errors import UsageError
from engine.lab.window import coverage, data_notes, desk_calendar_of, execution_rules, window
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time, previous_session
from engine.ports import Calendar
from engine.simulation.price_basis import known_adjusted, on_basis, on_first_basis
from engine.simulation.simulated_broker import Actions, MarketActivity, SimulatedBroker
from engine.strategies.catalog import make_strategy
from engine.strategies.strategy import Signal, Signals, Strategy, verb

SMALLEST_REBALANCE = Decimal(1)
"""What a rebalancing leaves alone, in the quote currency: brokers take no smaller buys."""

Wishes = Mapping[int, Sequence[tuple[Symbol, Signal]]]
"""What a strategy wants anew, by the number of the decision."""


def run_strategy(
    spec: RunSpec, market: Market, rules: ExecutionRules | None = None, cash: Decimal | None = None
) -> Result:
    """Runs the strategy of a spec over its window and, afresh, over its warm-up. `rules` and `cash` are the
    convention's, with the spec's own changes, where they are not given.

    Raises UsageError for an unknown strategy, parameter or convention and for an empty window; MissingData,
    StaleData or MalformedData where the bars do not cover it.
    """
    if spec.strategy is None:
        raise UsageError("this run names no strategy; choose one with --strategy")
    params = dict(spec.params)
    if spec.strategy == "random":
        params.setdefault("seed", str(spec.seed))
    strategy = make_strategy(spec.strategy, params)
    known = convention(spec.convention)
    rules = execution_rules(spec, known) if rules is None else rules
    if cash is None:
        cash = known.starting_cash if spec.cash is None else spec.cash
    if cash <= 0:
        raise UsageError(f"--cash {cash}: it must be above zero")
    calendar = desk_calendar_of(market, spec.symbols)
    begin = spec.first if spec.warm_up_from is None else spec.warm_up_from
    covered = coverage(spec, market)
    sessions = window(calendar, spec.first, spec.last, max(known.bars_dropped_for(s) for s in spec.symbols))
    trade = _Trade(
        spec=spec, strategy=strategy, known=known, rules=rules, cash=cash, calendar=calendar, market=market, begin=begin
    )
    warm_up = None
    if spec.warm_up_from is not None:
        before = sessions[0] - timedelta(days=1)
        warm_up, _ = trade.over(window(calendar, spec.warm_up_from, before, 0))
    test, sold = trade.over(sessions)
    notes = (*data_notes(spec, market, covered), *sold)
    return Result(spec=spec, test=test, warm_up=warm_up, dropped=market.dropped, notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trade:
    """What one run needs to trade any stretch of sessions."""

    spec: RunSpec
    strategy: Strategy
    known: Convention
    rules: ExecutionRules
    cash: Decimal
    calendar: Calendar
    market: Market
    begin: date

    def over(self, sessions: Sequence[date]) -> tuple[Stretch, tuple[str, ...]]:
        """Trades the sessions from fresh books; returns them and the broker's notes."""
        spec, known = self.spec, self.known
        read, traded = priced(spec, known, self.market, self.begin)
        return trade_strategy(
            self.strategy,
            sessions,
            self.calendar,
            read,
            traded,
            self.rules,
            self.cash,
            actions=self.market.actions if known.price_basis is PriceBasis.RAW else None,
            calendars=self.market.calendars,
            adds_to_positions=known.adds_to_positions,
            last=spec.last,
            run=spec.run,
        )


def priced(
    spec: RunSpec, known: Convention, market: Market, begin: date
) -> tuple[dict[Symbol, PriceHistory], dict[Symbol, PriceHistory]]:
    """The bars through the window that a strategy reads (on one split basis), and those that it fills and is valued
    at (on the convention's basis, adjusted ones from `begin` on)."""
    read: dict[Symbol, PriceHistory] = {}
    traded: dict[Symbol, PriceHistory] = {}
    for symbol in spec.symbols:
        history = market.histories[symbol]
        history = history.slice(0, history.rows_through(spec.last))
        read[symbol] = on_first_basis(history, market.actions[symbol])
        raw = known.price_basis is PriceBasis.RAW
        traded[symbol] = history if raw else on_basis(known_adjusted(history, begin), known.price_basis)
    return read, traded


def trade_strategy(
    strategy: Strategy,
    sessions: Sequence[date],
    calendar: Calendar,
    read: Mapping[Symbol, PriceHistory],
    traded: Mapping[Symbol, PriceHistory],
    rules: ExecutionRules,
    cash: Decimal,
    *,
    actions: Actions | None = None,
    calendars: Mapping[Symbol, Calendar] | None = None,
    adds_to_positions: bool = False,
    last: date | None = None,
    run: str = "run",
) -> tuple[Stretch, tuple[str, ...]]:
    """Trades a strategy through consecutive sessions of a calendar and returns the books and the broker's notes.

    `read` is what the strategy sees, `traded` where it fills and is valued. A decision that fills next time reads
    the session before; one that fills at the same close reads that session. `calendars` are the symbols' own, where
    they are not all `calendar`; `last` the window's last session, where it lies after `sessions` or may be later than
    a symbol's last bar.
    """
    same_close = rules.fill_at is FillAt.SAME_CLOSE
    decided = list(sessions) if same_close else [previous_session(calendar, sessions[0]), *sessions[:-1]]
    own = {symbol: (calendars or {}).get(symbol, calendar) for symbol in read}
    by_name = {other.name: other for other in own.values()}
    closed = {name: _closed(decided, calendar, other) for name, other in by_name.items()}
    visible = {symbol: closed[other.name] for symbol, other in own.items()}
    wishes = _wishes(strategy, read, visible, adds_to_positions)
    broker = SimulatedBroker(
        rules, Portfolio(cash, money_step=rules.money_step), traded, actions, last=last or sessions[-1]
    )
    desk = _Desk(broker, strategy.name, traded, visible, cash, run)
    equity: list[EquityPoint] = []
    for number, session in enumerate(sessions):
        if same_close:
            desk.learn(broker.open_session(session))
        due = wishes.get(number)
        if due or desk.unfilled:
            desk.decide(number, decided[number], due or ())
        if not same_close:
            desk.learn(broker.open_session(session))
        point, closing = broker.close_session(session)
        desk.learn(closing)
        equity.append(point)
    stretch = Stretch(
        initial_value=cash, equity=tuple(equity), fills=tuple(broker.fills), cash_flows=tuple(broker.cash_flows)
    )
    return stretch, broker.notes


def _closed(decided: Sequence[date], calendar: Calendar, other: Calendar) -> Sequence[int]:
    """By decision, the ordinal of another calendar's last session that has closed by then."""
    if other.name == calendar.name:
        return [session.toordinal() for session in decided]
    return [other.last_closed(decision_time(calendar, session)).toordinal() for session in decided]


def _wishes(
    strategy: Strategy,
    histories: Mapping[Symbol, PriceHistory],
    visible: Mapping[Symbol, Sequence[int]],
    adds_to_positions: bool,
) -> Wishes:
    """What the strategy wants anew at each decision: its last signal since the decision before. Signals that only
    repeat what is wanted already are left out."""
    wishes: dict[int, list[tuple[Symbol, Signal]]] = {}
    for symbol, history in histories.items():
        numbers, signals = _due(strategy.signals(history), history, visible[symbol], adds_to_positions)
        for number, signal in zip(numbers, signals, strict=True):
            wishes.setdefault(number, []).append((symbol, Signal(signal)))
    return wishes


def _due(
    signals: Signals, history: PriceHistory, visible: Sequence[int], adds_to_positions: bool
) -> tuple[list[int], list[int]]:
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


class _Desk:
    """Turns wishes into orders: keeps each symbol's share of the cash, and asks again for what expired unfilled."""

    def __init__(
        self,
        broker: SimulatedBroker,
        name: str,
        histories: Mapping[Symbol, PriceHistory],
        visible: Mapping[Symbol, Sequence[int]],
        cash: Decimal,
        run: str,
    ) -> None:
        self.unfilled: dict[Symbol, Signal] = {}
        """Wishes whose order expired, to be asked again at the next decision."""
        self._broker, self._histories, self._visible = broker, histories, visible
        self._reasons = {signal: f"{name}: {verb(signal)}" for signal in Signal}
        self._run = run
        share = (cash / len(histories)).quantize(broker.rules.money_step, ROUND_DOWN)
        self._cash = dict.fromkeys(histories, share)
        self._asked: dict[str, tuple[Symbol, Signal]] = {}

    def learn(self, happened: MarketActivity) -> None:
        """Books what a session brought on the symbols' shares of the cash."""
        for fill in happened.fills:
            amount = self._broker.portfolio.money(EXACT.multiply(fill.quantity, fill.price))
            self._cash[fill.symbol] += (-amount if fill.side is Side.BUY else amount) - fill.fee
        for flow in happened.cash_flows:
            self._cash[flow.symbol] += flow.amount
        for update in happened.updates:
            if update.state is OrderState.EXPIRED and update.order_id in self._asked:
                symbol, signal = self._asked[update.order_id]
                # What was bought in part is held by now: the rest is an addition to it.
                self.unfilled[symbol] = Signal.LONG if signal is Signal.ENTER else signal

    def decide(self, number: int, session: date, due: Iterable[tuple[Symbol, Signal]]) -> None:
        """Submits the orders of one decision. Cash that an order may use is reserved; sells free none yet."""
        wanted = dict(self.unfilled)
        for symbol, signal in due:
            # Being in is what an unfilled buy or rebalancing is about already, and it wants more than that.
            if signal is not Signal.ENTER or wanted.get(symbol, Signal.OUT) is Signal.OUT:
                wanted[symbol] = signal
        self.unfilled, self._asked = {}, {}
        free = self._broker.portfolio.cash
        balanced = [symbol for symbol, signal in wanted.items() if signal is Signal.REBALANCE]
        for symbol, signal in wanted.items():
            held = self._broker.portfolio.quantity(symbol)
            if signal is Signal.OUT and held > 0:
                self._order(symbol, signal, session, Side.SELL, quantity=held)
            elif signal is Signal.LONG or (signal is Signal.ENTER and not held):
                notional = min(self._cash[symbol], free)
                if notional > 0:
                    self._order(symbol, signal, session, Side.BUY, notional=notional)
                    free -= notional
        if balanced:
            self._rebalance(balanced, number, session, free)

    def _rebalance(self, symbols: Sequence[Symbol], number: int, session: date, free: Decimal) -> None:
        """Sells what is above its share and buys, with the cash that there is, what is below; where the sales are
        to pay for more, the rest is bought at the next decision."""
        portfolio = self._broker.portfolio
        prices = {symbol: self._close(symbol, number) for symbol in {*symbols, *portfolio.positions}}
        share = portfolio.value({s: p for s, p in prices.items() if p is not None}) / len(self._cash)
        sells, buys = [], {}
        for symbol in symbols:
            price = prices[symbol]
            if price is None:
                continue
            excess = EXACT.multiply(portfolio.quantity(symbol), price) - share
            if excess >= SMALLEST_REBALANCE:
                sells.append(symbol)
                self._order(symbol, Signal.REBALANCE, session, Side.SELL, quantity=excess / price)
            elif excess <= -SMALLEST_REBALANCE:
                buys[symbol] = -excess
        wanted = sum(buys.values(), ZERO)
        part = min(Decimal(1), max(free, ZERO) / wanted) if wanted else ZERO
        for symbol, notional in buys.items():
            notional = (notional * part).quantize(CENT, ROUND_DOWN)
            if notional >= SMALLEST_REBALANCE:
                self._order(symbol, Signal.REBALANCE, session, Side.BUY, notional=notional)
            if part < 1 and sells:
                self.unfilled[symbol] = Signal.REBALANCE

    def _close(self, symbol: Symbol, number: int) -> Decimal | None:
        """The last close that the decision may see, or None where the symbol has not traded yet."""
        history = self._histories[symbol]
        rows = history.rows_through(date.fromordinal(self._visible[symbol][number]))
        return from_nano(history.close[rows - 1]) if rows else None

    def _order(
        self,
        symbol: Symbol,
        signal: Signal,
        session: date,
        side: Side,
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
            reason=self._reasons[signal],
        )
        self._asked[order.id] = (symbol, signal)
        self._broker.submit(order)
