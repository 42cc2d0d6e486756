"""A search for a rule's parameters, symbol by symbol, on the data and costs of a backtest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from engine.app.records.trial_index import check_trial_index, count_trials, result_trial
from engine.app.research.market_data import load_window
from engine.app.research.run_spec import check_spec, with_costs
from engine.domain.market import Symbol
from engine.domain.run import RunSpec, Trial, TrialKind
from engine.errors import UsageError
from engine.lab.tuning import OnTrial, Tuned, searched, tune
from engine.program_files import need_extra
from engine.services import Services


def search_parameters(
    services: Services,
    spec: RunSpec,
    *,
    trials: int = 100,
    test: tuple[date, date] | None = None,
    on_trial: OnTrial = lambda symbol, done, wanted: None,
) -> Iterator[Tuned]:
    """The best parameters of each symbol, one after the other, each traded alone; nothing more after one that was
    interrupted. Raises UsageError for what cannot mean a search, ConfigError without Optuna, what loading raises."""
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
        tried: list[Trial] = []
        try:
            return tune(
                replace(spec, symbols=(symbol,)),
                market,
                exchange=services.config.exchanges.of(symbol),
                rules=rules,
                cash=cash,
                trials=trials,
                test=test,
                on_trial=on_trial,
                on_result=lambda one: tried.append(result_trial(TrialKind.TUNE_TRIAL, one, services.clock.now())),
            )
        finally:
            count_trials(tried)

    def searches() -> Iterator[Tuned]:
        for symbol in spec.symbols:
            yield (found := search(symbol))
            if found.interrupted:
                return

    return searches()
