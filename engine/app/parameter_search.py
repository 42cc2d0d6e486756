"""A search for a rule's parameters, symbol by symbol, on the data and costs of a backtest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from engine.app.look_index import count_looks, result_look
from engine.app.market_data import load_window
from engine.app.run_spec import check_spec, with_costs
from engine.domain.run import LookKind, Result, RunSpec, WindowLook
from engine.errors import UsageError
from engine.lab.tuning import OnTrial, Search, Tuned, default_metric, searched, tune
from engine.services import Services


def search_parameters(
    services: Services,
    spec: RunSpec,
    *,
    metric: str | None = None,
    trials: int = 100,
    test: tuple[date, date] | None = None,
    on_trial: OnTrial = lambda symbol, done, wanted: None,
) -> Iterator[Tuned]:
    """The best parameters of each symbol, one after the other, each traded alone; nothing more after one that was
    interrupted. Raises UsageError for what cannot mean a search, and what loading raises."""
    now = services.clock.now()
    check_spec(spec, now)
    if test is not None:
        check_spec(replace(spec, first=test[0], last=test[1]), now)
        if test[0] <= spec.last:
            raise UsageError(f"--test-from {test[0]} lies in the training window, which ends on {spec.last}")
    searched(spec.strategy or "", dict(spec.params))
    return _searches(services, spec, metric or default_metric(spec.convention), trials, test, on_trial)


def _searches(
    services: Services,
    spec: RunSpec,
    metric: str,
    trials: int,
    test: tuple[date, date] | None,
    on_trial: OnTrial,
) -> Iterator[Tuned]:
    rules, cash = with_costs(spec, services.config)
    last = spec.last if test is None else test[1]
    source = services.open_source(spec.data, last)
    windows: Sequence[tuple[date, date]] = [
        (spec.warm_up_from or spec.first, spec.last),
        *([] if test is None else [test]),
    ]
    for symbol in spec.symbols:
        alone = replace(spec, symbols=(symbol,))
        for first, end in windows:
            market = asyncio.run(load_window(source, services.calendar_for, (symbol,), first, end))
        looks: list[WindowLook] = []

        def on_result(result: Result, looks: list[WindowLook] = looks) -> None:
            looks.append(result_look(LookKind.TUNE_TRIAL, result, services.clock.now()))

        search = Search(alone, metric, trials, spec.seed, test)
        try:
            found = tune(search, market, rules, cash, on_trial=on_trial, on_result=on_result)
        finally:
            count_looks(looks)
        yield found
        if found.interrupted:
            return
