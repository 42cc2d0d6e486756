"""Painting in parts: no part is large, every change is painted in the end, and a key comes before the rest."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Running, shown, until
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.pilot import Pilot

from tui.app import PaperdeskApp
from tui.screens.painting import CELLS, PaintsInParts, first_part
from tui.widgets.candle_chart import CandleChart
from tui.widgets.screen_bars import StatusBar

REGIONS = st.builds(Region, st.integers(0, 100), st.integers(0, 50), st.integers(1, 100), st.integers(1, 50))


@given(st.lists(REGIONS, min_size=1, max_size=8, unique=True))
def test_a_part_is_one_region_or_no_larger_than_the_limit(regions: list[Region]) -> None:
    part = first_part(regions)
    assert part and set(part) <= set(regions) and len(set(part)) == len(part)
    around = Region.from_union(part)
    assert len(part) == 1 or sum(one.intersection(around).area for one in regions) <= CELLS
    assert part[0] == regions[0]


class Terminal:
    """What a terminal shows after what was painted: cells of a screen without wide characters."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[list[str]] = []
        self.painted: list[set[Region]] = []
        update = Compositor.render_update

        def noted(compositor: Compositor, *how: Any, **more: Any) -> Any:
            self.painted.append(set(compositor._dirty_regions))
            self.rows = self.rows or _cells(compositor)
            made = update(compositor, *how, **more)
            if isinstance(made, ChopsUpdate):
                self._write(made)
            elif made is not None:
                self.rows = _cells(compositor)
            return made

        monkeypatch.setattr(Compositor, "render_update", noted)
        # The tests' app has no terminal, and paints for nobody.
        monkeypatch.setattr(PaperdeskApp, "is_headless", property(lambda app: False))

    def _write(self, made: ChopsUpdate) -> None:
        """Write what is sent to the terminal."""
        console = Console()
        x = y = 0
        for segment in made.__rich_console__(console, console.options):
            if segment.control:
                ((_, x, y),) = segment.control
            elif segment.text != "\n":
                self.rows[y][x : x + len(segment.text)] = segment.text
                x += len(segment.text)


def _cells(compositor: Compositor) -> list[list[str]]:
    return [list(strip.text) for strip in compositor.render_strips()]


async def _all_is_painted(pilot: Pilot[Any]) -> None:
    screen = pilot.app.screen
    assert isinstance(screen, PaintsInParts)
    await shown(pilot)
    await until(pilot, lambda: not screen._unpainted and not screen._dirty_widgets)


async def test_after_cycles_and_keys_the_terminal_shows_the_whole_screen(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as pilot:
        terminal = Terminal(monkeypatch)
        pilot.app.screen.refresh()
        await _all_is_painted(pilot)
        for key in ("r", "right_square_bracket", "down", "left_square_bracket", "r", "tab", "z", "z"):
            await pilot.press(key)
            await pilot.pause(0.05)
        await until(pilot, lambda: not pilot.app.bridge.snapshot().busy)
        await _all_is_painted(pilot)
        assert terminal.rows == _cells(pilot.app.screen._compositor)
        for key in "742561":
            await pilot.press(key)
            await _all_is_painted(pilot)
            assert terminal.rows == _cells(pilot.app.screen._compositor), key


async def test_a_large_change_is_painted_in_parts_and_a_key_before_the_rest(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as pilot:
        app, screen = pilot.app, pilot.app.screen
        assert isinstance(app, PaperdeskApp) and isinstance(screen, PaintsInParts)
        terminal = Terminal(monkeypatch)
        await _all_is_painted(pilot)
        chart, status = screen.query_one(CandleChart).region, screen.query_one(StatusBar)
        screen._compositor._dirty_regions.update({chart, *(pane.region for pane in screen.query(".pane"))})
        screen._compositor_refresh()
        assert terminal.painted[-1] == {chart} and screen._unpainted

        monkeypatch.setattr("tui.key_first.FIRST", float("inf"))
        app.key_first.read()
        left, paintings = list(screen._unpainted), len(terminal.painted)
        screen._paint_rest()
        screen._dirty_widgets.add(status)
        status._set_dirty()
        screen._on_timer_update()
        assert len(terminal.painted) == paintings, "nothing is painted before the key's action has begun"
        assert set(screen._unpainted) == {*left, status.region}, "nothing is forgotten"

        app.key_first.begun()
        screen._paint_rest()
        assert len(terminal.painted) == paintings
        screen._dirty_widgets.add(status)
        status._set_dirty()
        screen._on_timer_update()
        assert terminal.painted[-1] == {status.region}, "its answer: what changed last comes first"
        await _all_is_painted(pilot)
        assert set(left) <= set[Region]().union(*terminal.painted[paintings:])


async def test_what_waits_is_painted_before_what_changes_again(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, PaintsInParts)
        terminal = Terminal(monkeypatch)
        await _all_is_painted(pilot)
        regions = {screen.query_one(StatusBar).region, *(pane.region for pane in screen.query(".pane") if pane.display)}
        painted, frames = len(terminal.painted), 0
        while frames < len(regions):  # a history that is played fast: all of it changes with every frame
            frames += 1
            screen._compositor._dirty_regions.update(regions)
            screen._compositor_refresh()
        assert regions <= set[Region]().union(*terminal.painted[painted:])
