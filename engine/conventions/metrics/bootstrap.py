"""Confidence intervals by circular block bootstrap: daily returns are resampled in blocks, so that runs of days
survive.

Politis and Romano's circular scheme: blocks of n^(1/3) days (rounded) begin anywhere and wrap around the end; as many
as fill n days, the last one cut short. Only sums over blocks are needed, so thousands of resamples of a year cost
milliseconds. The seed is fixed: equal returns have equal intervals.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.conventions.metrics.track import Floats, deviation

RESAMPLES = 4000
FEWEST = 20
"""Number of days below which no interval is given."""
FEWEST_GROUPS = 8
"""The same for values in groups."""

Interval = tuple[float | None, float | None]
NONE: Interval = (None, None)


def sharpe_interval(excess: Floats, periods_per_year: int, seed: int = 0) -> Interval:
    """95 % interval of the annualized Sharpe ratio of daily excess returns; None where there are too few."""
    if len(excess) < FEWEST or not deviation(excess, 1):
        return NONE
    middle = float(excess.mean())
    centred = excess - middle
    starts = _starts(len(excess), seed)
    mean = _resampled(centred, starts) / len(excess)
    squares = _resampled(centred * centred, starts)
    variance = (squares - len(excess) * mean * mean) / (len(excess) - 1)
    known = variance > 0
    sharpe = (mean[known] + middle) / np.sqrt(variance[known]) * math.sqrt(periods_per_year)
    return _middle_95(sharpe)


def excess_interval(ours: Floats, theirs: Floats, seed: int = 0) -> Interval:
    """95 % interval of the difference of two total returns; both sides are resampled on the same days."""
    if len(ours) < FEWEST or (ours <= -1).any() or (theirs <= -1).any():
        return NONE
    starts = _starts(len(ours), seed)
    ours_grown = np.expm1(_resampled(np.log1p(ours), starts))
    return _middle_95(ours_grown - np.expm1(_resampled(np.log1p(theirs), starts)))


def mean_interval(values: Floats, groups: NDArray[np.intp], seed: int = 0) -> Interval:
    """95 % interval of a mean whose values come in groups (numbers from 0 on): whole groups are resampled, since what
    was decided on one session goes together. None below FEWEST_GROUPS of them."""
    count = int(groups.max()) + 1 if len(groups) else 0
    if count < FEWEST_GROUPS:
        return NONE
    sums, sizes = np.bincount(groups, values, count), np.bincount(groups, minlength=count)
    drawn = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    return _middle_95(np.asarray(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)))


def daily_mean_interval(values: Floats, seed: int = 0) -> Interval:
    """95 % interval of the mean of daily values, such as the differences of two runs' returns."""
    if len(values) < FEWEST:
        return NONE
    return _middle_95(_resampled(values, _starts(len(values), seed)) / len(values))


def _starts(days: int, seed: int) -> NDArray[np.intp]:
    """First days of the blocks of every resample: RESAMPLES x blocks."""
    blocks = math.ceil(days / _block(days))
    return np.random.default_rng(seed).integers(0, days, (RESAMPLES, blocks))


def _block(days: int) -> int:
    return max(1, round(math.cbrt(days)))


def _resampled(values: Floats, starts: NDArray[np.intp]) -> Floats:
    """The sum of each resample."""
    length = _block(len(values))
    last = len(values) - length * (starts.shape[1] - 1)
    sums = _block_sums(values, length)[starts[:, :-1]].sum(axis=1)
    return np.asarray(sums + _block_sums(values, last)[starts[:, -1]])


def _block_sums(values: Floats, length: int) -> Floats:
    """The sum of `length` values from each day on, around the end."""
    return np.asarray(sum(np.roll(values, -back) for back in range(length)))


def _middle_95(samples: Floats) -> Interval:
    if not len(samples):
        return NONE
    low, high = np.percentile(samples, [2.5, 97.5])
    return float(low), float(high)
