"""A search for a rule's parameters, symbol by symbol, on the data and costs of a backtest."""

from __future__ import annotations

import asyncio
import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import date, datetime
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from engine.app.records.trial_index import check_trial_index, count_trials, spec_hash, tune_trial
from engine.app.records.workers import Team, in_workers, processes
from engine.app.research.market_data import load_window
from engine.app.research.run_spec import check_spec, user_code, with_costs
from engine.domain.market import Symbol
from engine.domain.run import Result, RunSpec
from engine.errors import Interrupted, UsageError
from engine.lab.tuning import Fold, OnTrial, Play, Tuned, in_turn, searched, tune
from engine.lab.window import desk_calendar_of
from engine.market.as_of import data_fingerprint
from engine.program_files import need_extra
from engine.services import Services
from engine.settings import places
from engine.settings.user_code import code_hash

Window = tuple[date, date]


def search_parameters(
    services: Services,
    spec: RunSpec,
    *,
    trials: int = 100,
    test: tuple[date, date] | None = None,
    folds: int = 0,
    jobs: int = 1,
    on_trial: OnTrial = lambda symbol, done, wanted: None,
) -> Iterator[Tuned]:
    """The best parameters of each symbol, one after the other, each traded alone; nothing more after one that was
    interrupted. With `folds` the search is repeated on so many stretches of the training window, each tried on the
    stretch that follows. So many trials as `jobs` are played at a time, in processes of their own; those that an
    earlier search has measured with the same settings, code and data are not played again. Raises UsageError for what
    cannot mean a search, ConfigError without Optuna, what loading raises."""
    need_extra("tune", "optuna", used_by="paperdesk tune")
    now = services.clock.now()
    _check(spec, test, now)
    rules, cash = with_costs(spec, services.config)
    source = services.open_source(spec.data, spec.last if test is None else test[1])
    windows = [(spec.warm_up_from or spec.first, spec.last), *([] if test is None else [test])]

    def search(symbol: Symbol, team: Team | None) -> Tuned:
        for first, last in windows:
            market = asyncio.run(load_window(source, services.calendar_for, (symbol,), first, last))
        begins = max(spec.first, market.histories[symbol].session(0))
        steps = _steps(desk_calendar_of(market, (symbol,)).sessions(begins, spec.last), folds)
        data = data_fingerprint(market, now)

        def search_in(part: RunSpec, test: Window | None) -> Tuned:
            return tune(
                part,
                play,
                exchange=services.config.exchanges.of(symbol),
                trials=trials,
                test=test,
                on_trial=on_trial,
                on_tried=lambda one, returns: count_trials([tune_trial(one, returns, services.clock.now())]),
                jobs=jobs,
                record=_record(replace(part, rules=rules, cash=cash), data),
            )

        with _played_by(team, market, rules, cash) as play:
            return _walked(search_in, replace(spec, symbols=(symbol,)), test, steps)

    def searches() -> Iterator[Tuned]:
        with processes(jobs) if jobs > 1 else nullcontext() as team:
            for symbol in spec.symbols:
                yield (found := search(symbol, team))
                if found.interrupted:
                    return

    return searches()


def _check(spec: RunSpec, test: Window | None, now: datetime) -> None:
    check_spec(spec, now)
    if test is not None:
        check_spec(replace(spec, first=test[0], last=test[1]), now)
        if test[0] <= spec.last:
            raise UsageError(f"--test-from {test[0]} lies in the training window, which ends on {spec.last}")
    check_trial_index()
    searched(spec.strategy or "", dict(spec.params))


@contextmanager
def _played_by(team: Team | None, *market: Any) -> Iterator[Play]:
    """Runs on a market by its costs, by a team or in this process, until the block ends."""
    if team is None:
        yield in_turn(*market)
        return
    with TemporaryDirectory() as folder:
        given = Path(folder) / "market"
        given.write_bytes(pickle.dumps(market))
        yield partial(_play_side_by_side, team, given)


def _play_side_by_side(team: Team, given: Path, specs: Sequence[RunSpec]) -> Sequence[Result]:
    results: dict[int, Result] = {}
    in_workers(team, partial(_play_there, given), specs, lambda: False, results.__setitem__)
    return [results[number] for number in range(len(specs))]


def _play_there(given: Path, spec: RunSpec) -> Result:
    (result,) = _player(given)([spec])
    return result


@lru_cache(1)
def _player(given: Path) -> Play:
    """In a process of a team: plays on a market that many runs share."""
    return in_turn(*pickle.loads(given.read_bytes()))


def _record(spec: RunSpec, data: str) -> Path:
    decided = f"{spec_hash(spec)} {version('paperdesk')} {code_hash(user_code(spec))} {data}"
    file = places.search_record(hashlib.sha256(decided.encode()).hexdigest()[:16])
    places.make_folder(file.parent)
    return file


FEWEST = 20
"""Sessions that a stretch has at least."""


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
