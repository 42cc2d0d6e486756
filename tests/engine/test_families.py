"""Tests of many rows at once, held against sharpebench and against figures of arch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.conventions.families import discoveries, family

EDGES = {
    "one good": ([0.001, 0, 0, 0, 0], 250),
    "two good, one bad": ([0.002, 0.0015, 0, -0.002, 0], 250),
    "chance": ([0.0] * 20, 500),
}
ARCH = {"one good": 0.25, "two good, one bad": 0.003, "chance": 0.022}
"""arch 8.0.0: SPA(zeros, -gaps.T, block_size=3, reps=4000, bootstrap="circular", seed=1), its consistent p-value."""


def gaps_of(name: str) -> Any:
    edges, days = EDGES[name]
    return np.random.default_rng(len(edges) + days).normal(0, 0.01, (len(edges), days)) + np.array(edges)[:, None]


@pytest.mark.parametrize("name", EDGES)
def test_p_values_are_about_those_of_the_judges(name: str) -> None:
    judge = pytest.importorskip("sharpebench", reason="sharpebench is a development dependency")
    gaps = gaps_of(name)
    found = family(gaps)
    assert found is not None
    assert found.superior == pytest.approx(ARCH[name], abs=0.04)
    assert found.superior == pytest.approx(judge.spa_consistent_pvalue(gaps), abs=0.08)
    for one, row in zip(found.single, gaps, strict=True):
        if row.mean() > 0:  # theirs is 1 of a row that is not better
            assert one == pytest.approx(judge.bootstrap_pvalue(row), abs=0.06)
    clear = [not 0.02 < adjusted < 0.1 for adjusted in found.adjusted]
    theirs = judge.step_down_significant(gaps)
    assert [a <= 0.05 for a, sure in zip(found.adjusted, clear, strict=True) if sure] == [
        b for b, sure in zip(theirs, clear, strict=True) if sure
    ]
    assert all(alone <= among for alone, among in zip(found.single, found.adjusted, strict=True))


def test_false_discoveries_are_sharpebenchs() -> None:
    judge = pytest.importorskip("sharpebench", reason="sharpebench is a development dependency")
    for seed in range(20):
        p_values = np.random.default_rng(seed).uniform(0, 0.15, 12) ** 1.5
        assert discoveries(p_values.tolist()) == list(judge.benjamini_hochberg(p_values))
    assert discoveries([]) == []


def test_a_best_of_many_by_chance_is_seldom_called_better() -> None:
    called = 0
    for seed in range(60):
        found = family(np.random.default_rng(seed).normal(0, 0.01, (8, 120)))
        assert found is not None
        called += min(found.adjusted) <= 0.05
    assert called <= 8, "three are expected of sixty"


def test_chance_alone_is_called_better_about_as_often_as_said_on_few_days() -> None:
    drawn, variance = np.random.default_rng(1).normal(size=(125, 600)), np.ones(600)
    for day in drawn:  # GARCH: its calm and wild days go together
        day *= np.sqrt(variance)
        variance = 0.05 + 0.1 * day**2 + 0.85 * variance
    found = [tested.single[0] for gaps in drawn[100:].T if (tested := family(gaps[None])) is not None]
    assert len(found) == 600 and 0.02 < np.mean(np.array(found) < 0.05) < 0.09


def test_what_never_differs_is_no_better_and_few_days_say_nothing() -> None:
    found = family(np.zeros((2, 60)))
    assert found is not None and found.single == found.adjusted == (1.0, 1.0)
    assert family(np.zeros((2, 19))) is None and family(np.zeros((0, 60))) is None
