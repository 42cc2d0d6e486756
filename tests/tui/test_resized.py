"""Widgets that are displayed are told their size, whatever was asked about the screen meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from conftest import Running, shown, until

from tui.screens.desk import DeskScreen
from tui.widgets.agent_panes import DecisionSummary


@pytest.mark.parametrize("asked", [False, True])
async def test_a_widget_that_is_displayed_gets_its_size(
    running: Running, monkeypatch: pytest.MonkeyPatch, *, asked: bool
) -> None:
    async with running(size=(120, 40)) as pilot:
        screen = pilot.app.screen
        why, told = screen.query_one(DecisionSummary), list[int]()
        assert isinstance(screen, DeskScreen) and not why.display
        monkeypatch.setattr(DecisionSummary, "on_resize", lambda text: told.append(text.size.width), raising=False)
        monkeypatch.setattr(DeskScreen, "has_room_for", lambda screen, pane: True)
        screen.place_panes()
        while not screen._layout_required:  # it is asked for, and not made yet
            await asyncio.sleep(0)
        if asked:
            screen._compositor._full_map_invalidated = True  # as after scrolling
            assert why in screen._compositor.full_map
        await shown(pilot)
        await until(pilot, lambda: why.size.width in told)
