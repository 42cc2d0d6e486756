"""The performance of a run: metrics by its convention for the whole, for each symbol and for its baselines.

Deposits and withdrawals are no profit: metrics are of time-weighted returns net of external
flows (time_weighted.py), in every convention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal

from engine.account.time_weighted import is_external, net_deposits
from engine.account.track_record import symbol_track, track_of
from engine.conventions.catalog import Convention
from engine.conventions.metrics import Metrics, Track
from engine.domain.market import LISTED, Exchange, Exchanges, Symbol, is_crypto
from engine.domain.order import EXACT, ZERO, Fill, Side
from engine.domain.run import EquityPoint, Result, RunPart

BENCHMARK = "buy-and-hold"
"""The baseline that excess returns are measured against."""


@dataclass(frozen=True, slots=True)
class Report:
    """A backtest's result beside its baselines.

    `baselines` are the results of rule strategies by name, over the same window, with the same rules and cash.
    `label` introduces who decided, `risk_free` is the yearly rate of the `desk` metrics, as a fraction; `exchanges`
    tell the currency and the sessions in a year.
    """

    result: Result
    baselines: Mapping[str, Result] = field(default_factory=dict)
    label: str = ""
    risk_free: float = 0.0
    exchanges: Exchanges = LISTED

    @property
    def exchange(self) -> Exchange:
        """The exchange of the run's portfolio. Raises UsageError as `Exchanges.of_portfolio` does."""
        return self.exchanges.of_portfolio(self.result.spec.symbols)


@dataclass(frozen=True, slots=True)
class Measure:
    """The base of metrics: a convention, the run's symbols and their exchange (they set the sessions in a year) and the
    yearly risk-free rate, as a fraction."""

    convention: Convention
    symbols: Sequence[Symbol]
    exchange: Exchange
    risk_free: float = 0.0

    @property
    def periods_per_year(self) -> int:
        """Sessions in a year of the whole: the symbols' own where they agree (365 for a desk of crypto alone)."""
        own = {self.periods_of(symbol) for symbol in self.symbols}
        return own.pop() if len(own) == 1 else self.convention.share_periods(self.exchange)

    def periods_of(self, symbol: Symbol) -> int:
        """Sessions in a year of one symbol. Crypto beside stocks is valued on the exchange's sessions alone."""
        if is_crypto(symbol) and not all(is_crypto(other) for other in self.symbols):
            return self.convention.share_periods(self.exchange)
        return self.convention.periods_per_year(symbol, self.exchange)

    def of_run(self, run_part: RunPart, benchmark: RunPart | None = None, model_cost: Decimal | None = ZERO) -> Metrics:
        """The metrics of a part; `benchmark` has to be over the same sessions, `model_cost` is None where it is not
        known."""
        return self.convention.metrics(self.track(run_part, benchmark, model_cost))

    def track(self, run_part: RunPart, benchmark: RunPart | None = None, model_cost: Decimal | None = ZERO) -> Track:
        """The record that these metrics are of."""
        periods = self.periods_per_year
        return track_of(run_part, periods, benchmark=benchmark, model_cost=model_cost, risk_free=self.risk_free)

    def of_symbol(self, run_part: RunPart, symbol: Symbol, benchmark: Track | None = None) -> Metrics:
        """The metrics that the part would have had if only this symbol had earned or lost anything; `benchmark` is the
        record of the symbol in buy and hold."""
        held = None if benchmark is None else benchmark.equity
        track = replace(self.symbol_track(run_part, symbol), benchmark=held, risk_free=self.risk_free)
        return self.convention.metrics(track)

    def symbol_track(self, run_part: RunPart, symbol: Symbol) -> Track:
        """The record of a part if only this symbol had earned or lost anything."""
        return symbol_track(run_part, symbol, run_part.initial_value, self.periods_of(symbol))


def unmeasured(convention: Convention, metrics: Metrics) -> str | None:
    """Note on figures that are null because a convention measures decisions, and there is not one for every close of a
    single symbol: what the book earned would be another figure."""
    if convention.measured == "equity" or any(value is not None for value in metrics.values()):
        return None
    return (
        f"{', '.join(metrics)} are null: convention {convention.name} measures what was decided at each close of one "
        "symbol, and no such record is there; per symbol it may be"
    )


def profit(run_part: RunPart, symbol: Symbol) -> Decimal:
    """The profit of a symbol (negative: its loss): sales less purchases and fees, dividends, and the shares still held
    at their last price, less deposits of shares. Every amount is rounded as the books round it."""
    if not run_part.equity:
        return ZERO
    last = run_part.equity[-1]
    money = last.portfolio.money
    earned = money(EXACT.multiply(last.portfolio.quantity(symbol), last.prices.get(symbol, ZERO)))
    for fill in run_part.fills:
        if fill.symbol == symbol:
            amount = money(EXACT.multiply(fill.quantity, fill.price))
            earned += (amount if fill.side is Side.SELL else -amount) - money(fill.fee)
    paid = [flow.amount for flow in run_part.cash_flows if flow.symbol == symbol and not is_external(flow)]
    deposits = net_deposits(run_part.equity, run_part.cash_flows, run_part.adoptions)
    return earned + sum(paid, ZERO) - sum((one.amount for one in deposits if one.symbol == symbol), ZERO)


def owner_books(run_part: RunPart) -> Mapping[str, RunPart]:
    """Each owner's book as a part of its own, with what the owner decided; none where the desk has one book."""
    found = {}
    for owner in dict.fromkeys(point.book for point in run_part.books):
        points = tuple(point for point in run_part.books if point.book == owner)
        fills = tuple(fill for fill in run_part.book_fills if fill.book == owner)
        decisions = tuple(made for made in run_part.decisions if made.key.owner == owner)
        cash = _opened_with(points[0], fills)
        found[owner] = RunPart(initial_value=cash, equity=points, fills=fills, decisions=decisions)
    return found


def _opened_with(first: EquityPoint, fills: Sequence[Fill]) -> Decimal:
    """The cash that a book was opened with: that of its first close before the trades of the session."""
    cash, money_of = first.portfolio.cash, first.portfolio.money
    for fill in fills:
        if fill.session <= first.session:
            paid = money_of(EXACT.multiply(fill.quantity, fill.price))
            cash += (paid if fill.side is Side.BUY else -paid) + money_of(fill.fee)
    return cash


def through(run_part: RunPart, last: date | None) -> RunPart:
    """The part as of the close of a session (None: before the first), to compare an interrupted run with."""
    if last is None:
        return RunPart(initial_value=run_part.initial_value)
    if run_part.equity and run_part.equity[-1].session <= last:
        return run_part
    equity, targets = tuple(point for point in run_part.equity if point.session <= last), run_part.target_weights
    return RunPart(
        initial_value=run_part.initial_value,
        equity=equity,
        target_weights=None if targets is None else {symbol: each[: len(equity)] for symbol, each in targets.items()},
        fills=tuple(fill for fill in run_part.fills if fill.session <= last),
        cash_flows=tuple(flow for flow in run_part.cash_flows if flow.session <= last),
        decisions=tuple(decision for decision in run_part.decisions if decision.key.session <= last),
        adoptions=tuple(adopted for adopted in run_part.adoptions if adopted.session <= last),
    )
