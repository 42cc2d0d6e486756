"""The loop of the app's own thread, which goes before the other threads of the process while it has work."""

from __future__ import annotations

import asyncio
import selectors
import sys
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from textual.app import App

Result = TypeVar("Result")

WAITING, AT_WORK = 0.0002, 0.006
"""Seconds that Python lets one thread keep the interpreter while another wants it: while the screen waits for a key,
which passes about seven times through the loop and may wait for the interpreter each time, and while it paints, which
takes as long without others. The usual 5 ms, whoever is at work, would be felt while a cycle runs."""


class _ScreenSelector(selectors.DefaultSelector):
    """Waits for keys, and says to the interpreter when it does."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        sys.setswitchinterval(WAITING)
        try:
            return super().select(timeout)
        finally:
            sys.setswitchinterval(AT_WORK)


def give_way() -> None:
    """Let another thread go first, and the others as soon as they want to, until the loop has waited again."""
    sys.setswitchinterval(WAITING)
    time.sleep(0)


def run_app(app: App[Result]) -> Result | None:
    """Run an app until its end; return its result."""
    before = sys.getswitchinterval()
    try:
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(_ScreenSelector())) as runner:
            return runner.run(app.run_async())
    finally:
        sys.setswitchinterval(before + 5e-7)  # setting one cuts off fractions of a microsecond
