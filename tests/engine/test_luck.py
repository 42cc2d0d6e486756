"""Luck: formulas held against sharpebench, random traders by what they trade, and the looks that count."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.app.records.trial_index import count_trials, spec_trial
from engine.conventions.luck import (
    RandomTraders,
    against_market,
    best_by_chance,
    deflated_sharpe,
    minimum_track_record,
    overfitting,
    percentile,
    probabilistic_sharpe,
    value_at_risk,
)
from engine.domain.run import RunSpec, TrialKind
from engine.reports.documents.luck import trials_on
from engine.settings import places


def judge() -> Any:
    return pytest.importorskip("sharpebench", reason="sharpebench is a development dependency")


@given(
    returns=st.lists(st.floats(-0.2, 0.2), min_size=3, max_size=80),
    trials=st.integers(1, 500),
    periods=st.sampled_from([252, 365]),
)
def test_sharpe_ratios_are_deflated_as_sharpebench_does(returns: list[float], trials: int, periods: int) -> None:
    series, theirs = np.array(returns), judge()
    assume(series.std() > 1e-4)
    near = {"rel": 1e-5, "abs": 1e-6}
    assert probabilistic_sharpe(series) == pytest.approx(theirs.probabilistic_sharpe_ratio(series), **near)
    deflated = theirs.deflated_sharpe_ratio(series, trials, periods_per_year=periods)
    assert deflated_sharpe(series, trials, periods) == pytest.approx(deflated, **near)
    needed = theirs.min_track_record_length(series)
    assert minimum_track_record(series) == (pytest.approx(needed, **near) if math.isfinite(needed) else None)


def test_chance_alone_over_fifty_looks_beats_a_sharpe_of_one() -> None:
    assert best_by_chance(1) == 0.0
    assert best_by_chance(50) == pytest.approx(1.14, abs=0.005)
    series = np.random.default_rng(0).normal(0, 0.01, 1259)
    series += 1.10 / math.sqrt(252) * series.std(ddof=1) - series.mean()
    assert deflated_sharpe(series, 50, 252) == pytest.approx(0.47, abs=0.01)


def test_what_is_flat_or_too_short_has_none() -> None:
    flat = np.full(30, 0.001)
    assert probabilistic_sharpe(flat) is minimum_track_record(flat) is deflated_sharpe(flat, 5, 252) is None
    assert probabilistic_sharpe(np.empty(0)) is value_at_risk(np.full(19, 0.1)) is None
    assert against_market(flat, flat, 1.0, 252).beta is None


def test_a_run_is_held_against_the_market() -> None:
    market = np.random.default_rng(1).normal(0.0005, 0.01, 500)
    half = against_market(0.5 * market + 0.0001, market, 0.5, 252)
    assert half.beta == pytest.approx(0.5) and half.alpha == pytest.approx(0.0252)
    assert half.excess == pytest.approx(0.0252, rel=0.02)
    low, high = half.excess_interval
    assert low is not None and high is not None and low < 0.0252 < high
    gaps = 0.0001 - 0.5 * market
    assert half.information_ratio == pytest.approx(gaps.mean() / gaps.std(ddof=1) * math.sqrt(252))


@pytest.mark.parametrize(
    ("long", "short", "turnover"),
    [(0.5, 0.0, 6.0), (0.9, 0.0, 2.0), (0.3, 0.2, 8.0), (1.0, 0.5, 9.0), (1.0, 0.0, 1.0)],
)
def test_random_traders_trade_as_much_and_hold_as_much(long: float, short: float, turnover: float) -> None:
    still = [np.zeros(250)] * 2
    costs = RandomTraders(prices=still, long=long, short=short, turnover=turnover, cost=0.0001).returns()
    assert float(np.log1p(costs).mean()) / math.log1p(-0.0001) == pytest.approx(turnover, rel=0.05)
    rising = [np.full(250, 0.00001)] * 2
    traders = RandomTraders(prices=rising, long=long, short=short, turnover=turnover, cost=0.0)
    grown = traders.returns()
    assert float(grown.mean()) / 0.0025 == pytest.approx(long - short, abs=0.03)


def test_a_percentile_counts_equals_half() -> None:
    others = np.array([-0.1, 0.0, 0.1, 0.2])
    assert [percentile(own, others) for own in (-1.0, 0.05, 0.1, 9.0)] == [0.0, 50.0, 62.5, 100.0]


def test_looks_count_where_windows_overlap_by_half_and_share_a_symbol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(places.HOME, str(tmp_path))
    year = RunSpec(symbols=("AAA", "BBB"), first=date(2024, 1, 1), last=date(2024, 12, 31), strategy="macd", run="one")

    def counted() -> int:
        return trials_on(("BBB", "CCC"), year.first, year.last)

    def look(**changes: Any) -> None:
        count_trials([spec_trial(TrialKind.BACKTEST, replace(year, **changes), datetime(2025, 1, 1, tzinfo=UTC))])

    assert counted() == 0
    look()
    look(run="the same settings once more")
    assert counted() == 1
    look(seed=1)
    look(first=date(2024, 12, 1), last=date(2025, 1, 15))  # 31 of its 46 days
    look(first=date(2024, 3, 1), last=date(2024, 3, 1))  # a decision taken again
    assert counted() == 4
    look(symbols=("AAA",))
    look(first=date(2024, 12, 20), last=date(2025, 1, 31))  # 12 of its 43 days
    look(first=date(2025, 1, 1), last=date(2025, 12, 31))
    assert counted() == 4


@pytest.mark.parametrize(("days", "trials"), [(160, 5), (163, 5), (250, 7), (320, 50), (330, 2)])
def test_overfitting_is_as_probable_as_sharpebench_says(days: int, trials: int) -> None:
    returns = np.random.default_rng(days).normal(0.0005, 0.01, (days, trials))
    returns[:, 0] += 0.0008
    assert overfitting(returns) == pytest.approx(judge().probability_of_backtest_overfitting(returns), abs=1e-4)
    assert overfitting(returns[:31]) is overfitting(returns[:, :1]) is None
    assert overfitting(np.repeat(returns[:, :1], 3, axis=1)) is None, "trials that do not differ"
