"""Skill of opinions against what followed: hit rate, slugging, rank correlation, each over a horizon of sessions.

Opinions of neighbouring sessions share most of a horizon of 5 or 20 sessions, so intervals take whole stretches of the
horizon together: about n / horizon of them are independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.conventions.metrics.bootstrap import NONE, Interval, mean_interval
from engine.conventions.metrics.track import Floats

FEWEST_RANKED = 8
"""Independent pairs below which a rank correlation has no interval."""


BANDS = 5
"""Bands of equal width that stated confidences are sorted into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """The skill of opinions over one horizon; None where there are too few.

    n: opinions that took a side and whose outcome is known.
    hit_rate: fraction of them that were right; a price that stood still makes nobody right.
    hit_interval: 95 % interval of it.
    gain, loss: mean move in favour of those that were right, and against those that were wrong, as fractions.
    slugging: gain over loss.
    ranked: opinions with a known outcome, holds included.
    rank_correlation: Spearman's, of signed size and change of the price.
    rank_interval: 95 % interval of it.
    """

    n: int
    hit_rate: float | None
    hit_interval: Interval
    gain: float | None
    loss: float | None
    slugging: float | None
    ranked: int
    rank_correlation: float | None
    rank_interval: Interval


def skill(sizes: Floats, changes: Floats, sessions: NDArray[np.intp], horizon: int) -> Skill:
    """The skill of opinions with signed sizes (0 for a hold) and the changes of the price that followed, as fractions;
    `sessions` are the ordinals of their sessions."""
    sided = sizes != 0
    results = np.sign(sizes[sided]) * changes[sided]
    right, wrong = results[results > 0], results[results < 0]
    gain = float(right.mean()) if len(right) else None
    loss = float(-wrong.mean()) if len(wrong) else None
    correlation = rank_correlation(sizes, changes)
    return Skill(
        n=len(results),
        hit_rate=float((results > 0).mean()) if len(results) else None,
        hit_interval=_hit_interval(results > 0, sessions[sided], horizon),
        gain=gain,
        loss=loss,
        slugging=gain / loss if gain is not None and loss else None,
        ranked=len(sizes),
        rank_correlation=correlation,
        rank_interval=NONE if correlation is None else _rank_interval(correlation, len(sizes) / horizon),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The judged opinions whose stated confidence is from `low` to below `high` (the last band to 1).

    confidence: the mean that was stated.
    hit_rate: fraction of them that were right.
    """

    low: float
    high: float
    n: int
    confidence: float
    hit_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Stated confidence against what happened.

    n: judged opinions that stated a confidence.
    confidence: the mean that was stated.
    hit_rate: fraction of them that were right; the closer to `confidence`, the better calibrated.
    brier: mean squared distance of the confidence to what happened, 0 for certainty that is always right.
    bands: those with any opinion, from the least confident.
    """

    n: int
    confidence: float
    hit_rate: float
    brier: float
    bands: tuple[Band, ...]


def calibration(confidences: Floats, right: NDArray[np.bool_]) -> Calibration | None:
    """The calibration of opinions by their confidences, from 0 to 1, and whether they were right; None without any."""
    if not len(confidences):
        return None
    places = np.minimum((confidences * BANDS).astype(int), BANDS - 1)
    return Calibration(
        n=len(confidences),
        confidence=float(confidences.mean()),
        hit_rate=float(right.mean()),
        brier=float(((confidences - right) ** 2).mean()),
        bands=tuple(
            Band(
                low=place / BANDS,
                high=(place + 1) / BANDS,
                n=int((places == place).sum()),
                confidence=float(confidences[places == place].mean()),
                hit_rate=float(right[places == place].mean()),
            )
            for place in sorted({*places.tolist()})
        ),
    )


def rank_correlation(first: Floats, second: Floats) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; None where either side is all the same."""
    if len(first) < 3:
        return None
    ranks = [_ranks(first), _ranks(second)]
    if any(not one.std() for one in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Floats) -> Floats:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: Floats = (last - (counts - 1) / 2)[places]
    return mean


def _hit_interval(right: NDArray[np.bool_], sessions: NDArray[np.intp], horizon: int) -> Interval:
    if not len(right):
        return NONE
    _, groups = np.unique((sessions - sessions.min()) // horizon, return_inverse=True)
    return mean_interval(right.astype(float), groups)


def _rank_interval(correlation: float, independent: float) -> Interval:
    """Fisher's interval, with the variance of Bonett and Wright."""
    if independent < FEWEST_RANKED or abs(correlation) >= 1:
        return NONE
    half = 1.96 * math.sqrt((1 + correlation**2 / 2) / (independent - 3))
    return math.tanh(math.atanh(correlation) - half), math.tanh(math.atanh(correlation) + half)
