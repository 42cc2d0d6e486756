"""Hit rate, slugging and rank correlation of opinions, against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.conventions.metrics import calibration, rank_correlation, skill


def test_skill_counts_sides_and_ranks_holds() -> None:
    sizes, changes = np.array([8.0, -3, 0, 3, -8]), np.array([0.02, 0.01, 0.05, -0.01, -0.03])
    found = skill(sizes, changes, np.arange(5), 1)
    assert (found.n, found.ranked) == (4, 5)
    assert found.hit_rate == 0.5
    assert found.gain == pytest.approx(0.025) and found.loss == pytest.approx(0.01)
    assert found.slugging == pytest.approx(2.5)
    # Ranks 5 2 3 4 1 against 4 3 5 2 1: one less six times the squared distances, 10, over 5 times 24.
    assert found.rank_correlation == pytest.approx(0.5)
    assert found.hit_interval == found.rank_interval == (None, None)


def test_ties_have_their_mean_rank_and_what_is_all_the_same_has_no_rank() -> None:
    # Ranks 1.5 1.5 3 4 against 1 2 3 4.
    assert rank_correlation(np.array([0.0, 0, 1, 2]), np.array([1.0, 2, 3, 4])) == pytest.approx(4.5 / np.sqrt(22.5))
    assert rank_correlation(np.array([1.0, 1, 1]), np.array([1.0, 2, 3])) is None
    assert skill(np.array([]), np.array([]), np.array([], dtype=np.intp), 5).hit_rate is None


def test_intervals_are_wider_where_horizons_overlap() -> None:
    draw = np.random.default_rng(4)
    sizes, changes = draw.normal(size=200), draw.normal(size=200)
    one, five = (skill(sizes, changes, np.arange(200), horizon) for horizon in (1, 5))
    assert one.hit_rate == five.hit_rate and one.hit_rate is not None
    for low, high in (one.hit_interval, five.hit_interval):
        assert low is not None and high is not None and low < one.hit_rate < high
    assert one.rank_interval[1] is not None and five.rank_interval[1] is not None
    assert five.rank_interval[1] > one.rank_interval[1]


def test_stated_confidence_stands_against_what_happened_in_bands() -> None:
    confidences = np.array([0.1, 0.15, 0.6, 0.79, 1.0])
    right = np.array([False, True, True, True, False])
    found = calibration(confidences, right)
    assert found is not None
    assert (found.n, found.confidence, found.hit_rate) == (5, pytest.approx(0.528), pytest.approx(0.6))
    assert found.brier == pytest.approx((0.1**2 + 0.85**2 + 0.4**2 + 0.21**2 + 1) / 5)
    assert [(one.low, one.high, one.n, one.hit_rate) for one in found.bands] == [
        (0.0, 0.2, 2, 0.5),
        (0.6, 0.8, 2, 1.0),
        (0.8, 1.0, 1, 0.0),
    ]
    assert [one.confidence for one in found.bands] == pytest.approx([0.125, 0.695, 1.0])
    assert calibration(confidences[:0], right[:0]) is None
