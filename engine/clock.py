"""The only file that reads the wall clock; everything else is told the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engine.errors import InvariantBroken
from engine.ports import Clock


class LiveClock:
    """The time of day, UTC."""

    def now(self) -> datetime:
        """The current moment by the system's clock."""
        return datetime.now(UTC)


class BacktestClock:
    """A clock that stands still until it is moved, and only moves forward."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """The simulated moment."""
        return self._now

    def advance(self, to: datetime) -> None:
        """Moves to a later (or the same) moment; raises InvariantBroken for an earlier one."""
        if to < self._now:
            raise InvariantBroken(f"a clock cannot go back from {self._now} to {to}")
        self._now = to


class OffsetClock:
    """Another clock, put forward or back by a fixed length: a broker whose time is not this machine's."""

    def __init__(self, inner: Clock, offset: timedelta) -> None:
        self._inner = inner
        self._offset = offset

    def now(self) -> datetime:
        """The other clock's moment, moved."""
        return self._inner.now() + self._offset


class MovedClock:
    """Another clock, moved to the time that somebody else has, as often as one is told it."""

    def __init__(self, inner: Clock) -> None:
        self._inner = inner
        self._offset = timedelta()

    def now(self) -> datetime:
        """The moment that was told last, and what has passed since."""
        return self._inner.now() + self._offset

    def set(self, theirs: datetime) -> None:
        """It is so late at this moment."""
        self._offset = theirs - self._inner.now()
