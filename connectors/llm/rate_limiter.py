"""Limits of concurrency and requests per minute for the calls to one endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter


class RateLimiter:
    """At most `concurrency` calls at once, and at most so many requests a minute (None: no limit).

    One limiter per endpoint, shared by the models behind it, within one event loop.
    """

    def __init__(self, concurrency: int = 4, requests_per_minute: int | None = None) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._requests_per_minute = requests_per_minute
        self._requests: AsyncLimiter | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot and for the rate limit; the slot is released at the end of the block."""
        if self._requests is None and self._requests_per_minute is not None:
            # aiolimiter is imported with the first call, so that commands without calls do not load it.
            from aiolimiter import AsyncLimiter

            self._requests = AsyncLimiter(self._requests_per_minute, 60)
        async with self._slots:
            if self._requests is not None:
                await self._requests.acquire()
            yield
