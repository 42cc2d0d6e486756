"""Ctrl-C for work that can stop between two steps: the first requests a stop, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = b"\npaperdesk: stopping after this session; Ctrl-C again stops at once\n"


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """A function that is true once Ctrl-C was pressed, while the block runs; the second Ctrl-C raises
    KeyboardInterrupt. Outside the main thread, where no signal arrives, nothing is ever pressed."""
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        # Not through sys.stderr: a handler may come in the middle of another write to it.
        os.write(2, STOPPING)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)
