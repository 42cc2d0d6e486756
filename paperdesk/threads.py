"""Work in a thread of its own: a running event loop does not mind, and Ctrl-C ends it between two steps."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_STOP: ContextVar[threading.Event] = ContextVar("stop")


def stop_requested() -> bool:
    """True once the caller of the work at hand was interrupted, or cancelled."""
    return _STOP.get().is_set()


def blocking(function: Callable[P, T]) -> Callable[P, T]:
    """The function, its work done in a thread that is waited for. At Ctrl-C it is told to stop and waited for again; at
    a second one it is left to itself."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        stop = threading.Event()
        future = _begun(stop, partial(function, *args, **kwargs))
        try:
            return future.result()
        except KeyboardInterrupt:
            stop.set()
            return future.result()

    return call


def awaited(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """The function, to be awaited. A task that is cancelled ends once the work has stopped."""

    @wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        stop = threading.Event()
        future = asyncio.wrap_future(_begun(stop, partial(function, *args, **kwargs)))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([future])
            future.exception()  # heard: what ended is what was told to
            raise

    return call


def _begun(stop: threading.Event, work: Callable[[], T]) -> Future[T]:
    context = copy_context()  # a notebook finds the cell that is printed to by it
    context.run(_STOP.set, stop)
    executor = ThreadPoolExecutor(1, thread_name_prefix="paperdesk")
    future = executor.submit(context.run, work)
    executor.shutdown(wait=False)
    return future
