"""The pace at which a record is played: steps a second, and the steps that are due."""

from __future__ import annotations

SPEEDS = (1, 2, 5, 10, 30, 60)
"""Steps in a second while it plays."""
USUAL = 5
"""The speed that play begins with."""


class Pace:
    """Play and stop. `speed` is in steps a second, 0 while it stands; times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self.speed = 0
        self._since = 0.0

    def start(self, now: float, speed: int = USUAL) -> None:
        """Play from `now`."""
        self.speed, self._since = speed, now

    def stop(self) -> None:
        """Stand still."""
        self.speed = 0

    def change(self, by: int) -> None:
        """Go over to a faster of the speeds, or a slower one."""
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, SPEEDS.index(self.speed) + by))]

    def due(self, now: float) -> int:
        """Return the steps that are due since they were last counted; none while it stands."""
        steps = int((now - self._since) * self.speed)
        if steps:
            self._since += steps / self.speed
        return steps
