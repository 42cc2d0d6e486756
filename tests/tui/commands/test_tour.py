"""The tour: six steps over the real screens, forth and back by key, which end at the trail of a decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_desk import FakeDesk
from textual.pilot import Pilot

from tests.tui.conftest import Running, opened, until
from tui.screens.tour import STEPS, TourScreen
from tui.screens.trail import TrailScreen
from tui.widgets.navigation_bars import TimeBar
from tui.widgets.screen_bars import EventLog


async def begin(pilot: Pilot[Any]) -> None:
    """Chooses the tour in the palette."""
    commands = {one.title: one.callback for one in pilot.app.get_system_commands(pilot.app.screen)}
    commands["Tour"]()
    await at(pilot, 1)


async def at(pilot: Pilot[Any], number: int) -> TourScreen:
    """Waits for a step, and checks that what it is about has the focus, with its whole text on the screen."""

    def there() -> bool:
        screen = pilot.app.screen
        here = isinstance(screen, TourScreen) and screen.number == number - 1
        return here and any(box.region.area > 0 for box in screen.query("Vertical"))  # none before it is composed

    await until(pilot, there)
    screen, step = pilot.app.screen, STEPS[number - 1]
    assert isinstance(screen, TourScreen) and pilot.app.current_mode == step.mode
    box = screen.query_one("Vertical")
    assert screen.region.contains_region(box.region), "the box is on the screen"
    text = box.query_one("#text")
    assert text.region.height == text.get_content_height(text.size, screen.size, text.region.width), "nothing is cut"
    if step.pane:
        pane = pilot.app.screen_stack[0].query_one(f"#{step.pane}")
        assert pane.display and pane.has_pseudo_class("focus-within"), "the pane is focused"
    return screen


@pytest.mark.parametrize(
    "size", [pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40", marks=pytest.mark.slow)]
)
async def test_six_steps_lead_to_a_decisions_trail(desk: Path, size: tuple[int, int]) -> None:
    async with opened(size) as pilot:
        view = pilot.app.bridge.snapshot  # type: ignore[attr-defined]
        await begin(pilot)
        for number in range(2, 5):
            await pilot.press("enter")
            await at(pilot, number)
            assert view().place is None
        await pilot.press("enter")
        await at(pilot, 5)
        await until(pilot, lambda: view().place is not None and view().place.number < view().place.count)
        assert pilot.app.screen_stack[0].query_one(TimeBar).display
        await pilot.press("p")
        await at(pilot, 4)
        assert view().place is None, "a step back is in the present again"
        await pilot.press("enter")
        await at(pilot, 5)
        await pilot.press("enter")
        await at(pilot, 6)
        trail = pilot.app.screen_stack[-2]
        assert isinstance(trail, TrailScreen)
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.screen is trail)
        await until(pilot, lambda: "ORVL" in trail.text_to_copy())
        await pilot.press("escape")
        assert len(pilot.app.screen_stack) == 1 and view().place is None


async def test_it_is_left_at_any_step_without_a_trace(desk: Path) -> None:
    async with opened() as pilot:
        await begin(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await begin(pilot)
        for number in range(2, 6):
            await pilot.press("enter")
            await at(pilot, number)
        await pilot.press("q")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        assert pilot.app.bridge.snapshot().place is None and pilot.app.is_running  # type: ignore[attr-defined]


async def test_a_fresh_demo_desk_offers_it_once_in_the_log(running: Running, tmp_path: Path) -> None:
    offers = []
    for _ in range(2):
        desk = FakeDesk(tmp_path)
        desk.is_demo = True
        async with running(desk=desk) as pilot:
            offers.append("^p, Tour" in pilot.app.screen.query_one(EventLog).as_text())
            assert len(pilot.app.screen_stack) == 1, "it is not in the way"
    assert offers == [True, False]


def test_its_texts_are_short() -> None:
    assert len(STEPS) == 6 and STEPS[-1].does == "trail"
    assert all(len(step.text) <= 56 * 4 and len(step.title) < 20 for step in STEPS)
