"""Tests of many rows at once: the best of many is better than nothing by chance alone.

Sources: Hansen 2005 (superior predictive ability, consistent), Romano and Wolf 2005 (step-down), Benjamini and Hochberg
1995 (false discoveries).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.conventions.metrics import FEWEST, FEWEST_GROUPS, Floats, block_length

FALSE_DISCOVERIES = 0.05
"""The share of discoveries that may be false."""
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Family:
    """p-values of rows that are held against one benchmark, of the hypothesis that none is better.

    superior: that the best one is not.
    single: of each row, had it been the only one.
    adjusted: of each row among all of them: below 0.05, a false one among them is as rare.
    """

    superior: float
    single: tuple[float, ...]
    adjusted: tuple[float, ...]


def family(gaps: Floats, seed: int = 0) -> Family | None:
    """The tests of daily differences to the benchmark, rows x days, by circular block bootstrap with eight blocks or
    more; None of fewer than 20 days. A row that never differs has p-values of 1."""
    rows, days = gaps.shape
    if not rows or days < FEWEST:
        return None
    means = gaps.mean(axis=1)
    length = max(1, round(min(days / FEWEST_GROUPS, max(block_length(row) for row in gaps))))
    starts = np.random.default_rng(seed).integers(0, days, (RESAMPLES, math.ceil(days / length)))
    sums = np.cumsum(np.pad(gaps, ((0, 0), (1, length)), mode="wrap"), axis=1)
    blocks = sums[:, length : length + days] - sums[:, :days]
    off = np.array([row[starts].sum(axis=1) for row in blocks]) / (starts.shape[1] * length) - means[:, None]
    off *= math.sqrt(days / (days - length))  # blocks differ less than the days in them do
    spread = off.std(axis=1)
    moved = spread > 1e-12
    scores = np.divide(means, spread, out=np.zeros(rows), where=moved)
    chance = np.divide(off, spread[:, None], out=np.zeros_like(off), where=moved[:, None])
    # One that is worse than chance explains does not make the best of the others more likely.
    bad = scores < -math.sqrt(2 * math.log(math.log(days)))
    best = np.maximum((chance + np.where(bad, scores, 0)[:, None]).max(axis=0), 0)
    return Family(
        superior=_share(best, max(0.0, float(scores.max()))),
        single=tuple(_share(one, score) for one, score in zip(chance, scores, strict=True)),
        adjusted=_step_down(scores, chance),
    )


def _step_down(scores: Floats, chance: Floats) -> tuple[float, ...]:
    """The p-value of each row, the best first, each against the best of those that are left."""
    order, least = np.argsort(-scores), 0.0
    found = np.ones(len(scores))
    for place, row in enumerate(order):
        least = max(least, _share(chance[order[place:]].max(axis=0), scores[row]))
        found[row] = least
    return tuple(found.tolist())


def _share(chance: Floats, score: float) -> float:
    return float((1 + (chance >= score).sum()) / (1 + len(chance)))


def discoveries(p_values: Sequence[float]) -> list[bool]:
    """Those of some p-values that count, so that no more than one in twenty of them is false on average."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    bounds = [FALSE_DISCOVERIES * (place + 1) / len(order) for place in range(len(order))]
    last = max((place for place, row in enumerate(order) if p_values[row] <= bounds[place]), default=-1)
    return [row in order[: last + 1] for row in range(len(p_values))]
