"""On a large terminal the demo desk leaves no pane empty: the room that a table does not need goes to a curve."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from fake_desk import SYMBOLS
from rich.segment import Segment
from textual.geometry import Region
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widget import Widget

from engine.app.desk import demo_history
from tests.tui.commands.conftest import Run
from tests.tui.conftest import Running, opened, shown, until
from tui.settings.keys import SCREENS
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Table
from tui.widgets.text_lines import TextLines

MOST = 0.4
"""Part of a pane that may be blank."""
EMPTY_AT_FIRST = ("orders", "agents")
DATES = {"orders": datetime(2026, 11, 24, 15, tzinfo=UTC), "weekend": datetime(2026, 11, 28, 15, tzinfo=UTC)}
"""A day before whose open the demo desk has decided orders, and one on which nothing is open."""
QUIET = ("rates", "orders", "flows")
"""Tables that are rightly empty on some days: no call of today, no order, no transfer."""
FEW = 6
"""Rows of a table, with its border, up to which it takes no more room than it needs."""


def blank(strips: list[Strip], inside: Region) -> float:
    """The part of a pane's cells, within its border, that are empty with nothing behind them in their row: the rows
    under a short table, and the room at the right of short lines."""
    rows = (strip.crop(inside.x, inside.right).text.rstrip() for strip in strips[inside.y : inside.bottom])
    return 1 - sum(map(len, rows)) / (inside.width * inside.height)


def unwritten(strips: list[Strip], inside: Region) -> float:
    """The part of a text's rows in which nothing stands: its lines end where they end."""
    rows = [strip.crop(inside.x, inside.right).text.strip() for strip in strips[inside.y : inside.bottom]]
    return sum(not row for row in rows) / inside.height


def unused(strips: list[Strip], inside: Region) -> float:
    """The part of a plot's columns that no curve runs through, whatever it comes to on a day."""
    rows = [strip.crop(inside.x, inside.right).text for strip in strips[inside.y : inside.bottom]]
    return sum(not "".join(column).strip() for column in zip(*rows, strict=True)) / inside.width


def test_blank_cells_are_those_without_anything_behind_them() -> None:
    strips = [Strip([Segment(text.ljust(10))]) for text in ("|ab      |", "|  c     |", "|        |", "|d      e|")]
    assert blank(strips, Region(1, 0, 8, 4)) == 1 - (2 + 3 + 0 + 8) / 32


async def full(pilot: Pilot[Any]) -> list[Strip]:
    """The rows of a screen once everything that it reads is there."""
    screen = pilot.app.screen
    tables = [table for table in screen.query(Table) if table.display and table.id not in QUIET]
    # A demo desk that has no arena plays one.
    await until(pilot, lambda: all(table.rows for table in tables))
    texts = list(screen.query(TextLines))
    await until(pilot, lambda: all(len(text._starts) == len(text._lines) for text in texts if text._width))
    await shown(pilot)
    strips: list[Strip] = screen._compositor.render_strips()
    return strips


def blanks(pilot: Pilot[Any], mode: str, strips: list[Strip]) -> dict[str, float]:
    """The blank part of every pane that is shown, by screen and pane."""
    panes = [pane for pane in pilot.app.screen.query(".pane") if pane.display and pane.region.area]
    few = {pane for pane in panes if isinstance(pane, Table) and pane.region.height <= FEW}
    kinds = {CurvePlot: unused, TextLines: unwritten, Widget: blank}
    return {
        f"{mode} {pane.id}": next(part for kind, part in kinds.items() if isinstance(pane, kind))(
            strips, pane.region.shrink((1, 1, 1, 1))
        )
        for pane in panes
        if pane not in few
    }


async def test_a_large_desk_has_something_to_show_before_its_first_run(running: Running) -> None:
    async with running((200, 60)) as pilot:
        desk = pilot.app.screen
        await until(pilot, lambda: desk.query_one("#equity", CurvePlot).drawn)
        await shown(pilot)
        curves = desk.query_one("#equity", CurvePlot).data
        assert list(curves.series) == list(SYMBOLS) and len(curves.labels) == 60
        assert all(curve[0] == 100 and curve[-1] not in (None, 100) for curve in curves.series.values())
        found = blanks(pilot, "desk", desk._compositor.render_strips())
        # What is known to be empty says so in as few rows as it needs: no orders, ten names of agents.
        for name in EMPTY_AT_FIRST:
            found.pop(f"desk {name}", None)
            assert desk.query_one(f"#{name}").region.height <= 15, name
        assert {name: f"{part:.0%}" for name, part in found.items() if part > MOST} == {}


@pytest.mark.slow  # ten sessions of the demo desk, a backtest and an arena
@pytest.mark.parametrize("day", DATES)
async def test_no_pane_of_a_large_screen_is_mostly_blank(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch, day: str
) -> None:
    ticks = count()  # a run takes its time
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: DATES[day] + timedelta(milliseconds=next(ticks)))
    monkeypatch.setattr(demo_history, "DUE", date(2025, 7, 1))
    assert (await asyncio.to_thread(run, "next", "10")).code == 0
    tested = ("--strategy", "sma-cross", "--symbols", "ORVL,HLXM", "--from", "2025-01-02", "--to", "2025-06-30")
    assert (await asyncio.to_thread(run, "backtest", *tested)).code == 0
    found: dict[str, float] = {}
    async with opened((200, 60)) as pilot:
        for mode, (key, _, _) in SCREENS.items():
            await pilot.press(key)
            await until(pilot, lambda wanted=mode: pilot.app.current_mode == wanted)  # type: ignore[misc]
            strips = await full(pilot)
            found |= blanks(pilot, mode, strips)
    assert len(found) >= 20
    assert {name: f"{part:.0%}" for name, part in found.items() if part > MOST} == {}
