"""How long Python lets one thread keep the interpreter, by what the loop of the app does."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any, cast

import pytest

from tui.screen_loop import AT_WORK, WAITING, give_way, run_app


class Measured:
    """An app that notes the interval while it works, while it waits, and after it gave way."""

    def __init__(self, fails: bool = False) -> None:
        self.found: dict[str, float] = {}
        self._fails = fails

    async def run_async(self) -> str:
        """Work, wait, give way, wait."""
        self.found["at work"] = sys.getswitchinterval()
        waits = asyncio.get_running_loop().create_future()

        def look() -> None:
            deadline = time.monotonic() + 60
            while round(seen := sys.getswitchinterval(), 4) != WAITING and time.monotonic() < deadline:
                time.sleep(0.01)
            self.found["waiting"] = seen
            waits.get_loop().call_soon_threadsafe(waits.set_result, None)

        threading.Thread(target=look).start()
        await waits
        self.found["at work again"] = sys.getswitchinterval()
        give_way()
        self.found["after it gave way"] = sys.getswitchinterval()
        await asyncio.sleep(0)
        self.found["in the next turn"] = sys.getswitchinterval()
        if self._fails:
            raise OSError("the terminal is gone")
        return "left"


def test_the_screen_keeps_the_interpreter_while_it_works_and_gives_it_away_while_it_waits() -> None:
    app, before = Measured(), sys.getswitchinterval()
    assert run_app(cast(Any, app)) == "left"
    assert sys.getswitchinterval() == before
    assert {name: round(seconds, 4) for name, seconds in app.found.items()} == {
        "at work": AT_WORK,
        "waiting": WAITING,
        "at work again": AT_WORK,
        "after it gave way": WAITING,
        "in the next turn": AT_WORK,
    }


@pytest.mark.parametrize("microseconds", [5_000, 200, 249, 1])
def test_the_interval_is_as_before_after_a_failure(microseconds: int) -> None:
    at_first = sys.getswitchinterval()
    try:
        sys.setswitchinterval((microseconds + 0.5) / 1e6)
        before = sys.getswitchinterval()
        with pytest.raises(OSError, match="the terminal is gone"):
            run_app(cast(Any, Measured(fails=True)))
        assert sys.getswitchinterval() == before
    finally:
        sys.setswitchinterval(at_first + 5e-7)
