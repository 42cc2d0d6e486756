"""Several runs of one row made into one: the repeat with the median Sharpe, and what all of them spread over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from engine.conventions.metrics import Metrics
from engine.reports.comparison import Spread


def median_repeat(repeats: Sequence[Metrics], sharpe: str = "SR") -> int:
    """Which repeat stands for all: the one with the median Sharpe, which is also the one that holds every median where
    they fall together. Of an even number the lower of the middle two, of equal ones the first. An undefined Sharpe, of
    a run that never moved, ranks as zero. Source: InvestorBench §4.1 [I9]."""
    order = sorted(range(len(repeats)), key=lambda number: repeats[number].get(sharpe) or 0.0)
    middle = repeats[order[(len(order) - 1) // 2]].get(sharpe) or 0.0
    return next(n for n, metrics in enumerate(repeats) if (metrics.get(sharpe) or 0.0) == middle)


def spreads(repeats: Sequence[Metrics]) -> Mapping[str, Spread]:
    """Every metric's least, greatest and median value over the repeats in which it is defined."""
    found = {}
    for metric in repeats[0]:
        values = [value for repeat in repeats if (value := repeat.get(metric)) is not None]
        low, high, middle = (min(values), max(values), median(values)) if values else (None, None, None)
        found[metric] = Spread(low, high, middle, len(repeats))
    return found
