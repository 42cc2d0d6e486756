"""A search for a rule's parameters, symbol by symbol, on the data and costs of a backtest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import pairwise

from engine.app.records.trial_index import check_trial_index, count_trials, result_trial
from engine.app.research.market_data import load_window
from engine.app.research.run_spec import check_spec, with_costs
from engine.domain.market import Symbol
from engine.domain.run import RunSpec, Trial, TrialKind
from engine.errors import Interrupted, UsageError
from engine.lab.tuning import Fold, OnTrial, Tuned, searched, tune
from engine.lab.window import desk_calendar_of
from engine.program_files import need_extra
from engine.services import Services


def search_parameters(
    services: Services,
    spec: RunSpec,
    *,
    trials: int = 100,
    test: tuple[date, date] | None = None,
    folds: int = 0,
    on_trial: OnTrial = lambda symbol, done, wanted: None,
) -> Iterator[Tuned]:
    """The best parameters of each symbol, one after the other, each traded alone; nothing more after one that was
    interrupted. With `folds` the search is repeated on so many stretches of the training window, each tried on the
    stretch that follows. Raises UsageError for what cannot mean a search, ConfigError without Optuna, what loading
    raises."""
    need_extra("tune", "optuna", used_by="paperdesk tune")
    now = services.clock.now()
    check_spec(spec, now)
    if test is not None:
        check_spec(replace(spec, first=test[0], last=test[1]), now)
        if test[0] <= spec.last:
            raise UsageError(f"--test-from {test[0]} lies in the training window, which ends on {spec.last}")
    check_trial_index()
    searched(spec.strategy or "", dict(spec.params))
    rules, cash = with_costs(spec, services.config)
    source = services.open_source(spec.data, spec.last if test is None else test[1])
    windows = [(spec.warm_up_from or spec.first, spec.last), *([] if test is None else [test])]

    def search(symbol: Symbol) -> Tuned:
        for first, last in windows:
            market = asyncio.run(load_window(source, services.calendar_for, (symbol,), first, last))
        steps = _steps(desk_calendar_of(market, (symbol,)).sessions(spec.first, spec.last), folds)
        tried: list[Trial] = []
        search_in = partial(
            tune,
            market=market,
            exchange=services.config.exchanges.of(symbol),
            rules=rules,
            cash=cash,
            trials=trials,
            on_trial=on_trial,
            on_result=lambda one: tried.append(result_trial(TrialKind.TUNE_TRIAL, one, services.clock.now())),
        )
        try:
            return _walked(search_in, replace(spec, symbols=(symbol,)), test, steps)
        finally:
            count_trials(tried)

    def searches() -> Iterator[Tuned]:
        for symbol in spec.symbols:
            yield (found := search(symbol))
            if found.interrupted:
                return

    return searches()


FEWEST = 20
"""Sessions that a stretch has at least."""

Window = tuple[date, date]


def _steps(sessions: Sequence[date], folds: int) -> list[tuple[Window, Window]]:
    """A training window in stretches of equal length, each with the one that follows. Raises UsageError for stretches
    that are too short."""
    if not folds:
        return []
    length, parts = len(sessions) / (folds + 1), []
    if length < FEWEST:
        raise UsageError(f"--walk-forward {folds} leaves {int(length)} sessions each; {FEWEST} are the fewest")
    for number in range(folds + 1):
        part = sessions[round(number * length) : round((number + 1) * length)]
        parts.append((part[0], part[-1]))
    return list(pairwise(parts))


def _walked(
    search_in: Callable[..., Tuned], spec: RunSpec, test: Window | None, steps: Sequence[tuple[Window, Window]]
) -> Tuned:
    """The search in the whole training window, then step by step."""
    found = search_in(spec, test=test)
    for (first, last), after in steps:
        if found.interrupted:
            break
        try:
            step = search_in(replace(spec, first=first, last=last), test=after)
        except Interrupted:
            return replace(found, interrupted=True)
        assert step.out_of_sample is not None
        fold = Fold(
            first=first,
            last=last,
            test_first=after[0],
            test_last=after[1],
            params=step.params,
            in_sample=step.in_sample,
            out_of_sample=step.out_of_sample,
        )
        found = replace(found, folds=(*found.folds, fold), interrupted=step.interrupted)
    return found
