"""Conventions: the formulas of a result and, for a paper's, its execution rules, prices and window.

`--convention NAME` chooses one; a flag can override each part. catalog.toml holds the values; the papers' were inferred
by experiment: with them their published rows come out. `engine.conventions.metrics` has the formulas.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from engine.conventions.metrics import METRICS, Metrics, Track
from engine.domain.json_text import typed
from engine.domain.market import Exchange, Symbol, is_crypto
from engine.domain.run import ExecutionRules, PriceBasis
from engine.errors import UsageError
from engine.program_files import program_text


@dataclass(frozen=True, slots=True)
class SymbolRule:
    """Exceptions of a paper for one symbol of its table; None: as the rest."""

    bars_dropped: int | None = None
    periods_per_year: int | None = None
    starting_cash: Decimal | None = None
    commission_rate: Decimal | None = None


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
    stock_periods, crypto_periods: sessions per year; None: those of the shares' exchange.
    percent: names of the metrics in percent.
    measured: what a paper's metrics are of: the run's equity, or what was decided at each close.
    rule: the formulas of a paper's metrics, for whoever works them out again.
    by_symbol: exceptions.
    """

    name: str
    title: str
    execution: ExecutionRules = field(default_factory=ExecutionRules)
    starting_cash: Decimal = Decimal(100_000)
    price_basis: PriceBasis = PriceBasis.RAW
    bars_dropped: int = 0
    adds_to_positions: bool = False
    stock_periods: int | None = None
    crypto_periods: int = 365
    percent: tuple[str, ...] = ()
    measured: Literal["equity", "decisions"] = "equity"
    rule: str = ""
    by_symbol: Mapping[Symbol, SymbolRule] = field(default_factory=dict)

    def bars_dropped_for(self, symbol: Symbol) -> int:
        """Number of bars left out at the end of the window for a symbol."""
        own = self.by_symbol.get(symbol, SymbolRule()).bars_dropped
        return self.bars_dropped if own is None else own

    def periods_per_year(self, symbol: Symbol, exchange: Exchange) -> int:
        """Sessions per year by which the figures of a symbol of an exchange are annualized."""
        own = self.by_symbol.get(symbol, SymbolRule()).periods_per_year
        if own is not None:
            return own
        return self.crypto_periods if is_crypto(symbol) else self.share_periods(exchange)

    def share_periods(self, exchange: Exchange) -> int:
        """Sessions per year of the shares of an exchange."""
        return exchange.periods if self.stock_periods is None else self.stock_periods

    def for_symbols(self, symbols: Sequence[Symbol]) -> Convention:
        """The convention with the starting cash and the commission of a run's symbols, where they share exceptions."""
        rules = {symbol: self.by_symbol.get(symbol, SymbolRule()) for symbol in symbols}
        cash = {rule.starting_cash for rule in rules.values()}
        rates = {rule.commission_rate for rule in rules.values()}
        own_cash, own_rate = (found.pop() if len(found) == 1 else None for found in (cash, rates))
        execution = self.execution if own_rate is None else replace(self.execution, commission_rate=own_rate)
        return replace(self, execution=execution, starting_cash=self.starting_cash if own_cash is None else own_cash)

    def metrics(self, track: Track) -> Metrics:
        """The metrics of a track record by this convention's formulas."""
        return METRICS[self.name](track)


def _catalog() -> dict[str, Convention]:
    text = program_text(Path(__file__).with_name("catalog.toml"))
    return {name: typed(Convention, {"name": name, **table}) for name, table in tomllib.loads(text).items()}


CONVENTIONS: Mapping[str, Convention] = MappingProxyType(_catalog())
"""Every convention by name; `desk` is the default."""


def convention(name: str) -> Convention:
    """A convention by name. Raises UsageError naming the nearest where there is none of that name."""
    found = CONVENTIONS.get(name)
    if found is None:
        close = difflib.get_close_matches(name, list(CONVENTIONS), n=1, cutoff=0.5)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise UsageError(f"unknown convention {name}{hint}; available: {', '.join(CONVENTIONS)}")
    return found
