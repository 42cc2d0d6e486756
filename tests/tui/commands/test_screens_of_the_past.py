"""Screens as pictures at a place of a recorded history, where nothing depends on the time of day."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.screen import Screen

from connectors.wiring.services import services
from engine.app.arena.arena import run_arena
from engine.app.arena.record import ArenaSpec
from engine.app.open_desk import OpenDesk
from engine.app.research.backtest import run_backtest
from engine.reports.documents.set_up import Finding
from engine.settings.config import load_config
from tests.conftest import MadeHome
from tests.tui.commands.conftest import DEBATING, SESSIONS, SHORT_BACKTEST, copied, desk_lives
from tests.tui.conftest import arrived, opened, pane_text, shown, until
from tests.tui.test_pictures import SIZES, Svg, picture
from tui.app.app import PaperdeskApp
from tui.screens.chart_image import ChartImageScreen
from tui.screens.trail import TrailScreen
from tui.settings.keys import SCREENS
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Table
from tui.widgets.text_lines import TextPane

NOW = datetime(2025, 7, 1, 12, tzinfo=UTC)
"""The moment at which everything was run."""
CHECKS = (
    Finding("Journals", "desk demo", "ok", "sound"),
    Finding("Broker", "account", "fail", "the account cannot be reached: the key is refused"),
    Finding("Journals", "sessions", "note", "no daily run came in session 2025-03-13"),
)
"""In place of those of this machine, which name its folders."""
LARGE = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
EMPTY = {"rates", "flows", "orders"}
"""Tables without a row: no dividend was paid, no order is open any more, and no model was asked on the day of NOW."""


@pytest.fixture
def svg(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Compares with the stored picture."""
    return snapshot.use_extension(Svg)


@pytest.fixture
def whole(made_home: MadeHome, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of a desk of three analysts after four sessions, with a backtest and an arena, all run at one moment."""
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: NOW)
    monkeypatch.setattr("engine.app.desk.demo_history.DUE", date(2025, 6, 30))
    monkeypatch.setattr(OpenDesk, "findings", lambda desk: CHECKS)

    def lives() -> None:
        desk_lives(DEBATING, *SESSIONS, date(2025, 3, 17))
        found = services(load_config(None, environ=DEBATING).config)
        run_backtest(found, SHORT_BACKTEST)
        run_arena(found, ArenaSpec(run="arena-one", days=6, seed=3))

    return copied(made_home("whole", lives), paperdesk_home)


def is_filled(screen: Screen[Any]) -> bool:
    """True once all panes that a screen shows have something in them."""
    tables = {table.id for table in screen.query(Table) if table.display and not table.rows}
    texts = all(pane.as_text() for pane in screen.query(TextPane) if pane.display)
    return tables <= EMPTY and texts and all(plot.drawn for plot in screen.query(CurvePlot) if plot.display)


@LARGE
async def test_every_screen(svg: SnapshotAssertion, whole: Path, size: tuple[int, int]) -> None:
    async with opened(size) as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        for mode, (key, _, _) in SCREENS.items():
            await pilot.press(key)
            await until(pilot, lambda mode=mode: pilot.app.current_mode == mode and is_filled(pilot.app.screen))  # type: ignore[misc]
            await shown(pilot)
            assert picture(pilot) == svg(name=mode)


@SIZES
async def test_parts_of_a_screen(svg: SnapshotAssertion, whole: Path, size: tuple[int, int]) -> None:
    async with opened(size) as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        for keys, part in (
            (("2", "v"), "agents"),
            (("v",), "memories"),
            (("v",), "prompts"),
            (("5", "v"), "memory"),
            (("4", "A"), "arena"),
        ):
            await pilot.press(*keys)
            await until(pilot, lambda: is_filled(pilot.app.screen))
            await shown(pilot)
            assert picture(pilot) == svg(name=part)


@SIZES
async def test_owners(svg: SnapshotAssertion, debating: Path, size: tuple[int, int]) -> None:
    async with opened(size) as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("2")
        await until(pilot, lambda: bool(pilot.app.screen.query_one("#decisions", Table).rows))
        await shown(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TrailScreen) and bool(pilot.app.screen.page.parts))
        await shown(pilot)
        assert picture(pilot) == svg(name="trail")
        await pilot.press("escape", "v", "v", "v", "v")
        await until(pilot, lambda: "RIGHT%" in pane_text(pilot, "calibration"))
        await shown(pilot)
        assert picture(pilot) == svg(name="calibration")


@SIZES
async def test_what_the_model_saw(
    svg: SnapshotAssertion, desk: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(OpenDesk, "paint", lambda desk, chart: b"")
    monkeypatch.setattr(PaperdeskApp, "keep_image", lambda app, name, image: Path("/screenshots", name))
    monkeypatch.setattr("tui.screens.chart_image.can_show", lambda: False)
    async with opened(size) as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("z")
        await until(pilot, lambda: pilot.app.screen.query_one("#indicator", CurvePlot).drawn)
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChartImageScreen))
        await shown(pilot)
        assert picture(pilot) == svg
