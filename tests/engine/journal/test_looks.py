"""Looks at windows are counted in an index of their own, which stays when runs are pruned."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from engine.account.track_record import daily_returns
from engine.app.records.trial_index import add_trials, count_trials, result_trial, spec_hash, spec_trial
from engine.domain.model_call import AnswerOptions
from engine.domain.order import Portfolio
from engine.domain.run import EquityPoint, Result, RunPart, RunSpec, TrialKind
from engine.errors import TryAgainLater
from engine.journal.integrity import quick_check
from engine.settings import places
from tests.engine.trial_reader import looks_in

NOW = datetime(2024, 7, 1, 12, tzinfo=UTC)
SPEC = RunSpec(
    symbols=("AAA", "BBB"),
    first=date(2024, 1, 2),
    last=date(2024, 1, 4),
    strategy="sma-cross",
    params=(("fast", "5"),),
    run="backtest-1",
)


def test_the_spec_hash_tells_what_decides_a_run() -> None:
    assert spec_hash(replace(SPEC, run="another", journal="/tmp/x.db")) == spec_hash(SPEC)
    others = [
        replace(SPEC, params=(("fast", "6"),)),
        replace(SPEC, last=date(2024, 1, 5)),
        replace(SPEC, seed=1),
        replace(SPEC, options=AnswerOptions(effort="high")),
    ]
    assert len({spec_hash(spec) for spec in (SPEC, *others)}) == 5


def by_hand(*values: str) -> RunPart:
    days = (date(2024, 1, 2), date(2024, 1, 3), date(2024, 1, 4))
    points = (EquityPoint(day, Decimal(v), Portfolio(Decimal(v)), {}) for day, v in zip(days, values, strict=False))
    return RunPart(initial_value=Decimal(1000), equity=tuple(points))


@pytest.mark.parametrize(
    ("values", "returns"),
    [(("1010", "1010", "909"), (0.01, 0.0, -0.1)), (("0", "0"), (-1.0, 0.0)), ((), ())],
)
def test_returns_go_from_close_to_close(values: tuple[str, ...], returns: tuple[float, ...]) -> None:
    assert daily_returns(by_hand(*values)) == pytest.approx(returns)


def test_a_look_comes_back_equal(path: Path) -> None:
    trial = result_trial(TrialKind.BACKTEST, Result(spec=SPEC, test=by_hand("1010", "1010", "909")), NOW)
    later = replace(trial, first=date(2024, 5, 1), last=date(2024, 5, 31), returns=())
    add_trials(path, [trial, later])
    found, beyond = looks_in(path)
    assert found == replace(trial, returns=found.returns)
    assert found.returns == pytest.approx((0.01, 0.0, -0.1))
    assert beyond == later
    assert quick_check(path) == ()


def test_an_ablation_is_one_whoever_ran_it() -> None:
    spec = replace(SPEC, strategy=None, params=(), preset="finvision", without=("reflection",))
    trial = result_trial(TrialKind.BENCH, Result(spec=spec, test=by_hand()), NOW)
    assert (trial.kind, trial.name) == (TrialKind.ABLATION, "finvision")


def test_equal_looks_of_one_run_count_once_and_the_index_is_outside_of_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(places.HOME, str(tmp_path))
    trial = spec_trial(TrialKind.TUNE_TRIAL, SPEC, NOW)
    count_trials([trial, trial, spec_trial(TrialKind.TUNE_TRIAL, replace(SPEC, seed=1), NOW)])
    count_trials([trial])
    index = places.trial_index()
    assert not index.is_relative_to(places.runs_dir())
    assert len(looks_in(index)) == 3


def test_an_index_that_is_held_refuses_all_of_it(path: Path) -> None:
    add_trials(path, [])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TryAgainLater):
            add_trials(path, [spec_trial(TrialKind.AUDIT, SPEC, NOW)], wait=0.02)
        other.execute("ROLLBACK")
    assert looks_in(path) == ()
