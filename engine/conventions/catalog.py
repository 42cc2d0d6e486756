"""Conventions: the formulas of a result and, for a paper's, its execution rules, prices and window.

`--convention NAME` chooses one; a flag can override each part. The papers' execution and valuation were inferred by
experiment: with these values their published rows come out. `engine.conventions.metrics` has the formulas.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

from engine.conventions.metrics import METRICS, Metrics, Track
from engine.domain.execution import ExecutionRules, FillAt, PriceBasis
from engine.domain.market import Symbol, is_crypto
from engine.errors import UsageError

EXACT = Decimal("1e-12")
"""Step of money so fine that a paper's unrounded arithmetic is reproduced."""


@dataclass(frozen=True, slots=True)
class SymbolRule:
    """Exceptions of a paper for one symbol of its table; None: as the rest."""

    bars_dropped: int | None = None
    periods_per_year: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """A named way of trading, valuing and measuring.

    title: for people.
    execution: fills and costs.
    starting_cash: in the quote currency.
    price_basis: prices of fills and values. Rules and agents always read prices as traded. REBASED takes the window's
        last bar, dropped or not, as the one where adj_close equals close.
    bars_dropped: bars at the end of the window that are neither traded nor valued.
    adds_to_positions: True where a repeated LONG spends idle cash on more whole shares.
    stock_periods, crypto_periods: sessions per year.
    percent: names of the metrics in percent.
    by_symbol: exceptions.
    """

    name: str
    title: str
    execution: ExecutionRules = field(default_factory=ExecutionRules)
    starting_cash: Decimal = Decimal(100_000)
    price_basis: PriceBasis = PriceBasis.RAW
    bars_dropped: int = 0
    adds_to_positions: bool = False
    stock_periods: int = 252
    crypto_periods: int = 365
    percent: frozenset[str] = frozenset()
    by_symbol: Mapping[Symbol, SymbolRule] = field(default_factory=lambda: MappingProxyType({}))

    def bars_dropped_for(self, symbol: Symbol) -> int:
        """Number of bars left out at the end of the window for a symbol."""
        own = self.by_symbol.get(symbol, SymbolRule()).bars_dropped
        return self.bars_dropped if own is None else own

    def periods_per_year(self, symbol: Symbol) -> int:
        """Sessions per year by which a symbol's figures are annualized."""
        own = self.by_symbol.get(symbol, SymbolRule()).periods_per_year
        if own is not None:
            return own
        return self.crypto_periods if is_crypto(symbol) else self.stock_periods

    def metrics(self, track: Track) -> Metrics:
        """The metrics of a track record by this convention's formulas."""
        return METRICS[self.name](track)


def _paper_market(**rules: object) -> ExecutionRules:
    base: dict[str, object] = {"fill_at": FillAt.SAME_CLOSE, "slippage_bp": Decimal(0), "money_step": EXACT}
    return ExecutionRules(**(base | rules))  # type: ignore[arg-type]


_LIST = (
    Convention(name="desk", title="the desk's own: next open, 5 bp slippage, standard metrics"),
    # Source: FinVision §4, Table 2 [V9, V10]: 145 of the window's 147 sessions, no cost, fractions of shares.
    Convention(
        name="finvision",
        title="FinVision, Table 2",
        execution=_paper_market(),
        price_basis=PriceBasis.ADJUSTED,
        bars_dropped=2,
        crypto_periods=252,
        percent=frozenset({"ARR", "MDD"}),
    ),
    # Source: FinAgent §5, Tables 4 and 6 [A11, A13]: the last bar of the window is never valued.
    Convention(
        name="finagent",
        title="FinAgent, Tables 4 and 6",
        execution=_paper_market(commission_rate=Decimal("0.001"), fractional=False),
        starting_cash=Decimal(10_000),
        price_basis=PriceBasis.REBASED,
        bars_dropped=1,
        adds_to_positions=True,
        crypto_periods=252,
        percent=frozenset({"ARR", "MDD"}),
    ),
    # Source: InvestorBench §4.1, Tables 2 to 4 [I8, I9]: which rows end a bar early, and which are annualized
    # with 365 days, differs by symbol and is not stated.
    Convention(
        name="investorbench",
        title="InvestorBench, Tables 2 to 4",
        execution=_paper_market(allow_short=True),
        price_basis=PriceBasis.ADJUSTED,
        percent=frozenset({"CR", "AV", "MDD"}),
        by_symbol=MappingProxyType(
            {symbol: SymbolRule(bars_dropped=1) for symbol in ("MSFT", "JNJ", "UVV", "HON")}
            | {symbol: SymbolRule(periods_per_year=365) for symbol in ("TSLA", "AAPL", "NIO", "SPY")}
        ),
    ),
    # Source: Agent Trading Arena §5.2, Table 4 [R7, R8]. How much cash stays idle is not stated: none here.
    Convention(
        name="arena",
        title="Agent Trading Arena, Table 4",
        execution=_paper_market(),
        price_basis=PriceBasis.ADJUSTED,
        percent=frozenset({"TR", "Mean", "Std", "WR"}),
    ),
)

CONVENTIONS: Mapping[str, Convention] = MappingProxyType({known.name: known for known in _LIST})
"""Every convention by name; `desk` is the default."""


def convention(name: str) -> Convention:
    """A convention by name. Raises UsageError naming the nearest where there is none of that name."""
    found = CONVENTIONS.get(name)
    if found is None:
        close = difflib.get_close_matches(name, list(CONVENTIONS), n=1, cutoff=0.5)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise UsageError(f"no convention {name}{hint}; there are {', '.join(CONVENTIONS)}")
    return found
