"""Axes of a plot: sessions and values in pixels from the image's lower left corner, and the labels of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from engine.domain.chart import Series

Point = tuple[float, float]

_MOST = 8
_MOST_LABELS = 11
"""Number of labels that fit side by side across a chart."""
_STEPS: tuple[Callable[[date], int], ...] = (
    lambda day: day.toordinal(),
    lambda day: (day.toordinal() - 1) // 7,
    lambda day: (day.toordinal() - 1) // 14,
    lambda day: day.year * 12 + day.month,
    lambda day: (day.year * 12 + day.month - 1) // 2,
    lambda day: (day.year * 12 + day.month - 1) // 3,
    lambda day: (day.year * 12 + day.month - 1) // 6,
    lambda day: day.year,
)
"""Periods from a day to a year; the first session of a period may carry a date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotArea:
    """A rectangle of pixels with `count` sessions across, by index and without gaps, and values from `low` up to
    `high`.

    left, right, bottom, top: pixels.
    count: sessions.
    low, high: values.
    """

    left: float
    right: float
    bottom: float
    top: float
    count: int
    low: float
    high: float

    @property
    def step(self) -> float:
        """Pixels from one session to the next."""
        return (self.right - self.left) / self.count

    def x(self, index: float) -> float:
        """Centre of a session."""
        return self.left + (index + 0.5) * self.step

    def y(self, value: float) -> float:
        """Height of a value."""
        return self.bottom + (value - self.low) / (self.high - self.low) * (self.top - self.bottom)

    def runs(self, values: Series) -> list[list[Point]]:
        """Points of a series, broken where it has no value."""
        runs: list[list[Point]] = [[]]
        for index, value in enumerate(values):
            if value is not None:
                runs[-1].append((self.x(index), self.y(value)))
            elif runs[-1]:
                runs.append([])
        return [run for run in runs if run]


def extent(*series: Sequence[float | None]) -> tuple[float, float]:
    """Smallest and largest value of all series; (0, 1) where there is none."""
    values = [value for one in series for value in one if value is not None]
    return (min(values), max(values)) if values else (0.0, 1.0)


def round_ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` round values between low and high: multiples of 1, 2, 2.5 or 5 times a power of ten."""
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / most))
    for factor in (1, 2, 2.5, 5, 10, 20):
        step = power * factor
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first + 1 <= most:
            return [index * step for index in range(first, last + 1)]
    return []


def date_ticks(sessions: Sequence[str]) -> list[tuple[int, str]]:
    """Indices of at most eight sessions with their labels.

    These are the first of each day, week, fortnight, month, two months, quarter, half-year or year, whichever is the
    finest that fits; evenly spaced over more than eight years. Sessions that are no ISO dates (a blind run masks them)
    are labelled evenly as they are.
    """
    try:
        days = [date.fromisoformat(session) for session in sessions]
    except ValueError:
        return _evenly(sessions)
    for period in _STEPS:
        starts = [index for index, day in enumerate(days) if index == 0 or period(day) != period(days[index - 1])]
        # The first session stands anywhere in its period: its label must not run into the next one.
        if len(starts) > 2 and starts[1] * _MOST_LABELS < len(days):
            starts = starts[1:]
        if len(starts) <= _MOST:
            return [(index, sessions[index]) for index in starts]
    return _evenly(sessions)


def _evenly(sessions: Sequence[str]) -> list[tuple[int, str]]:
    step = max(1, -(-len(sessions) // _MOST))
    return [(index, sessions[index]) for index in range(0, len(sessions), step)]
