"""Dialogs with a field to type into, where the terminal has few rows: the field can be seen, and so can a complaint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from tests.tui.conftest import Running, until
from tui.screens.ask import AskScreen
from tui.screens.confirm import ConfirmScreen
from tui.screens.order_ticket import OrderTicket
from tui.screens.set_up import SetUpScreen
from tui.screens.symbol_search import SymbolSearchScreen
from tui.set_up.first_run import NewAccount


def wholly_seen(pilot: Pilot[Any], widget: Any) -> bool:
    """True where all of a widget is on the screen, over whatever holds it."""
    placed = pilot.app.screen._compositor.visible_widgets.get(widget)
    return placed is not None and bool(placed[0].area) and placed[0] == placed[0].intersection(placed[1])


@pytest.mark.parametrize("size", [(30, 8), (40, 12)])
async def test_the_field_that_is_typed_into_is_seen(running: Running, size: tuple[int, int], tmp_path: Path) -> None:
    async with running(size) as pilot:
        app = pilot.app
        for key, dialog in (("o", OrderTicket), ("S", SymbolSearchScreen), ("slash", AskScreen)):
            await pilot.press(key)
            await until(pilot, lambda dialog=dialog: isinstance(app.screen, dialog))  # type: ignore[misc]
            await pilot.press("x")
            await until(pilot, lambda: wholly_seen(pilot, app.focused))
            assert isinstance(app.focused, Input) and "x" in app.focused.value
            await pilot.press("escape")
        app.push_screen(SetUpScreen(NewAccount(tmp_path / "config.toml")))
        for text in ("first", "key", "secret", "AAA", "no model"):
            await until(
                pilot, lambda: bool(app.screen.query(Input)) and wholly_seen(pilot, app.screen.query_one(Input))
            )
            assert app.focused is app.screen.query_one(Input)
            app.screen.query_one(Input).value = text
            await pilot.press("enter")
        complaint = app.screen.query_one("#complaint", Static)
        await until(pilot, lambda: "model" in str(complaint.render()))
        await until(pilot, lambda: complaint in app.screen._compositor.visible_widgets)
        assert wholly_seen(pilot, app.focused)


async def test_a_message_does_not_lie_over_the_answers_of_a_dialog(running: Running) -> None:
    async with running((30, 8)) as pilot:
        pilot.app.notify("a message of several lines, which are as wide as half of the terminal", timeout=600)
        await pilot.press("K")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await until(pilot, lambda: not pilot.app._notifications)
        drawn = "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())
        assert "y halt   esc cancel" in drawn
