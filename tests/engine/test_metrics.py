"""Metrics against empyrical, against hand-worked figures, and on series where they are not defined."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.conventions.catalog import CONVENTIONS, convention
from engine.conventions.metrics import (
    METRICS,
    Track,
    block_length,
    daily_mean_interval,
    excess_interval,
    floats,
    later_difference,
    mean_interval,
    noise_floor,
    sharpe_interval,
)
from engine.domain.market import LISTED
from engine.domain.run import FillAt, PriceBasis
from engine.errors import UsageError

DESK = [
    "total_return",
    "cagr",
    "volatility",
    "sharpe",
    "sharpe_low",
    "sharpe_high",
    "sortino",
    "calmar",
    "max_drawdown",
    "win_rate",
    "turnover",
    "exposure",
    "excess_return",
    "excess_low",
    "excess_high",
    "net_of_model_cost",
]


def empyrical() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("empyrical", reason="empyrical-reloaded is a development dependency")


def grown(returns: Any) -> Any:
    return 1000.0 * np.concatenate([[1.0], np.cumprod(1.0 + np.asarray(returns))])


cents = st.lists(st.integers(-1000, 10**9).map(lambda n: n / 100), max_size=30)
six = st.lists(st.floats(-0.2, 0.2), min_size=2, max_size=80)


@given(returns=six, periods=st.sampled_from([252, 365]), risk_free=st.sampled_from([0.0, 0.03]))
def test_the_six_standard_metrics_are_empyricals(returns: list[float], periods: int, risk_free: float) -> None:
    theirs, moves = empyrical(), np.array(returns)
    excess = moves - risk_free / periods
    assume(moves.std() > 1e-4 and moves.min() < -1e-4 and excess.min() < -1e-4)
    ours = METRICS["desk"](Track(equity=grown(moves), periods_per_year=periods, risk_free=risk_free))
    daily = risk_free / periods
    expected = {
        "cagr": theirs.annual_return(moves, annualization=periods),
        "volatility": theirs.annual_volatility(moves, annualization=periods),
        "sharpe": theirs.sharpe_ratio(moves, risk_free=daily, annualization=periods),
        "sortino": theirs.sortino_ratio(moves, required_return=daily, annualization=periods),
        "calmar": theirs.calmar_ratio(moves, annualization=periods),
        # Ours is the size of the fall, theirs its sign too.
        "max_drawdown": -theirs.max_drawdown(moves),
        "total_return": theirs.cum_returns_final(moves),
    }
    for name, value in expected.items():
        assert ours[name] == pytest.approx(float(value), rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("name", METRICS)
@given(equity=cents, shape=st.sampled_from(["as is", "flat", "ends at zero"]))
def test_undefined_is_none_and_nothing_is_ever_nan(name: str, equity: list[float], shape: str) -> None:
    values = np.array(equity if shape == "as is" else [100.0] * len(equity))
    if shape == "ends at zero" and len(values):
        values[-1] = 0.0
    metrics = METRICS[name](Track(equity=values, benchmark=values, invested=values[1:], traded=5.0, model_cost=1.0))
    for value in metrics.values():
        assert value is None or (isinstance(value, float) and math.isfinite(value))


@pytest.mark.parametrize("name", METRICS)
def test_a_flat_series_has_no_ratios(name: str) -> None:
    flat = Track(equity=np.full(30, 100.0), prices=np.full(30, 5.0), positions=np.ones(30))
    metrics = METRICS[name](flat)
    if name != "finvision":
        # FinVision's excess return over 2 % of a flat series is a number over zero, too.
        assert metrics.get("sharpe") is None and metrics.get("SR") is None
    assert metrics.get("calmar") is None and metrics.get("SOR") is None
    assert metrics.get("max_drawdown", metrics.get("MDD", 0.0)) == 0.0


def test_equal_returns_are_not_an_infinite_sharpe() -> None:
    assert METRICS["desk"](Track(equity=100 * 1.01 ** np.arange(50)))["sharpe"] is None
    assert METRICS["arena"](Track(equity=100 * 1.01 ** np.arange(50)))["SR"] is None


def test_one_day_and_no_day() -> None:
    for equity in ([], [100.0]):
        assert set(METRICS["desk"](Track(equity=np.array(equity))).values()) == {None}
    one = METRICS["desk"](Track(equity=np.array([100.0, 110.0]), invested=np.array([55.0]), traded=50.0))
    assert one["total_return"] == pytest.approx(0.1)
    assert one["exposure"] == pytest.approx(0.5)
    assert one["sharpe"] is one["volatility"] is one["sharpe_low"] is None


def test_desk_metrics_by_hand_and_under_their_names() -> None:
    equity = floats([Decimal("100"), Decimal("110"), Decimal("99"), Decimal("105")])
    metrics = METRICS["desk"](
        Track(
            equity=equity,
            invested=np.array([55.0, 99.0, 0.0]),
            traded=157.0,
            benchmark=np.array([100.0, 100.0, 90.0, 95.0]),
            model_cost=2.0,
        )
    )
    assert list(metrics) == DESK
    assert metrics["total_return"] == pytest.approx(0.05)
    assert metrics["max_drawdown"] == pytest.approx(0.1)
    assert metrics["win_rate"] == pytest.approx(2 / 3)
    assert metrics["exposure"] == pytest.approx((0.5 + 1.0 + 0.0) / 3)
    # 157 traded in 3 of 252 sessions, mean equity 314/3.
    assert metrics["turnover"] == pytest.approx(157 * 84 / (314 / 3))
    assert metrics["excess_return"] == pytest.approx(0.10)
    assert metrics["net_of_model_cost"] == pytest.approx(0.03)
    assert metrics["excess_low"] is None


def test_finagent_by_hand() -> None:
    # 1000 -> 999 (commission) -> 1098.9 (+10 %) -> 1043.955 (-5 %); returns 0, -0.001, 0.1, -0.05.
    metrics = METRICS["finagent"](Track(equity=np.array([1000.0, 999.0, 1098.9, 1043.955])))
    returns = np.array([0.0, -0.001, 0.1, -0.05])
    assert metrics["ARR"] == pytest.approx(100 * 0.043955 / 4 * 252)
    assert metrics["SR"] == pytest.approx(returns.mean() * 2 / returns.std())
    assert metrics["MDD"] == pytest.approx(5.0)
    assert metrics["CR"] == pytest.approx(0.01225 * 252 / 0.05)
    assert metrics["SOR"] == pytest.approx(0.01225 * 252 / 0.0245)
    assert metrics["VOL"] == pytest.approx(returns.std())


def test_investorbench_multiplies_log_returns_by_the_side() -> None:
    prices = np.array([100.0, 110.0, 99.0, 108.9])
    track = Track(
        equity=np.array([1.0]), periods_per_year=365, prices=prices, positions=np.array([1.0, -1.0, 0.0, 1.0])
    )
    metrics = METRICS["investorbench"](track)
    earned = np.array([math.log(1.1), -math.log(0.9), 0.0])
    assert metrics["CR"] == pytest.approx(100 * earned.sum())
    assert metrics["AV"] == pytest.approx(100 * earned.std(ddof=1) * math.sqrt(365))
    # Four prices are 4/252 of a year for SR, whatever volatility is annualized with.
    assert metrics["SR"] == pytest.approx(earned.sum() / (4 / 252) / (metrics["AV"] / 100))
    assert metrics["MDD"] == 0.0


def test_finvision_and_arena_by_hand() -> None:
    equity = np.array([100.0, 100.0, 102.0, 96.9, 106.59])
    returns = np.array([0.02, -0.05, 0.1])
    vision, arena = METRICS["finvision"](Track(equity=equity)), METRICS["arena"](Track(equity=equity[1:]))
    assert vision["ARR"] == pytest.approx(6.59 * 252 / 3)
    assert vision["SR"] == pytest.approx((returns.mean() - 0.02 / 252) / returns.std(ddof=1) * math.sqrt(252))
    assert vision["MDD"] == pytest.approx(5.0)
    assert arena["TR"] == pytest.approx(6.59)
    assert arena["WR"] == pytest.approx(200 / 3)
    assert arena["SR"] == pytest.approx(returns.mean() / returns.std(ddof=1))


def noise(days: int, mean: float, seed: int) -> Any:
    return np.random.default_rng(seed).normal(mean, 0.01, days)


def momentum(random: Any, draws: int, days: int, phi: float = 0.2) -> Any:
    """First-order autoregressive noise of unit variance: draws x days."""
    noise, found = random.normal(0, math.sqrt(1 - phi**2), (draws, days)), [random.normal(0, 1, draws)]
    for day in range(days):
        found.append(phi * found[-1] + noise[:, day])
    return np.stack(found[1:], axis=1)


def clusters(random: Any, draws: int, days: int) -> Any:
    """GARCH(1, 1) noise of unit variance, begun at its mean: draws x days."""
    variance, found = np.ones(draws), []
    for _ in range(days + 100):
        found.append(np.sqrt(variance) * random.normal(0, 1, draws))
        variance = 0.05 + 0.1 * found[-1] ** 2 + 0.85 * variance
    return np.stack(found[100:], axis=1)


NOISE: dict[str, Callable[[Any, int, int], Any]] = {
    "independent": lambda random, draws, days: random.normal(0, 1, (draws, days)),
    "momentum": momentum,
    "clusters": clusters,
}


def coverage(kind: str, days: int, draws: int) -> dict[str, float]:
    """How often each interval holds the truth, of returns with a daily mean of 0.0006 and a deviation of 0.01."""
    random = np.random.default_rng(days)
    ours, theirs = (0.0006 + 0.01 * NOISE[kind](random, draws, days) for _ in range(2))
    means = [daily_mean_interval(one) for one in ours]
    sharpes = [sharpe_interval(one, 252) for one in ours]
    excess = [excess_interval(one, other) for one, other in zip(ours, theirs, strict=True)]
    truths = ((means, 0.0006), (sharpes, 0.06 * math.sqrt(252)), (excess, 0.0))
    names = ("mean", "sharpe", "excess")
    return {
        name: sum(low <= truth <= high for low, high in found) / draws  # type: ignore[operator]
        for name, (found, truth) in zip(names, truths, strict=True)
    }


@pytest.mark.parametrize("kind", NOISE)
def test_intervals_hold_the_truth_about_as_often_as_they_say(kind: str) -> None:
    for name, held in coverage(kind, 62, 300).items():
        assert 0.91 <= held <= 0.985, name


@pytest.mark.slow
@pytest.mark.parametrize("days", [25, 62, 126])
@pytest.mark.parametrize("kind", NOISE)
def test_intervals_hold_the_truth_as_often_as_they_say(kind: str, days: int) -> None:
    for name, held in coverage(kind, days, 2000).items():
        assert 0.93 <= held <= 0.97, name


def test_blocks_are_as_long_as_arch_makes_them() -> None:
    # arch 8.0.0: optimal_block_length(series)["circular"] of the series below.
    for seed, days, phi, theirs in (
        (0, 25, 0.0, 1.4269918111043265),
        (1, 62, 0.3, 2.2142303275555637),
        (2, 126, 0.6, 4.713520471350692),
        (3, 500, 0.2, 5.028123671803041),
        (4, 1259, -0.3, 10.28330910101109),
        (5, 2000, 0.9, 55.26814331869664),
    ):
        series = np.random.default_rng(seed).normal(0, 1, days)
        for day in range(1, days):
            series[day] += phi * series[day - 1]
        assert block_length(series) == pytest.approx(theirs)
    assert block_length(np.ones(30)) == 1.0


def test_intervals_are_the_same_every_time_and_widen_with_runs_of_days() -> None:
    calm = noise(500, 0.0005, 1)
    assert sharpe_interval(calm, 252) == sharpe_interval(calm.copy(), 252)
    momentum = np.repeat(noise(100, 0.0005, 2), 5)
    width: Callable[[Any], float] = lambda r: float(np.subtract(*sharpe_interval(r, 252)[::-1]))  # noqa: E731
    assert width(momentum) > 1.3 * width(calm)


def test_the_excess_interval_pairs_the_days() -> None:
    market = noise(250, 0.001, 4)
    assert excess_interval(market, market) == (0.0, 0.0)
    low, high = excess_interval(market + 0.002, market)
    assert low is not None and high is not None and low > 0.3
    assert excess_interval(market[:10], market[:10]) == (None, None)


def test_conventions_carry_what_their_tables_need() -> None:
    assert set(CONVENTIONS) == set(METRICS)
    finagent = convention("finagent")
    assert finagent.execution.fill_at is FillAt.SAME_CLOSE
    assert finagent.execution.commission_rate == Decimal("0.001")
    assert not finagent.execution.fractional
    assert finagent.price_basis is PriceBasis.REBASED
    assert finagent.bars_dropped_for("AAPL") == 1
    bench = convention("investorbench")
    assert (bench.bars_dropped_for("MSFT"), bench.bars_dropped_for("TSLA")) == (1, 0)
    assert [bench.periods_per_year(s, LISTED.of(s)) for s in ("MSFT", "TSLA", "BTC-USD", "GOOGL")] == [
        252,
        365,
        365,
        252,
    ]
    assert convention("desk").execution.fill_at is FillAt.NEXT_OPEN
    for rules in CONVENTIONS.values():
        track = Track(equity=grown(noise(40, 0.001, 3)), prices=grown(noise(40, 0.001, 3)), positions=np.ones(41))
        assert set(rules.percent) <= set(rules.metrics(track))


def test_an_unknown_convention_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"finagnt.*finagent"):
        convention("finagnt")


def test_the_interval_of_a_mean_in_groups_covers_it_and_counts_groups_not_values() -> None:
    inside = 0
    for seed in range(40):
        days = np.random.default_rng(seed).normal(0.1, 1.0, 60)
        low, high = mean_interval(np.repeat(days, 4), np.repeat(np.arange(60), 4))
        assert low is not None and high is not None
        inside += low <= 0.1 <= high
        # Four equal values a day tell no more than one, and a day as much as by the rule of daily values.
        assert (low, high) == pytest.approx(daily_mean_interval(days))
    assert 36 <= inside <= 40
    assert mean_interval(np.ones(40), np.repeat(np.arange(7), 6)[:40]) == (None, None)


def test_equal_runs_lie_further_apart_than_their_noise_floor_one_time_in_twenty() -> None:
    drawn = np.random.default_rng(1)
    groups = drawn.normal(0.001, 0.01, (4000, 2, 3))
    floors = [noise_floor([one, other]) or 0.0 for one, other in groups]
    apart = [abs(one.mean() - other.mean()) for one, other in groups]
    assert 0.04 < np.mean(np.array(apart) > np.array(floors) * (1 / 3 + 1 / 3) ** 0.5) < 0.06
    beyond = [abs(one.mean() - 0.001) > (noise_floor([one]) or 0.0) / 3**0.5 for one, _ in groups]
    assert 0.04 < np.mean(beyond) < 0.06, "beside what has no noise"
    assert noise_floor([groups[0, 0][:1]]) is None and noise_floor([np.ones(2)]) == 0


def test_days_after_and_days_before_are_told_apart_by_both_their_spreads() -> None:
    drawn = np.random.default_rng(2)
    spans = [(drawn.normal(0, 0.01, 60), drawn.normal(0.002, 0.02, 120)) for _ in range(2000)]
    told = [later_difference(before, after) for before, after in spans]
    assert 0.93 < np.mean([one["low"] < 0.002 < one["high"] for one in told if one is not None]) < 0.975
    short = later_difference(spans[0][0][:10], spans[0][1])
    assert short is not None and (short["low"], short["high"], short["distinguishable"]) == (None, None, None)
