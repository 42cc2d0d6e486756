"""Searches a rule strategy's parameters on a training window; the only door to Optuna, which is imported when asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from engine.account.track_record import track_of
from engine.conventions.catalog import convention
from engine.conventions.metrics import Metrics
from engine.domain.execution import ExecutionRules
from engine.domain.market import Symbol
from engine.domain.run import Result, RunSpec
from engine.errors import Interrupted, UsageError
from engine.lab.rule_backtest import run_strategy
from engine.market.as_of import Market
from engine.strategies.catalog import make_strategy, strategy_class
from engine.strategies.parameters import Parameter, nearest, parameters, parsed

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import Trial

LESS_IS_BETTER = frozenset({"max_drawdown", "MDD", "volatility", "VOL", "AV", "Std", "turnover"})
"""Metrics that are made as small as possible; all others as large."""

_DEFAULT_METRIC = {"desk": "sharpe"}

OnTrial = Callable[[Symbol, int, int], None]
"""Hears symbol, trials done and trials wanted."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A metric of one and the same window by the tuned parameters, by the defaults, and of buy and hold."""

    tuned: float | None
    default: float | None
    buy_and_hold: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The best parameters of a symbol as `--param` texts, and what they come to; `out_of_sample` is None where no
    test window was asked for. `trials` were made; `interrupted` where more were wanted."""

    symbol: Symbol
    params: Mapping[str, str]
    in_sample: Figures
    out_of_sample: Figures | None
    trials: int
    interrupted: bool


@dataclass(frozen=True, slots=True)
class Search:
    """What to search for: `spec` gives strategy, convention, training window and the parameters that stay fixed, for
    one symbol; `test` is a later window to measure the best on."""

    spec: RunSpec
    metric: str
    trials: int = 100
    seed: int = 0
    test: tuple[date, date] | None = None


def default_metric(convention_name: str) -> str:
    """What is optimized under a convention where nothing else is asked for."""
    return _DEFAULT_METRIC.get(convention_name, "SR")


def searched(strategy: str, fixed: Mapping[str, str]) -> tuple[Parameter, ...]:
    """The parameters that a search may change. Raises UsageError for a strategy that has none."""
    chosen = strategy_class(strategy)
    known = parsed(chosen, strategy, fixed)
    free = tuple(p for p in parameters(chosen) if p.tuned and p.low is not None and p.name not in known)
    if not free:
        raise UsageError(
            f"strategy {strategy} has no parameter to tune{' besides those that --param fixes' * bool(fixed)}"
        )
    return free


def tune(search: Search, market: Market, rules: ExecutionRules, cash: Decimal, on_trial: OnTrial) -> Tuned:
    """Searches the parameters of one symbol, defaults first, by a seeded TPE sampler: equal seeds, equal results.

    Ctrl-C ends the search with the best so far. Raises UsageError for an unknown metric, a strategy without
    parameters and where no trial has the metric defined, and what `run_strategy` raises.
    """
    import optuna
    from optuna.trial import TrialState

    (symbol,) = search.spec.symbols
    strategy = search.spec.strategy or ""
    free = searched(strategy, dict(search.spec.params))
    window = (search.spec.first, search.spec.last)
    measure = _Measure(search.spec, market, rules, cash, search.metric)
    default = measure.metrics({}, window)
    if search.metric not in default:
        known = ", ".join(default)
        hint = nearest(search.metric, default)
        raise UsageError(
            f"--metric {search.metric}: {search.spec.convention} has no such metric{hint}; there are {known}"
        )
    # A trial that Ctrl-C ends is no failure to warn of.
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    direction: Literal["minimize", "maximize"] = "minimize" if search.metric in LESS_IS_BETTER else "maximize"
    study = optuna.create_study(direction=direction, sampler=optuna.samplers.TPESampler(seed=search.seed))
    study.enqueue_trial({parameter.name: parameter.default for parameter in free})

    def objective(trial: Trial) -> float:
        params = {parameter.name: _suggested(trial, parameter) for parameter in free}
        try:
            make_strategy(strategy, {**dict(search.spec.params), **params})
        except UsageError:
            # Values that are each within bounds may not go together (a fast average slower than the slow one).
            raise optuna.TrialPruned from None
        value = measure.metrics(params, window)[search.metric]
        if value is None:
            raise optuna.TrialPruned
        return value

    interrupted = False
    try:
        study.optimize(
            objective,
            n_trials=search.trials,
            callbacks=[lambda study, trial: on_trial(symbol, trial.number + 1, search.trials)],
        )
    except KeyboardInterrupt:
        interrupted = True
    made = sum(trial.state in (TrialState.COMPLETE, TrialState.PRUNED) for trial in study.trials)
    if interrupted and not made:
        raise Interrupted(f"interrupted before the first trial of {symbol}")
    best = _best(study, search, symbol, free)

    def figures(when: tuple[date, date]) -> Figures:
        held = measure.buy_and_hold(when)
        own = measure.metrics(best, when)
        return Figures(*(found.get(search.metric) for found in (own, measure.metrics({}, when), held)))

    out = None if search.test is None else figures(search.test)
    return Tuned(
        symbol=symbol,
        params={**dict(search.spec.params), **best},
        in_sample=figures(window),
        out_of_sample=out,
        trials=made,
        interrupted=interrupted,
    )


@dataclass(frozen=True, slots=True)
class _Measure:
    """Runs the strategy of a spec with other parameters and windows."""

    spec: RunSpec
    market: Market
    rules: ExecutionRules
    cash: Decimal
    metric: str

    def metrics(self, params: Mapping[str, str], window: tuple[date, date]) -> Metrics:
        """The convention's metrics of one run; those of the excess need buy and hold beside it, which costs time."""
        together = tuple({**dict(self.spec.params), **params}.items())
        return self._metrics(replace(self.spec, params=together, first=window[0], last=window[1]))

    def buy_and_hold(self, window: tuple[date, date]) -> Metrics:
        """The same of buy and hold."""
        held = replace(self.spec, strategy="buy-and-hold", params=(), first=window[0], last=window[1])
        return self._metrics(held)

    def _metrics(self, spec: RunSpec) -> Metrics:
        known = convention(spec.convention)
        (symbol,) = spec.symbols
        result = run_strategy(spec, self.market, self.rules, self.cash)
        held = self._held(spec).test if self.metric.startswith("excess") else None
        return known.metrics(track_of(result.test, known.periods_per_year(symbol), benchmark=held))

    def _held(self, spec: RunSpec) -> Result:
        return run_strategy(replace(spec, strategy="buy-and-hold", params=()), self.market, self.rules, self.cash)


def _suggested(trial: Trial, parameter: Parameter) -> str:
    low, high = parameter.low, parameter.high
    assert low is not None and high is not None
    if parameter.type is int:
        return str(trial.suggest_int(parameter.name, int(low), int(high)))
    return repr(trial.suggest_float(parameter.name, low, high))


def _best(study: Study, search: Search, symbol: Symbol, free: tuple[Parameter, ...]) -> dict[str, str]:
    try:
        values = study.best_params
    except ValueError:
        raise UsageError(
            f"{symbol}: no trial from {search.spec.first} to {search.spec.last} has a defined {search.metric}; choose "
            "a longer window, more trials or another metric"
        ) from None
    return {p.name: str(values[p.name]) if p.type is int else repr(float(values[p.name])) for p in free}
