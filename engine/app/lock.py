"""A lock that one process holds: the one that trades for a desk, the one that plays a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine import places
from engine.errors import TryAgainLater


@contextmanager
def one_process(path: Path, busy: str) -> Iterator[None]:
    """Hold the lock of a file until the block ends. Raises TryAgainLater at once where another process holds it; `busy`
    says what that one does. Raises ConfigError where nothing may be written."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise TryAgainLater(f"{busy} (lock {path}); try again when it is done") from None
    except OSError as error:
        raise places.unusable(path, error) from error
    try:
        yield
    finally:
        lock.release()
