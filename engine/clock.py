"""Clocks. The only file that reads the wall clock; everything else is passed the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engine.errors import InvariantBroken
from engine.ports import Clock


class LiveClock:
    """The system's clock, UTC."""

    def now(self) -> datetime:
        """The present moment by the system's clock."""
        return datetime.now(UTC)


class BacktestClock:
    """A clock that is moved by its owner, and only forward."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """The simulated moment."""
        return self._now

    def advance(self, to: datetime) -> None:
        """Move to a later (or the same) moment; raises InvariantBroken for an earlier one."""
        if to < self._now:
            raise InvariantBroken(f"a clock cannot go back from {self._now} to {to}")
        self._now = to


class OffsetClock:
    """Another clock with a fixed offset: a broker whose time is not this machine's."""

    def __init__(self, inner: Clock, offset: timedelta = timedelta()) -> None:
        self._inner = inner
        self._offset = offset

    def now(self) -> datetime:
        """The other clock's moment plus the offset."""
        return self._inner.now() + self._offset


class SyncedClock(OffsetClock):
    """Another clock, synchronised with a broker's time whenever it is known."""

    def sync(self, theirs: datetime) -> None:
        """Set the present moment."""
        self._offset = theirs - self._inner.now()
