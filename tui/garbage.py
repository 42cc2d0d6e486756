"""Short collections of garbage in the app: no thread answers while Python looks through all objects of the process.

What survives a collection that took long is set aside and not looked through again: modules, the market, screens. An
object that is set aside is freed as any other once nothing refers to it; only a cycle of them stays until the end.
"""

from __future__ import annotations

import gc
import time

LONG = 0.015
"""Seconds of processor time of a collection after which its survivors are set aside."""
THRESHOLDS = (700, 5, 2)
"""Python's own, but for the last: all objects are looked through three times as often, while they are few."""


def keep_collections_short() -> None:
    """Set aside what there is, and from now on what survives a long collection."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    began = 0.0

    def collected(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if info["generation"] < 2:
            return
        if phase == "start":
            began = time.thread_time()
        elif time.thread_time() - began > LONG:
            gc.freeze()

    gc.callbacks.append(collected)
