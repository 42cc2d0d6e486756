"""The lock of a desk: one process at a time runs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine import places
from engine.errors import TryAgainLater


@contextmanager
def desk_lock(desk: str) -> Iterator[None]:
    """Hold the desk's lock until the block ends. Raises TryAgainLater at once where another process holds it."""
    from filelock import FileLock, Timeout

    path = places.lock_file(desk)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise TryAgainLater(
            f"another run of the desk {desk} is at work (lock {path}); try again when it is done"
        ) from None
    try:
        yield
    finally:
        lock.release()
