"""Search of a strategy's parameters on a training window; the only module that imports Optuna, and when it searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from engine.account.track_record import daily_returns, track_of
from engine.conventions.catalog import convention
from engine.conventions.metrics import Metrics
from engine.domain.market import Exchange, Symbol
from engine.domain.run import ExecutionRules, Result, RunSpec
from engine.errors import Interrupted, UsageError
from engine.lab.rule_backtest import Shared, run_strategy
from engine.market.as_of import Market
from engine.strategies.catalog import make_strategy, strategy_class
from engine.strategies.strategy import Parameter, parameters, parsed

if TYPE_CHECKING:
    from optuna.trial import Trial

OnTrial = Callable[[Symbol, int, int], None]
"""A listener for symbol, trials done and trials wanted."""
OnResult = Callable[[Result], None]
"""A listener for the result of every run with parameters that the search has chosen."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A metric of one and the same window by the tuned parameters, by the defaults, and of buy and hold."""

    tuned: float | None
    default: float | None
    buy_and_hold: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One step of a walk forward: the best parameters of a stretch of the training window, on it and on the next.

    first, last: of the stretch.
    test_first, test_last: of the next one.
    """

    first: date
    last: date
    test_first: date
    test_last: date
    params: Mapping[str, str]
    in_sample: Figures
    out_of_sample: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The best parameters of a symbol.

    symbol: the symbol.
    params: `--param` texts, the fixed ones included.
    in_sample, out_of_sample: the metric in the training window and in the test window; None where there is none.
    trials: the number that was completed.
    tried: the daily returns in the training window of every parameter choice that traded, the best ones first.
    periods_per_year: sessions in a year.
    interrupted: True where more were wanted.
    folds: the walk forward, none where none was wanted.
    """

    symbol: Symbol
    params: Mapping[str, str]
    in_sample: Figures
    out_of_sample: Figures | None
    trials: int
    tried: Sequence[tuple[float, ...]]
    periods_per_year: int
    interrupted: bool
    folds: Sequence[Fold] = ()


def tuned_metric(convention_name: str) -> str:
    """The metric that is optimized under a convention: its Sharpe ratio."""
    return "sharpe" if convention_name == "desk" else "SR"


def searched(strategy: str, fixed: Mapping[str, str]) -> tuple[Parameter, ...]:
    """The parameters that a search may change. Raises UsageError for a strategy that has none."""
    chosen = strategy_class(strategy)
    fixed_values = parsed(chosen, strategy, fixed)
    free = tuple(p for p in parameters(chosen) if p.tuned and p.low is not None and p.name not in fixed_values)
    if not free:
        raise UsageError(
            f"strategy {strategy} has no parameter to tune{' besides those that --param fixes' * bool(fixed)}"
        )
    return free


def tune(
    spec: RunSpec,
    market: Market,
    *,
    exchange: Exchange,
    rules: ExecutionRules,
    cash: Decimal,
    trials: int,
    test: tuple[date, date] | None,
    on_trial: OnTrial,
    on_result: OnResult,
) -> Tuned:
    """Search the parameters of one symbol in the window of a spec, whose own parameters stay fixed, defaults first, by
    a seeded TPE sampler: equal seeds, equal results. `test` is a later window to measure the best parameters on.

    Ctrl-C ends the search with the best so far. Raises UsageError for a strategy without parameters and where no trial
    has the metric defined, and what `run_strategy` raises.
    """
    import optuna
    from optuna.trial import TrialState

    (symbol,) = spec.symbols
    window, strategy, fixed = (spec.first, spec.last), spec.strategy or "", dict(spec.params)
    free, metric = searched(strategy, fixed), tuned_metric(spec.convention)
    runs = _Runs(spec, metric, market, exchange, rules, cash, on_result)

    def objective(trial: Trial) -> float:
        params = {parameter.name: _suggested(trial, parameter) for parameter in free}
        try:
            make_strategy(strategy, {**fixed, **params})
        except UsageError:
            # Values that are each within bounds may not go together (a fast average slower than the slow one).
            raise optuna.TrialPruned from None
        value = runs.metrics(params, window)[metric]
        if value is None:
            raise optuna.TrialPruned
        return value

    # A trial that Ctrl-C ends is no failure to warn of.
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=spec.seed))
    study.enqueue_trial({parameter.name: parameter.default for parameter in free})
    interrupted = False
    try:
        study.optimize(
            objective,
            n_trials=trials,
            callbacks=[lambda study, trial: on_trial(symbol, trial.number + 1, trials)],
        )
    except KeyboardInterrupt:
        interrupted = True
    completed = sum(trial.state in (TrialState.COMPLETE, TrialState.PRUNED) for trial in study.trials)
    if interrupted and not completed:
        raise Interrupted(f"interrupted before the first trial of {symbol}")
    try:
        values = study.best_params
    except ValueError:
        raise UsageError(
            f"{symbol}: no trial from {spec.first} to {spec.last} has a defined {metric}; choose a longer window or "
            "more trials"
        ) from None
    best = {p.name: str(values[p.name]) if p.type is int else repr(float(values[p.name])) for p in free}
    return Tuned(
        symbol=symbol,
        params={**fixed, **best},
        in_sample=runs.figures(best, window),
        out_of_sample=None if test is None else runs.figures(best, test),
        trials=completed,
        tried=runs.tried(best),
        periods_per_year=runs.periods_per_year,
        interrupted=interrupted,
    )


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of a strategy with other parameters and windows, measured.

    spec: the strategy, with the parameters that stay fixed.
    metric: name of the metric.
    market: all data.
    exchange: that of the symbol.
    rules, cash: costs, fills and starting cash.
    on_result: hears of every run with parameters that the search has chosen.
    shared: what the runs share of the market.
    returns: of every choice of parameters in the training window.
    """

    spec: RunSpec
    metric: str
    market: Market
    exchange: Exchange
    rules: ExecutionRules
    cash: Decimal
    on_result: OnResult
    shared: Shared = field(default_factory=dict)
    returns: dict[tuple[tuple[str, str], ...], tuple[float, ...]] = field(default_factory=dict)

    @property
    def periods_per_year(self) -> int:
        """Sessions in a year of the symbol."""
        (symbol,) = self.spec.symbols
        return convention(self.spec.convention).periods_per_year(symbol, self.exchange)

    def tried(self, best: Mapping[str, str]) -> list[tuple[float, ...]]:
        """The daily returns of every choice of parameters in the training window, the best one's first."""
        first = self._together(best)
        return [self.returns[first], *(returns for chosen, returns in self.returns.items() if chosen != first)]

    def _together(self, params: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        return tuple({**dict(self.spec.params), **params}.items())

    def figures(self, best: Mapping[str, str], window: tuple[date, date]) -> Figures:
        """The metric of a window by the best parameters, by the defaults, and of buy and hold."""
        runs = self.metrics(best, window), self.metrics({}, window), self._metrics(self._buy_and_hold(window))
        return Figures(*(metrics.get(self.metric) for metrics in runs))

    def metrics(self, params: Mapping[str, str], window: tuple[date, date]) -> Metrics:
        """The convention's metrics of one run."""
        together = self._together(params)
        result = self._run(replace(self.spec, params=together, first=window[0], last=window[1]))
        if params:  # the defaults alone are what the search is held against, and its first trial
            self.on_result(result)
            if window == (self.spec.first, self.spec.last):
                self.returns[together] = daily_returns(result.test)
        return self._metrics(result)

    def _metrics(self, result: Result) -> Metrics:
        return convention(result.spec.convention).metrics(track_of(result.test, self.periods_per_year))

    def _buy_and_hold(self, window: tuple[date, date]) -> Result:
        first, last = window
        held = replace(self.spec, strategy="buy-and-hold", params=(), first=first, last=last, warm_up_from=None)
        return self._run(held)

    def _run(self, spec: RunSpec) -> Result:
        return run_strategy(spec, self.market, self.rules, self.cash, shared=self.shared)


def _suggested(trial: Trial, parameter: Parameter) -> str:
    low, high = parameter.low, parameter.high
    assert low is not None and high is not None
    if parameter.type is int:
        return str(trial.suggest_int(parameter.name, int(low), int(high)))
    return repr(trial.suggest_float(parameter.name, low, high))
