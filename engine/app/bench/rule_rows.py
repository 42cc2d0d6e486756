"""The rows of rule strategies in a bench, with the parameters of the authors or of a search."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from engine.app.records.look_index import result_look
from engine.app.research.market_data import load_window
from engine.conventions.catalog import convention
from engine.conventions.metrics import Metrics
from engine.domain.exchanges import LISTED
from engine.domain.market import Symbol
from engine.domain.run import LookKind, RunSpec, WindowLook
from engine.errors import MissingData, StaleData, UsageError
from engine.lab.published_runs import Override, adjusted_market, cumulative_returns, measured, rule_params, run_rule
from engine.lab.published_tables import PublishedTable
from engine.lab.tuning import Tuned, default_metric, tune
from engine.lab.window import execution_rules
from engine.ports import Calendar, MarketSource
from engine.strategies.catalog import fixed_params

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRows:
    """The rows of rules.

    source: prices.
    calendar_for: the trading calendar of a symbol.
    changes: parameters that the user has changed.
    report: hears of each symbol.
    now: date of the looks (UTC).
    trials: of the search of parameters that the authors tuned; 0 takes their values.
    seed: of the search.
    priced: symbols with prices.
    missing: reasons why other symbols have none.
    tuned: the parameters that a search has chosen, in words, by symbol and rule.
    curves: cumulative returns by session, by table, symbol and rule.
    looks: looks at the tables' windows.
    """

    source: MarketSource
    calendar_for: Callable[[Symbol], Calendar]
    changes: Sequence[Override]
    report: Report
    now: datetime
    trials: int
    seed: int
    priced: set[Symbol] = field(default_factory=set)
    missing: dict[Symbol, str] = field(default_factory=dict)
    tuned: dict[tuple[Symbol, str], str] = field(default_factory=dict)
    curves: dict[tuple[str, Symbol, str], Mapping[date, float]] = field(default_factory=dict)
    looks: list[WindowLook] = field(default_factory=list)
    _found: dict[tuple[Symbol, str, date], Sequence[Override]] = field(default_factory=dict)

    def of(self, table: PublishedTable) -> dict[tuple[Symbol, str], Metrics]:
        """The metrics of a table's rules by symbol and rule, empty where a symbol's prices are missing or stale.
        Raises MalformedData for a row of a file that cannot be read."""
        ours: dict[tuple[Symbol, str], Metrics] = {}
        for symbol in table.symbols():
            self.report(f"{table.name}: {symbol}")
            try:
                ours |= self._rows(table, symbol)
                self.priced.add(symbol)
            except (MissingData, StaleData) as error:
                ours |= {(symbol, rule): {} for rule in table.strategies()}
                self.missing[symbol] = str(error)
        return ours

    def _rows(self, table: PublishedTable, symbol: Symbol) -> dict[tuple[Symbol, str], Metrics]:
        market = asyncio.run(load_window(self.source, self.calendar_for, (symbol,), table.first, table.last))
        wanted = {cell.strategy for cell in table.cells if cell.symbol == symbol and cell.strategy}
        ours: dict[tuple[Symbol, str], Metrics] = {}
        for rule in sorted(wanted):
            found = self._tuned(table, symbol, rule) if self.trials and fixed_params(rule) else ()
            result = run_rule(table, symbol, rule, market, (*found, *self.changes))
            self.looks.append(result_look(LookKind.BENCH, result, self.now))
            ours[symbol, rule] = measured(result, symbol, table.convention)
            self.curves[table.name, symbol, rule] = cumulative_returns(result, symbol, table.convention)
        return ours

    def _tuned(self, table: PublishedTable, symbol: Symbol, rule: str) -> Sequence[Override]:
        """The best parameters of a rule in the training period, those fixed that the authors did not tune; none, with
        the reason, where the search finds none. Source: FinAgent §5.3, appendix B [A13]."""
        key = (symbol, rule, table.first)
        if key not in self._found:
            self.report(f"{table.name}: {symbol}, {rule} is tuned")
            given = fixed_params(rule).keys() | {one.key for one in self.changes if one.strategy in (None, rule)}
            fixed = {name: value for name, value in rule_params(rule, symbol, self.changes).items() if name in given}
            period = f"on {table.begin} to {table.first - timedelta(days=1)}"
            try:
                found = self._search(table, symbol, rule, fixed)
            except UsageError as error:
                self._found[key], self.tuned[symbol, rule] = (), f"not tuned {period}: {error}"
            else:
                chosen = {name: value for name, value in found.params.items() if name not in fixed}
                words = ", ".join(f"{name} {float(value):g}" for name, value in chosen.items())
                self._found[key] = [Override(rule, name, value) for name, value in chosen.items()]
                self.tuned[symbol, rule] = f"tuned {period} in {found.trials} trials: {words}"
        return self._found[key]

    def _search(self, table: PublishedTable, symbol: Symbol, rule: str, fixed: Mapping[str, str]) -> Tuned:
        """A search in the training period by the table's convention."""
        spec = RunSpec(
            symbols=(symbol,),
            first=table.begin,
            last=table.first - timedelta(days=1),
            strategy=rule,
            params=tuple(fixed.items()),
            convention=table.convention,
            seed=self.seed,
        )
        known = convention(table.convention).for_symbols((symbol,))
        market = asyncio.run(load_window(self.source, self.calendar_for, (symbol,), spec.first, spec.last))
        return tune(
            spec,
            default_metric(table.convention),
            adjusted_market(table, symbol, market),
            exchange=LISTED.of(symbol),
            rules=execution_rules(spec, known),
            cash=known.starting_cash,
            trials=self.trials,
            test=None,
            on_trial=lambda symbol, done, wanted: None,
            on_result=lambda one: self.looks.append(result_look(LookKind.TUNE_TRIAL, one, self.now)),
        )
