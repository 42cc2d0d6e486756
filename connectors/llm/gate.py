"""The gate of an endpoint: all its callers wait, try again and give up together.

The vendors' packages retry nothing (max_retries 0): each of their calls would wait for itself, in silence, and one
reply that asks to wait would slow nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from engine.domain.model_call import FailureKind, ModelFailure

T = TypeVar("T")

PACE = 0.5
"""Seconds before a first retry; each further one waits twice as long."""
LONGEST_WAIT = 30.0
"""Longest wait in seconds that no endpoint has asked for."""
BREAKS_AT = 5
"""Number of equal failures in a row after which the endpoint is asked nothing more."""
_RETRIED = frozenset({FailureKind.UNAVAILABLE, FailureKind.TIMED_OUT, FailureKind.RATE_LIMITED})


class CallFailed(Exception):
    """A call to a vendor that failed as `failure` says; `retry_after` are the seconds that the endpoint asked to wait,
    None where it asked for nothing."""

    def __init__(self, failure: ModelFailure, retry_after: float | None = None) -> None:
        super().__init__(failure.detail)
        self.failure = failure
        self.retry_after = retry_after


class Gate:
    """The way of all calls to one endpoint, within one event loop.

    After a failure that may pass, nobody asks before a wait is over, and then one caller at a time until an answer
    comes. Calls that were under way together count as one failure: a moment's trouble is no series.
    """

    def __init__(self) -> None:
        """Open, as long as nothing has failed."""
        self._alone = asyncio.Lock()
        self._last: ModelFailure | None = None
        self._failed_at = 0.0
        self._opens_at = 0.0
        self._waits = 0
        self._in_a_row = 0

    async def call(self, ask: Callable[[float], Awaitable[T]], deadline: float) -> T:
        """The result of `ask`, which gets the seconds that are left of the deadline, and is asked again while its
        failures may pass. Raises CallFailed: for any other failure, where the next attempt would come too late, and at
        once while the endpoint is given up."""
        end = _now() + deadline
        while True:
            try:
                return await self._attempt(ask, end)
            except _Again:
                continue

    async def _attempt(self, ask: Callable[[float], Awaitable[T]], end: float) -> T:
        trouble = self._last
        if trouble is None:
            return await self._asked(ask, end)
        try:
            async with asyncio.timeout_at(end):
                await self._alone.acquire()
        except TimeoutError:  # others tried all the time
            raise CallFailed(trouble) from None
        try:
            await self._opened(end)
            if self._last is not None:
                return await self._asked(ask, end)
        finally:
            self._alone.release()
        return await self._asked(ask, end)

    async def _opened(self, end: float) -> None:
        """Wait until the endpoint may be asked. Raises CallFailed where that is too late, or it is given up."""
        if self._last is None:
            return
        if self._in_a_row >= BREAKS_AT:
            detail = f"{self._last.detail}; {self._in_a_row} times in a row, nothing more is asked"
            raise CallFailed(replace(self._last, detail=detail))
        if self._opens_at >= end:
            raise CallFailed(self._last)
        await asyncio.sleep(self._opens_at - _now())

    async def _asked(self, ask: Callable[[float], Awaitable[T]], end: float) -> T:
        began = _now()
        try:
            result = await ask(end - began)
        except CallFailed as error:
            if error.failure.kind in _RETRIED:
                self._count(error, began)
                raise _Again from None
            self._recovered()
            raise
        self._recovered()
        return result

    def _recovered(self) -> None:
        self._last, self._waits, self._in_a_row = None, 0, 0

    def _count(self, error: CallFailed, began: float) -> None:
        """Count a failure. One that the endpoint has set a time for does not count towards giving it up."""
        now, asked_to_wait = _now(), error.retry_after
        if self._last is None or began >= self._failed_at:
            equal = self._last is not None and self._last.kind is error.failure.kind
            self._in_a_row = (self._in_a_row if equal else 0) + (asked_to_wait is None)
            self._waits += 1
            self._failed_at = now
            self._opens_at = now + min(PACE * 2 ** (self._waits - 1), LONGEST_WAIT)
        self._last = error.failure
        self._opens_at = max(self._opens_at, now + (asked_to_wait or 0.0))


class _Again(Exception):
    """An attempt that failed as the gate remembers, and may be made again."""


def _now() -> float:
    return asyncio.get_running_loop().time()
