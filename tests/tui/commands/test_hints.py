"""Hints at the foot of a screen name keys that have something to act on, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tests.tui.conftest import opened, until
from tui.settings.keys import SCREENS
from tui.widgets.navigation_bars import Hints
from tui.widgets.newest_reading import is_reading
from tui.widgets.table import Table

NEEDS = {
    **dict.fromkeys(("why?", "< > event", "{ } session", ". play"), tuple(SCREENS)),
    **dict.fromkeys(("P pin", "F forget"), ()),  # test_memory_screen
    **dict.fromkeys(("space mark", "o resume"), ("lab",)),
    "v what the model saw": (),  # with the chart alone
    "enter trail": ("why",),
    "[ ] run": ("why",),
    "w group": ("desk",),
}
"""Hints of keys that need something to act on, and the screens whose keys they are."""


def hinted(pilot: Pilot[Any]) -> set[str]:
    """Those hints among them that a wide screen shows."""
    shown = str(pilot.app.screen_stack[0].query_one(Hints).render())
    return {hint for hint in NEEDS if hint in shown}


async def test_a_desk_that_never_ran_names_no_key_that_has_nothing_to_act_on(fresh: Path) -> None:
    async with opened((240, 40)) as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: bridge.snapshot().market is not None)
        for mode, (key, _, _) in SCREENS.items():
            await pilot.press(key)
            await until(pilot, lambda wanted=mode: pilot.app.current_mode == wanted)  # type: ignore[misc]
            await until(pilot, lambda: not is_reading(pilot.app))
            pilot.app.screen_stack[0].show_view(bridge.snapshot())  # type: ignore[attr-defined]
            assert "quit" in str(pilot.app.screen_stack[0].query_one(Hints).render()) and not hinted(pilot), mode


async def test_a_desk_that_has_run_names_them(desk: Path) -> None:
    past = {"< > event", "{ } session", ". play"}
    async with opened((240, 40)) as pilot:
        for mode in ("desk", "why", "book", "ops"):
            await pilot.press(SCREENS[mode][0])
            wanted = {hint for hint, screens in NEEDS.items() if mode in screens} - {"[ ] run", "w group"}
            await until(pilot, lambda: hinted(pilot) == wanted)  # noqa: B023
            tables = pilot.app.screen.query(Table)
            await until(pilot, lambda: all(table.filter_example for table in tables))  # noqa: B023
            assert all(table.filter_of(table.filter_example) for table in tables)  # each is one of its own table
        await pilot.press("1", "z")
        await until(pilot, lambda: hinted(pilot) == past)  # its bars are of today, its decisions of years ago
        await pilot.press("left_curly_bracket")
        await until(pilot, lambda: hinted(pilot) == past | {"why?", "v what the model saw"})


async def test_a_chosen_run_can_be_marked_and_gone_through(backtested: Path) -> None:
    async with opened((240, 40)) as pilot:
        await pilot.press("4")
        wanted = {"space mark", "why?", "< > event", "{ } session", ". play"}
        await until(pilot, lambda: hinted(pilot) == wanted)
