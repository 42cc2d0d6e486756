"""A lock that one process holds: the one that trades for a desk, the one that plays a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from engine.errors import TryAgainLater
from engine.settings import places

BRIEFLY = 10.0
"""Seconds for which a brief holder is waited for."""


@contextmanager
def one_process(path: Path, busy: str, *, brief: bool = False) -> Iterator[None]:
    """Hold the lock of a file until the block ends. Raises TryAgainLater at once where another process holds it; `busy`
    says what that one does. A `brief` holder is done in a moment, and waited for. Raises ConfigError where nothing may
    be written."""
    from filelock import FileLock, Timeout

    lock, short = FileLock(path), FileLock(path.with_suffix(".brief.lock"))
    with ExitStack() as held:
        try:
            places.make_folder(path.parent)
            if brief:
                held.enter_context(short.acquire(timeout=0))
            try:
                held.enter_context(lock.acquire(timeout=0))
            except Timeout:
                if brief:
                    raise
                with short.acquire(timeout=BRIEFLY):  # at once where the holder is not brief, or has gone by now
                    held.enter_context(lock.acquire(timeout=0))
        except Timeout:
            raise TryAgainLater(f"{busy} (lock {path}); try again when it is done") from None
        except OSError as error:
            raise places.unusable(path, error) from error
        yield
