"""The beginnings of questions that a service has in its cache."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.domain.model_call import CACHED_FROM, beginning

_KEPT = 240.0
"""Seconds for which a service keeps a beginning that is not read, a little less than it says."""


def prefix_key(system: str, model: str = "") -> str | None:
    """A name for the beginning of a model's questions; None for one that no service caches."""
    stable = beginning(system)
    return hashlib.sha256(f"{model}\n{stable}".encode()).hexdigest()[:32] if len(stable) >= CACHED_FROM else None


class WarmPrefixes:
    """Beginnings by model, within one event loop. The first question with a new one goes alone, so that those behind it
    find it in the cache: asked together, each would pay for it."""

    def __init__(self) -> None:
        self._read: dict[str, float] = {}
        self._first: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def after_the_first(self, prefix: str | None) -> AsyncIterator[None]:
        """Wait while the first question with this beginning is asked; the block asks the next one."""
        clock = asyncio.get_running_loop().time
        if prefix is not None and not self._is_warm(prefix, clock()):
            async with self._first.setdefault(prefix, asyncio.Lock()):
                if not self._is_warm(prefix, clock()):
                    yield
                    self._read[prefix] = clock()
                    return
        yield
        if prefix is not None:
            self._read[prefix] = clock()

    def _is_warm(self, prefix: str, now: float) -> bool:
        return now - self._read.get(prefix, float("-inf")) < _KEPT
