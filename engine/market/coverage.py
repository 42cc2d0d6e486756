"""Coverage of a window by a symbol's bars: a gap is an error, a late start and an early end are values."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from engine.domain.market import PriceHistory
from engine.domain.text import first_few
from engine.errors import MalformedData, MissingData, StaleData, UsageError
from engine.market.symbol_days import DayState, days_without_bar
from engine.ports import Calendar


@dataclass(frozen=True, slots=True)
class Coverage:
    """First and last session of a window with a bar; none between them is missing."""

    first: date
    last: date
    starts_late: bool
    """True where the symbol begins to trade after the window's first session."""
    ends_early: bool
    """True where the symbol stops trading before the window's last session."""


def check_coverage(history: PriceHistory, calendar: Calendar, first: date, last: date) -> Coverage:
    """Compare the bars dated from first to last (both included) with the calendar's sessions.

    Raises UsageError for a window without sessions, MissingData for sessions without a bar before the last one and
    where all bars are later, StaleData where all bars are earlier, MalformedData for an impossible row and for a bar on
    a day without a session.
    """
    sessions = calendar.sessions(first, last)
    if not sessions:
        raise UsageError(f"{calendar.name} has no session from {first} to {last}; choose a longer window")
    window = history.slice(history.rows_through(date.fromordinal(first.toordinal() - 1)), history.rows_through(last))
    if window.sessions == array("q", [day.toordinal() for day in sessions]):
        return Coverage(sessions[0], sessions[-1], starts_late=False, ends_early=False)  # the quick way of sound data
    without = days_without_bar(history, calendar, sessions)
    impossible = next((day for day, state in without.items() if state is DayState.IMPOSSIBLE), None)
    if impossible is not None:
        raise MalformedData(history.impossible[impossible])
    missing = [day for day, state in without.items() if state is DayState.MISSING]
    if missing:
        raise MissingData(missing_text(history, calendar, missing))
    if not window:
        _raise_outside(history, first, last)
    bars = set(window.sessions)
    extra = sorted(bars - {day.toordinal() for day in sessions})
    if extra:
        days = [date.fromordinal(day) for day in extra]
        raise MalformedData(
            f"{history.symbol}: bars on {_listed(days)}, no session of {calendar.name}; remove those rows"
        )
    begins, ends = window.session(0), window.session(-1)
    return Coverage(begins, ends, begins > sessions[0], ends < sessions[-1])


def missing_text(history: PriceHistory, calendar: Calendar, missing: Sequence[date]) -> str:
    """The sentence on sessions without a bar between others."""
    return (
        f"{history.symbol}: no bar for {_listed(missing)} of {calendar.name}; import the missing rows (with volume 0 "
        "where nothing was traded), or choose a window without the gap"
    )


def _raise_outside(history: PriceHistory, first: date, last: date) -> None:
    if history and history.session(-1) < first:
        raise StaleData(f"{history.symbol}: its bars end on {history.session(-1)}, before {first}; fetch newer ones")
    begins = f"begin on {history.session(0)}" if history else "are none"
    raise MissingData(f"{history.symbol}: no bar from {first} to {last} (its bars {begins}); choose another window")


def _listed(days: Sequence[date]) -> str:
    noun = "session" if len(days) == 1 else f"{len(days)} sessions:"
    return f"{noun} {first_few(days)}"
