"""The pace at which a record is played: a speed, and the steps that are due by it."""

from __future__ import annotations

SPEEDS = (1, 2, 5, 10, 30, 60)
"""Multiples of the pace at which a record is read."""


class Pace:
    """Play and stop. `speed` is a multiple of the usual steps a second, 0 while it stands; times are seconds of a
    monotonic clock."""

    def __init__(self) -> None:
        self.speed = 0
        self._since = 0.0

    def start(self, now: float, speed: int) -> None:
        """Play from `now`."""
        self.speed, self._since = speed, now

    def stop(self) -> None:
        """Stand still."""
        self.speed = 0

    def change(self, by: int) -> None:
        """Go over to a faster of the speeds, or a slower one."""
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, SPEEDS.index(self.speed) + by))]

    def due(self, now: float, usual: float = 1.0) -> int:
        """Return the steps that are due since they were last counted, with so many `usual` ones in a second; none while
        it stands."""
        rate = self.speed * usual
        steps = int((now - self._since) * rate)
        if steps:
            self._since += steps / rate
        return steps
