"""The app, watched from inside for the benches: `python -m tests.bench.observed_app REPORT [ARGUMENTS of paperdesk]`.

REPORT is written when it ends, as JSON: the modules that were imported and when (seconds by the clock of
`time.perf_counter`, which all processes share), and every callback of the screen's loop that took SLOW or longer.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

SLOW = 0.02
"""Seconds from which a callback is written down."""
SAMPLES = 0.005
"""Seconds between two looks at what a callback is at work on."""


class Watch:
    """Measures every callback that the main thread's loop runs; `slow` has those of SLOW seconds and more.

    A callback takes time (`seconds`) and processor time of its thread (`processor`): they differ where other threads
    and processes want the same cores.
    """

    def __init__(self) -> None:
        self.slow: list[dict[str, Any]] = []
        self.collections: list[dict[str, Any]] = []
        self._collecting = 0.0
        self.callbacks = 0
        self._main = threading.main_thread().ident
        self._began = 0.0
        self._seen: list[str] = []

    def begin(self) -> None:
        """Measure from now on."""
        inner = asyncio.events.Handle._run
        watch = self

        def run(handle: asyncio.Handle) -> None:
            if threading.get_ident() != watch._main:
                inner(handle)
                return
            watch._seen = []
            watch._began, used = time.perf_counter(), time.thread_time()
            try:
                inner(handle)
            finally:
                took, worked = time.perf_counter() - watch._began, time.thread_time() - used
                began, watch._began = watch._began, 0.0
                watch.callbacks += 1
                if took >= SLOW:
                    watch.slow.append({"at": began, "seconds": took, "processor": worked, "in": watch._seen})

        def collected(phase: str, info: dict[str, int]) -> None:
            if phase == "start":
                watch._collecting = time.perf_counter()
            elif (took := time.perf_counter() - watch._collecting) >= SLOW:
                name = threading.current_thread().name
                self.collections.append({"at": watch._collecting, "seconds": took, "thread": name} | info)

        gc.callbacks.append(collected)
        asyncio.events.Handle._run = run  # type: ignore[method-assign]
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        """Note where a callback is that takes long: the innermost lines of the project and of what it calls."""
        while True:
            time.sleep(SAMPLES)
            if self._began and time.perf_counter() - self._began > SLOW and self._main is not None:
                frame, lines = sys._current_frames().get(self._main), list[str]()
                while frame is not None and len(lines) < 12:
                    lines.append(f"{Path(frame.f_code.co_filename).stem}:{frame.f_code.co_name}:{frame.f_lineno}")
                    frame = frame.f_back
                self._seen.append(" < ".join(lines))


def main(report: str, arguments: list[str]) -> None:
    """Run the program and write the report."""
    watch = Watch()
    watch.begin()
    from tui.cli import main as paperdesk

    try:
        paperdesk(arguments)
    finally:
        found = {"callbacks": watch.callbacks, "slow": watch.slow, "collections": watch.collections}
        Path(report).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
