"""The state of a symbol's data on a day: one judgement, on which imports, fetches, backtests, audits and runs act."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from itertools import pairwise

from engine.domain.market import PriceHistory, from_nano
from engine.errors import MalformedData
from engine.ports import Calendar

_NOISE = 100_000
"""The part of a price, one in so many, within which a price outside of its bar's range is rounding."""
_SPARSE = 8
"""Bars from which on it can be told that a file has none of each day."""
_APART = 4
"""Days between two bars of consecutive sessions, at most, over a long weekend."""


class ImpossibleRows(MalformedData):
    """Rows of a symbol's bars cannot be; `history` has the others, and theirs as its `impossible`."""

    def __init__(self, history: PriceHistory) -> None:
        first, *others = history.impossible.items()
        more = f" (and those of {', '.join(str(day) for day, _ in others)})" if others else ""
        super().__init__(first[1] + more)
        self.history = history


class DayState(StrEnum):
    """The state of a symbol's data on a session of its calendar."""

    USABLE = "usable"
    UNTRADED = "untraded"
    """Its volume is zero in a series that has volumes: there is no price to trade at."""
    LATE = "late"
    """The bars end before it."""
    MISSING = "missing"
    """No bar, and a later one."""
    IMPOSSIBLE = "impossible"
    """A row that no market can have made."""


def day_state(history: PriceHistory, calendar: Calendar, session: date) -> DayState | None:
    """The state of a symbol's data on a day; None where nothing is expected of it: the calendar has no such session, or
    it is before the first bar."""
    if session in history.impossible:
        return DayState.IMPOSSIBLE
    row = history.index(session)
    if row is not None:
        return DayState.UNTRADED if is_untraded(history, row) else DayState.USABLE
    rows = history.rows_through(session)
    if not calendar.sessions(session, session) or (len(history) and not rows):
        return None
    return DayState.LATE if rows == len(history) else DayState.MISSING


def days_without_bar(history: PriceHistory, calendar: Calendar, sessions: Sequence[date]) -> dict[date, DayState]:
    """Those of some sessions that are late, missing or impossible, in their order."""
    bars = set(history.sessions)
    open_days = (day for day in sessions if day.toordinal() not in bars)
    states = ((day, day_state(history, calendar, day)) for day in open_days)
    return {day: state for day, state in states if state is not None}


def is_untraded(history: PriceHistory, row: int) -> bool:
    """True where nothing was traded in a bar: its volume is zero, and others of the series have one."""
    return history.volume[row] == 0 and any(volume > 0 for volume in history.volume)


def is_sparse(history: PriceHistory) -> bool:
    """True for weekly or monthly bars: no two of them, of eight or more, lie within four days."""
    days = history.sessions
    return len(days) >= _SPARSE and all(after - day > _APART for day, after in pairwise(days))


def is_noise(distance: int, price: int) -> bool:
    """True where a distance of prices is less than a hundred-thousandth of a price, any unit."""
    return distance * _NOISE < price


def bar_fault(opened: int, high: int, low: int, close: int) -> str:
    """The rule that the prices of a bar (nano-units, above zero) break by more than rounding; empty for none."""
    if not is_noise(low - high, low):
        return f"high {from_nano(high):f} is below low {from_nano(low):f}"
    for name, price in (("open", opened), ("close", close)):
        if not is_noise(max(price - high, low - price), price):
            return f"{name} {from_nano(price):f} is not between low {from_nano(low):f} and high {from_nano(high):f}"
    return ""


def without_noise(opened: int, high: int, low: int, close: int) -> tuple[int, int, int, int]:
    """The open, high, low and close of a bar, those outside of its range by rounding put onto its bounds."""
    low, high = min(low, high), max(low, high)
    return min(max(opened, low), high), high, low, min(max(close, low), high)
