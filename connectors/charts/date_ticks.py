"""Choice of the sessions of a chart that carry a date label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date

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
