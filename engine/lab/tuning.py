"""Search of a strategy's parameters on a training window; the only module that imports Optuna, and when it searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.account.track_record import daily_returns, track_of
from engine.conventions.catalog import convention
from engine.conventions.metrics import Metrics
from engine.domain.market import Exchange, Symbol
from engine.domain.run import ExecutionRules, Result, RunSpec
from engine.errors import Interrupted, MalformedData, UsageError
from engine.lab.rule_backtest import Shared, run_strategy
from engine.market.as_of import Market
from engine.strategies.catalog import make_strategy, strategy_class
from engine.strategies.strategy import Parameter, parameters, parsed

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial

OnTrial = Callable[[Symbol, int, int], None]
"""A listener for symbol, trials done and trials wanted."""
OnTried = Callable[[RunSpec, Sequence[float]], None]
"""A listener for every run with parameters that the search has chosen, and its daily returns."""
Play = Callable[[Sequence[RunSpec]], Sequence[Result]]
"""Runs of a strategy on one market by one set of costs: their results in the order of the specs."""


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
    tried: Sequence[Sequence[float]]
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


def in_turn(market: Market, rules: ExecutionRules, cash: Decimal) -> Play:
    """Runs in this process, one after the other."""
    shared: Shared = {}
    return lambda specs: [run_strategy(spec, market, rules, cash, shared=shared) for spec in specs]


def tune(
    spec: RunSpec,
    play: Play,
    *,
    exchange: Exchange,
    trials: int,
    test: tuple[date, date] | None,
    on_trial: OnTrial,
    on_tried: OnTried,
    jobs: int = 1,
    record: Path | None = None,
) -> Tuned:
    """Search the parameters of one symbol in the window of a spec, whose own parameters stay fixed, defaults first, by
    a seeded TPE sampler. `test` is a later window to measure the best parameters on. So many trials as `jobs` are drawn
    before the result of any is known, and told in their order: equal seeds and jobs, equal results. What is measured is
    written to an Optuna journal at `record`, and not played again.

    Ctrl-C ends the search with the best so far. Raises UsageError for a strategy without parameters and where no trial
    has the metric defined, MalformedData for a damaged record, and what `run_strategy` raises.
    """
    import optuna
    from optuna.trial import TrialState

    (symbol,) = spec.symbols
    window, strategy, fixed = (spec.first, spec.last), spec.strategy or "", dict(spec.params)
    free = searched(strategy, fixed)
    # A trial that Ctrl-C ends is no failure to warn of.
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kept = None if record is None else _record(record)
    known = {} if kept is None else {_params(one.params, free): _measured(one) for one in kept.trials}
    runs = _Runs(spec, tuned_metric(spec.convention), play, exchange, on_tried, dict(known))
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=spec.seed))
    study.enqueue_trial({parameter.name: parameter.default for parameter in free})
    interrupted, begun = False, 0
    try:
        while begun < trials:
            batch = [study.ask() for _ in range(min(jobs, trials - begun))]
            begun += len(batch)
            choices = [tuple((one.name, _suggested(trial, one)) for one in free) for trial in batch]
            for trial, choice, (value, returns) in zip(batch, choices, runs.measured(choices), strict=True):
                trial.set_user_attr(_RETURNS, returns)
                told = study.tell(trial, value, TrialState.PRUNED if value is None else None)
                if kept is not None and returns and choice not in known:
                    known[choice] = value, returns
                    kept.add_trial(told)
                on_trial(symbol, trial.number + 1, trials)
    except KeyboardInterrupt:
        interrupted = True
    completed = sum(trial.state in (TrialState.COMPLETE, TrialState.PRUNED) for trial in study.trials)
    if interrupted and not completed:
        raise Interrupted(f"interrupted before the first trial of {symbol}")
    try:
        values = study.best_params
    except ValueError:
        raise UsageError(
            f"{symbol}: no trial from {spec.first} to {spec.last} has a defined {runs.metric}; choose a longer window "
            "or more trials"
        ) from None
    best = dict(_params(values, free))
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


Choice = tuple[tuple[str, str], ...]
"""Searched parameters as `--param` texts."""
Measured = tuple[float | None, Sequence[float]]
"""The metric in the training window, None where it is not defined, and the daily returns, none of parameters that do
not go together."""
_RETURNS = "returns"


def _record(file: Path) -> Study:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    try:
        storage = JournalStorage(JournalFileBackend(str(file)))
        return optuna.create_study(storage=storage, study_name="search", direction="maximize", load_if_exists=True)
    except ValueError:
        raise MalformedData(f"{file}: no record of a search; remove it") from None


def _measured(trial: FrozenTrial) -> Measured:
    return trial.value, trial.user_attrs[_RETURNS]


def _params(values: Mapping[str, Any], free: Sequence[Parameter]) -> Choice:
    return tuple((p.name, str(values[p.name]) if p.type is int else repr(float(values[p.name]))) for p in free)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of a strategy with other parameters and windows, measured.

    spec: the strategy, with the parameters that stay fixed.
    metric: name of the metric.
    play: plays runs.
    exchange: that of the symbol.
    on_tried: hears of every run with parameters that the search has chosen.
    stored: measurements in the training window.
    returns: of every choice of this search there.
    """

    spec: RunSpec
    metric: str
    play: Play
    exchange: Exchange
    on_tried: OnTried
    stored: dict[Choice, Measured]
    returns: dict[Choice, Sequence[float]] = field(default_factory=dict)

    @property
    def periods_per_year(self) -> int:
        """Sessions in a year of the symbol."""
        (symbol,) = self.spec.symbols
        return convention(self.spec.convention).periods_per_year(symbol, self.exchange)

    def tried(self, best: Mapping[str, str]) -> list[Sequence[float]]:
        """The daily returns of every choice of parameters in the training window, the best one's first."""
        first = tuple(best.items())
        return [self.returns[first], *(returns for chosen, returns in self.returns.items() if chosen != first)]

    def measured(self, choices: Sequence[Choice]) -> Iterator[Measured]:
        """Measurements of choices of parameters in the training window; those that are not stored are played."""
        new = [one for one in dict.fromkeys(choices) if one not in self.stored and self._go_together(one)]
        for choice, result in zip(new, self.play([self._with(one) for one in new]), strict=True):
            self.stored[choice] = self._metrics(result)[self.metric], daily_returns(result.test)
        for choice in choices:
            value, returns = self.stored.get(choice, (None, ()))
            if returns and choice not in self.returns:
                self.returns[choice] = returns
                self.on_tried(self._with(choice), returns)
            yield value, returns

    def _go_together(self, choice: Choice) -> bool:
        """False for values that are each within bounds, but not beside each other (a fast average slower than the slow
        one)."""
        try:
            make_strategy(self.spec.strategy or "", dict(self._with(choice).params))
        except UsageError:
            return False
        return True

    def _with(self, choice: Choice) -> RunSpec:
        return replace(self.spec, params=tuple({**dict(self.spec.params), **dict(choice)}.items()))

    def figures(self, best: Mapping[str, str], window: tuple[date, date]) -> Figures:
        """The metric of a window by the best parameters, by the defaults, and of buy and hold."""
        held = replace(self.spec, strategy="buy-and-hold", params=(), warm_up_from=None)
        three = (self._with(tuple(best.items())), self.spec, held)
        tuned, *others = self.play([replace(one, first=window[0], last=window[1]) for one in three])
        if window != (self.spec.first, self.spec.last):  # there it was tried in the search
            self.on_tried(tuned.spec, daily_returns(tuned.test))
        return Figures(*(self._metrics(one).get(self.metric) for one in (tuned, *others)))

    def _metrics(self, result: Result) -> Metrics:
        return convention(result.spec.convention).metrics(track_of(result.test, self.periods_per_year))


def _suggested(trial: Trial, parameter: Parameter) -> str:
    low, high = parameter.low, parameter.high
    assert low is not None and high is not None
    if parameter.type is int:
        return str(trial.suggest_int(parameter.name, int(low), int(high)))
    return repr(trial.suggest_float(parameter.name, low, high))
