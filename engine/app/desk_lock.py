"""One process at a time works on a desk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine import places
from engine.errors import TryAgainLater


@contextmanager
def desk_lock(desk: str) -> Iterator[None]:
    """Holds the desk's lock. Raises TryAgainLater at once where another process holds it."""
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
