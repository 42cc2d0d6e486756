"""Clocks that stand still."""

from __future__ import annotations

from datetime import UTC, date, datetime

from engine.clock import BacktestClock

NOON = BacktestClock(datetime(2025, 7, 1, 12, tzinfo=UTC))
"""After all sessions that these tests run over."""


def evening(day: date, hour: int = 21, minute: int = 30) -> BacktestClock:
    """Half an hour after a session's close in winter, or another moment (UTC) of the day."""
    return BacktestClock(datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC))
