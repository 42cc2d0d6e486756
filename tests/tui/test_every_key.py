"""Every key of the table does something on every screen that names it, present or past: never a crash."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Running, until
from fake_desk import FakeDesk
from textual.pilot import Pilot
from textual.screen import ModalScreen

from tui.settings.keys import SCREENS, works
from tui.view.snapshot import circumstances
from tui.widgets.screen_bars import ErrorBar

ELSEWHERE = {
    *("app.ask_quit", "app.command_palette", "app.save_image", "app.suspend_process"),
    *("present", "run_cycle", "run_symbol"),
}
"""Actions that leave the screen, write a file or change the circumstances: each has a test of its own."""


async def run_all(pilot: Pilot[Any], mode: str) -> int:
    """Do what every key does that works on a screen, leaving whatever opens."""
    app = pilot.app
    here = circumstances(app.bridge.snapshot()) | {"decided", "record", "row", "stopped"}  # type: ignore[attr-defined]
    keys = [key for key in works(mode, here) if key.action not in ELSEWHERE]
    for key in keys:
        await app.run_action(key.action, app.screen_stack[0])
        await pilot.pause(0)
        while isinstance(app.screen, ModalScreen):
            app.pop_screen()
        assert app.is_running and app._exception is None, f"{key.id} on {mode}"
        shown = [app.screen_stack[0].query_one(ErrorBar).text, *(one.message for one in app._notifications)]
        assert not any("a bug" in text for text in shown), (key.id, [t for t in shown if "a bug" in t])
    return len(keys)


@pytest.mark.slow
@pytest.mark.parametrize("past", [pytest.param(False, id="present"), pytest.param(True, id="past")])
async def test_no_key_breaks_a_screen(running: Running, asking: FakeDesk, past: bool) -> None:
    async with running(desk=asking) as pilot:
        done = 0
        for mode, (key, _, _) in SCREENS.items():
            await pilot.press(key)
            await until(pilot, lambda wanted=mode: pilot.app.current_mode == wanted)  # type: ignore[misc]
            if past and pilot.app.bridge.snapshot().place is None:  # type: ignore[attr-defined]
                await pilot.press("1", "left_curly_bracket", key)
            done += await run_all(pilot, mode)
        assert done > 100


NOTHING = {
    "memory": "no memory is chosen",
    "backtest": "no run is chosen",
    "arena": "no arena is open",
    "ops": "no run yet",
    "book": "nothing is held",
}
"""Screens of a desk that has nothing yet, and what `d` says there."""


async def test_why_says_where_there_is_nothing_to_ask(running: Running) -> None:
    async with running() as pilot:
        for mode, words in NOTHING.items():
            await pilot.press(SCREENS[mode][0])
            await until(pilot, lambda wanted=mode: pilot.app.current_mode == wanted)  # type: ignore[misc]
            await pilot.press("d")
            assert any(words in one.message for one in pilot.app._notifications), mode
            assert len(pilot.app.screen_stack) == 1
