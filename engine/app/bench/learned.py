"""Learned rows of a bench: trained five times on the training part, with a control, beside a paper's printed rows.

Source: FinAgent Tables 4 and 6 [A13], FinVision Table 2 [V10], Agent Trading Arena Table 4 [R8].
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.account.track_record import daily_returns, track_of
from engine.app.research.market_data import load_run
from engine.app.research.run_spec import Stop
from engine.conventions.catalog import Convention, convention
from engine.conventions.metrics import Metrics, daily_mean_interval
from engine.domain.market import LISTED, Symbol
from engine.domain.run import DataSpec, Result, RunSpec
from engine.errors import MissingData, StaleData, UsageError
from engine.lab.published_tables import (
    PublishedTable,
    cumulative_returns,
    measured,
    own_strategy_run,
    run_rule,
    session_returns,
)
from engine.market.as_of import Market
from engine.reports.comparison import AgentRow, Cell, median_repeat, spreads
from engine.reports.performance import BENCHMARK
from engine.services import Services
from engine.strategies.catalog import learner_class
from engine.strategies.learned import PERMUTED

SEEDS = 5
CONTROL = "permuted"
"""The name of a control's row, after that of its model."""

Train = Callable[[Mapping[str, str]], Result]
"""Trains and plays a learned strategy with parameters."""


@dataclass(frozen=True, slots=True)
class Trained:
    """Results of a learned strategy by seed, and of its control."""

    seeds: tuple[Result, ...]
    control: Result

    @property
    def results(self) -> tuple[Result, ...]:
        """All of them."""
        return (*self.seeds, self.control)


def about(what: str, report: Callable[[str], None]) -> Callable[[str], None]:
    """A listener that passes on what it hears, with what it is about."""
    return lambda text: report(f"{what}: {text}")


def train(run: Train, stop: Stop) -> Trained | None:
    """Train a strategy from every seed, and its control; None after `stop`."""
    results = []
    for changed in [{"seed": str(seed)} for seed in range(SEEDS)] + [{"labels": PERMUTED}]:
        if stop():
            return None
        results.append(run(changed))
    return Trained(tuple(results[:-1]), results[-1])


def compared_with_holding(result: Result, held: Result, measure: Convention, periods: int) -> str:
    """The time that a run was in the market, buy and hold of that exposure, and the gain beyond it a session with its
    interval, in words."""
    points = result.test.equity
    invested = [float(1 - point.portfolio.cash / point.value) if point.value else 0.0 for point in points]
    exposure = float(np.mean(invested))
    own, market = np.array(daily_returns(result.test)), np.array(daily_returns(held.test))
    track = track_of(held.test, periods)
    equity = track.equity[0] * np.cumprod([1.0, *(1 + exposure * market)])
    figures = measure.metrics(replace(track, equity=equity))
    alike = ", ".join(f"{name} {value:.4g}" for name, value in figures.items() if value is not None)
    beyond = own - exposure * market
    low, high = daily_mean_interval(beyond)
    bounds = "" if low is None or high is None else f" ({1e4 * low:+.1f} to {1e4 * high:+.1f})"
    return (
        f"in the market in {np.mean(np.array(invested) > 0):.0%} of the sessions, {exposure:.0%} of the value on "
        f"average; buy and hold of that exposure: {alike}; beyond it {1e4 * beyond.mean():+.1f} basis points a "
        f"session{bounds}"
    )


def without_extra(model: str) -> str | None:
    """The reason why a printed row has none of ours, where that is an extra that is not installed."""
    learner = learner_class(model.lower())
    if learner is None or learner.is_installed():
        return None
    return f"not trained: pip install 'paperdesk[{learner.extra}]'"


def explained(cell: Cell) -> Cell:
    """A cell with the reason why it has no figure of ours, where that is an extra."""
    reason = without_extra(cell.model or "")
    return cell if reason is None else replace(cell, note="; ".join(filter(None, (reason, cell.note))))


def table_market(services: Services, data: DataSpec, table: PublishedTable, symbol: Symbol) -> Market:
    """The data of a symbol over a table's training and test. Raises what loading raises."""
    spec = RunSpec(
        symbols=(symbol,),
        first=table.first,
        last=table.last,
        warm_up_from=table.warm_up_from,
        strategy=BENCHMARK,
        data=data,
    )
    return asyncio.run(load_run(services, spec))


@dataclass(slots=True)
class LearnedRows:
    """The learned rows of a bench: `results` of every training, `unfinished` where `stop` kept some from being made.
    Tables that share a window and a symbol share the rows."""

    services: Services
    data: DataSpec
    report: Callable[[str], None]
    stop: Stop
    results: list[Result] = field(default_factory=list)
    unfinished: bool = False
    _made: dict[tuple[object, ...], Sequence[AgentRow]] = field(default_factory=dict)

    def of(self, table: PublishedTable) -> Iterator[AgentRow]:
        """The rows of a table whose extra is installed, each followed by its control."""
        for model in table.models():
            learner = learner_class(model.lower())
            if learner is None or not learner.is_installed():
                continue
            for symbol in table.symbols():
                key = (model, symbol, table.first, table.convention)
                if key not in self._made and not self.stop():
                    self._made[key] = tuple(self._rows(table, model, symbol))
                self.unfinished = self.unfinished or not self._made.get(key)
                yield from self._made.get(key, ())

    def _rows(self, table: PublishedTable, model: str, symbol: Symbol) -> Iterator[AgentRow]:
        row = AgentRow(symbol=symbol, model=model, answered_by=model, metrics={})
        try:
            market = table_market(self.services, self.data, table, symbol)
            held = run_rule(table, symbol, BENCHMARK, market)

            def run(params: Mapping[str, str]) -> Result:
                what = ", ".join(f"{name} {value}" for name, value in params.items())
                told = f"{model} on {symbol}, {what}"
                self.report(told)
                heard = about(told, self.report)
                return own_strategy_run(table, symbol, model.lower(), market, params=params, report=heard)

            trained = train(run, self.stop)
        except (MissingData, StaleData, UsageError) as error:
            yield replace(row, note=str(error))
            return
        if trained is None:
            return
        self.results += trained.results
        repeats = [measured(result, symbol, table.convention) for result in trained.seeds]
        chosen = median_repeat(repeats)
        filled = _filled(replace(row, spreads=spreads(repeats)), trained.seeds[chosen], repeats[chosen], table, held)
        yield replace(filled, note=f"the median of {SEEDS} seeds by SR: {filled.note}")
        figures = measured(trained.control, symbol, table.convention)
        yield _filled(replace(row, model=f"{model}, {CONTROL}"), trained.control, figures, table, held)


def _filled(row: AgentRow, result: Result, figures: Metrics, table: PublishedTable, held: Result) -> AgentRow:
    known, symbol = convention(table.convention), row.symbol
    periods = known.periods_per_year(symbol, LISTED.of(symbol))
    notes = (compared_with_holding(result, held, known, periods), *result.notes)
    return replace(
        row,
        metrics=figures,
        note="; ".join(notes),
        returns=session_returns(result, symbol, table.convention),
        curve=cumulative_returns(result, symbol, table.convention),
    )
