"""Ctrl-C for work that can stop between two steps: the first requests a stop, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

STOPPING = b"\npaperdesk: stopping after this session; Ctrl-C again stops at once\n"


class Interruption:
    """A context in which the first Ctrl-C is a request, which `requested` tells, and the second raises
    KeyboardInterrupt. Outside the main thread, where no signal arrives, nothing is ever requested."""

    def __init__(self) -> None:
        self._pressed = False
        self._before: Any = None

    def requested(self) -> bool:
        """True once a stop was requested."""
        return self._pressed

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True
        # Not through sys.stderr: a handler may come in the middle of another write to it.
        os.write(2, STOPPING)
