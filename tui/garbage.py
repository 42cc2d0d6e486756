"""Short collections of garbage in the app: no thread answers while Python looks through all objects of the process.

What survives a collection that took long is set aside and not looked through again: modules, the market, screens. An
object that is set aside is freed as any other once nothing refers to it, but not a cycle of them: these are collected
once nobody has pressed a key for a while. The C library gives what is free back to the system then: each thread that
reads the journal or the market has memory of its own, and what it freed would stay with the process day after day.
"""

from __future__ import annotations

import gc
import os
import time
from contextlib import suppress

LONG = 0.005
"""Seconds of processor time of a collection after which its survivors are set aside."""
THRESHOLDS = (700, 5, 1_000_000)
"""Python's own for new objects; those that survived once are looked through more often, while they are few. Those that
survived twice are looked through at moments of this module's choice: Python would do it while a key is answered, for
that makes many objects."""
DUE, OVERDUE = 2, 20
"""Collections after which the objects that survived two of them are looked through, between two keys; and after which
they are set aside, because one key follows another or there are many of them."""
BETWEEN_KEYS = 0.5
"""Seconds without a key after which another is not expected at once."""
QUIET = 60.0
"""Seconds without a key after which what was set aside is looked through once."""


class Collections:
    """The collections of a process. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._began = self._last_key = 0.0
        self._aside = False
        self._held: object = None

    def begin(self) -> None:
        """Collect from now on, but nothing of what there is."""
        gc.freeze()
        gc.enable()

    def key_pressed(self, now: float) -> None:
        """Note that somebody is there."""
        self._last_key = now

    def tick(self, now: float, held: object = None) -> None:
        """Look through what survived, between two keys, and through everything where somebody was there and is quiet,
        and something was set aside since. Where `held`, which stands for what the app keeps until its end, is another
        than before, set all of it aside at once: the next collection would look through it, and a key may come by
        then."""
        if held != self._held:
            self._held = held
            self._set_aside()
        self._last_key = self._last_key or now  # who has just opened it is there
        survived = gc.get_count()[2]
        if survived > OVERDUE:
            self._set_aside()
        elif survived > DUE and now - self._last_key > BETWEEN_KEYS:
            gc.collect()
        if self._aside and now - self._last_key > QUIET:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            _give_back()
            self._aside = False

    def _set_aside(self) -> None:
        gc.freeze()
        self._aside = True

    def collected(self, phase: str, info: dict[str, int]) -> None:
        """Be told of the beginning and the end of a collection."""
        if info["generation"] < 2:
            return
        if phase == "start":
            self._began = time.thread_time()
        elif time.thread_time() - self._began > LONG:
            self._set_aside()


def _give_back() -> None:
    """Give memory that is free back to the system, where the C library can (glibc)."""
    import ctypes

    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def keep_collections_short() -> Collections:
    """Collect nothing until that is begun, with the first paint: modules and screens stay. Survivors of a long
    collection are set aside."""
    # Arrow's own allocator keeps what a thread has freed; it is loaded later, with the memories.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    collections = Collections()
    gc.disable()
    gc.set_threshold(*THRESHOLDS)
    gc.callbacks.append(collections.collected)
    return collections
