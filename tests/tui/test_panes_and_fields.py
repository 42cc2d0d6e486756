"""A pane stands alone and goes back to its place on every screen; quick tabs go through the form field by field."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Running, shown, until
from fake_desk import FakeDesk
from textual.events import AppBlur, AppFocus, Key
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widgets import Input

from tests.long_cases import first_of
from tui.settings.keys import KEYS, SCREENS
from tui.widgets.form_pane import FormPane
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Cell, Column, Row, Table

ZOOM = next(key for key in KEYS if key.id == "pane.zoom")
# The Desk's key is of its chart.
OTHERS = [mode for mode in ZOOM.screens if mode in SCREENS and mode not in ("desk", "book", "lab")]
AROUND = 4
"""Rows that stay around a pane that stands alone: the events of the Desk, the progress of a backtest, the schedule."""


def regions(pilot: Pilot[Any]) -> dict[str | None, Region]:
    """The places of the panes that the screen shows."""
    return {pane.id: pane.region for pane in pilot.app.screen.query(".pane") if pane.region}


async def zoom(pilot: Pilot[Any]) -> None:
    """Press the key; in a field, which would take it for a letter, choose its entry of the palette."""
    if isinstance(pilot.app.focused, Input):
        entries = {one.title: one.callback for one in pilot.app.get_system_commands(pilot.app.screen)}
        entries[ZOOM.meaning]()
    else:
        await pilot.press(ZOOM.keys)


async def letters(pilot: Pilot[Any]) -> list[tuple[str, str]]:
    """The letters that focus a pane, each with the pane's name."""
    await pilot.press("ctrl+o")
    labels = [str(label.render()).split() for label in pilot.app.screen.query(".jump")]
    await pilot.press("escape")
    return [(letter, name) for letter, name in labels]


async def alone(pilot: Pilot[Any], name: str) -> None:
    """Wait until a pane is the only one, and as large as the body of the screen."""
    body = pilot.app.screen.query_one("#body").size

    def fills() -> bool:
        shown = regions(pilot)
        return set(shown) == {name} and shown[name].width == body.width and shown[name].height >= body.height - AROUND

    await until(pilot, fills)


@pytest.mark.parametrize("size", first_of(1, [((120, 40),), ((80, 24),)]))
@pytest.mark.parametrize("mode", first_of(2, ("book", "lab", *OTHERS)))
async def test_every_pane_stands_alone_on_the_whole_screen_and_goes_back_to_its_place(
    running: Running, asking: FakeDesk, mode: str, size: tuple[int, int]
) -> None:
    async with running(size, desk=asking) as pilot:
        await pilot.press(SCREENS[mode][0])
        await until(pilot, lambda: pilot.app.current_mode == mode)
        await shown(pilot)
        before, focusable = regions(pilot), await letters(pilot)
        for letter, name in focusable:
            await pilot.press("ctrl+o", letter)
            await zoom(pilot)
            await alone(pilot, name)
            await zoom(pilot)
            await until(pilot, lambda: regions(pilot) == before)
        # Where one stands alone, those can be gone to that have no place or take no focus, too.
        await zoom(pilot)
        panes = await letters(pilot)
        assert [name for _, name in panes] == list(pilot.app.screen.PANES)  # type: ignore[attr-defined]
        for letter, name in panes:
            if name not in dict(focusable).values():
                await pilot.press("ctrl+o", letter)
                await alone(pilot, name)
        await zoom(pilot)
        await until(pilot, lambda: regions(pilot) == before)


async def test_four_tabs_in_a_burst_go_four_fields_and_one_that_is_left_shows_its_beginning(running: Running) -> None:
    """Where the terminal is left it goes on."""
    async with running() as pilot:
        await pilot.press("4", "e")
        field, *fields = pilot.app.screen.query_one(FormPane).query(Input)
        assert pilot.app.focused is field
        for key, reached in (("tab", fields[3]), ("shift+tab", field)):
            for _ in range(4):  # before the first is answered
                pilot.app.post_message(Key(key, None))
            await until(pilot, lambda reached=reached: pilot.app.focused is reached)  # type: ignore[misc]
            await shown(pilot)
            assert pilot.app.focused is reached
        await pilot.press("end", *",CCC")
        for event in (AppBlur(), AppFocus()):
            pilot.app.post_message(event)
            await pilot.pause()
        await until(pilot, lambda: field.has_focus)
        await pilot.press("D")
        assert field.value.endswith(",CCCD")
        await pilot.press("tab")
        await until(pilot, lambda: field.cursor_position == 0)
        pilot.app.switch_mode("desk")  # the app ends while a field of another screen has the focus
        await until(pilot, lambda: pilot.app.current_mode == "desk")


def test_a_table_that_has_other_columns_and_no_row_has_no_cursor() -> None:
    table = Table([Column("A")], id="t", classes="")
    table.show([Row("1", (Cell("x"),))])
    assert table.cursor_key == "1"
    table.set_columns([Column("A"), Column("B")])
    table.show([])
    assert table.cursor_key == ""


async def test_a_pane_without_anything_says_why(running: Running, asking: FakeDesk) -> None:
    async with running((200, 60), desk=asking) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: pilot.app.current_mode == "lab")
        await shown(pilot)
        plot = pilot.app.screen.query_one("#curve", CurvePlot)
        assert plot.render_line(plot.size.height // 2).text.strip() == "no run is chosen"
        await pilot.press("5")
        await until(pilot, lambda: pilot.app.current_mode == "ops")
        await shown(pilot)
        checks = pilot.app.screen.query_one("#checks", Table)
        checks.show([])
        await until(pilot, lambda: checks.virtual_size.height == 1)
        await shown(pilot)
        assert checks.size.height > 1, "room for a text below the head"


async def test_a_row_that_is_pointed_at_as_it_comes_is_in_sight(running: Running) -> None:
    async with running((80, 24)) as pilot:
        await pilot.press("4")
        table = pilot.app.screen.query_one("#results", Table)
        pilot.app.screen.show_view = lambda view: None  # type: ignore[attr-defined]  # which would show no runs
        table.set_columns([Column("A")])
        table.show([Row(str(n), (Cell("x"),)) for n in range(40)])
        table.point_at("39")
        await until(pilot, lambda: table.show_vertical_scrollbar)
        await shown(pilot)
        assert table.scroll_offset.y == 40 - (table.size.height - 1)
