"""The number of calls that an endpoint takes at once, found out while it is asked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_SLOWER = 1.5
"""Ratio of a round's latencies to the usual ones from which calls wait for each other at the endpoint."""
_NEW = 0.1
"""Weight of a new latency in the usual one; those of a round that was slower do not count."""


class Slots:
    """At most `most` calls at once, within one event loop: one more after each round of answers that used them all,
    half as many after a refusal for too many requests, or where answers take longer than they used to."""

    def __init__(self, most: int, begin: int | None = None) -> None:
        """Begin with `most` slots, or with fewer; `limit` is their number by now."""
        self._most = most
        self.limit = most if begin is None else min(begin, most)
        self._used = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._usual: dict[str, float] = {}
        self._round: list[tuple[str, float]] = []
        self._all_used = False
        self._halved_at = float("-inf")

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot; it is released at the end of the block."""
        while self._used >= self.limit:
            free = asyncio.get_running_loop().create_future()
            self._waiting.append(free)
            try:
                await free
            except asyncio.CancelledError:
                if free in self._waiting:
                    self._waiting.remove(free)
                else:
                    self._wake()
                raise
        self._used += 1
        try:
            yield
        finally:
            self._used -= 1
            self._wake()

    def answered(self, kind: str, began: float, ended: float) -> None:
        """An answer to a question of a kind, in seconds of the loop's clock. As many answers as there are slots are a
        round."""
        self._round.append((kind, max(ended - began, 1e-6)))
        self._all_used |= self._used >= self.limit
        if len(self._round) < self.limit:
            return
        took = [seconds / self._usual.setdefault(asked, seconds) for asked, seconds in self._round]
        if sum(took) > _SLOWER * len(took) and self.limit > 1:
            self._halve(began, ended)
        else:
            for asked, seconds in self._round:
                self._usual[asked] += _NEW * (seconds - self._usual[asked])
            self.limit = min(self._most, self.limit + self._all_used)
            self._wake()
        self._round, self._all_used = [], False

    def refused(self, began: float, ended: float) -> None:
        """A refusal for too many requests."""
        self._halve(began, ended)

    def _halve(self, began: float, now: float) -> None:
        """Halve the slots; calls that were under way together halve them once."""
        if began >= self._halved_at:
            self.limit, self._halved_at = max(1, self.limit // 2), now

    def _wake(self) -> None:
        free = self.limit - self._used
        while free > 0 and self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                free -= 1
