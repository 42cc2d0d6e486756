"""Screens as pictures at a place of a recorded history, where nothing depends on the time of day."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.tui.commands.test_playback import arrived
from tests.tui.conftest import opened, shown, until
from tests.tui.test_pictures import Svg, picture
from tui.widgets.folds import Fold
from tui.widgets.pane_text import TextPane
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Table

SIZES = pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])


@pytest.fixture
def svg(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Compares with the stored picture."""
    return snapshot.use_extension(Svg)


@SIZES
async def test_book(svg: SnapshotAssertion, desk: Path, size: tuple[int, int]) -> None:
    async with opened(size) as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("4")
        await until(pilot, lambda: bool(pilot.app.screen.query_one("#trades", Table).rows))
        await until(pilot, lambda: all(one.drawn for one in pilot.app.screen.query(CurvePlot) if one.display))
        await shown(pilot)
        assert picture(pilot) == svg


@SIZES
async def test_agents(svg: SnapshotAssertion, desk: Path, size: tuple[int, int]) -> None:
    async with opened(size) as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("3")
        await until(pilot, lambda: "user" in pilot.app.screen.query_one("#sources", TextPane).as_text())
        await shown(pilot)
        assert picture(pilot) == svg


@SIZES
async def test_chart(svg: SnapshotAssertion, desk: Path, size: tuple[int, int]) -> None:
    async with opened(size) as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("2")
        await until(pilot, lambda: pilot.app.screen.query_one(CurvePlot).drawn)
        await shown(pilot)
        assert picture(pilot) == svg


@SIZES
async def test_decisions(svg: SnapshotAssertion, debating: Path, size: tuple[int, int]) -> None:
    async with opened(size) as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("5")
        await until(pilot, lambda: bool(pilot.app.screen.query_one("#decisions", Table).rows))
        await shown(pilot)
        assert picture(pilot) == svg


@SIZES
async def test_calibration(svg: SnapshotAssertion, debating: Path, size: tuple[int, int]) -> None:
    async with opened(size) as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("5", "v")
        await until(pilot, lambda: bool(pilot.app.screen.query_one("#calibration", Table).rows))
        await shown(pilot)
        assert picture(pilot) == svg


@SIZES
async def test_trail(svg: SnapshotAssertion, debating: Path, size: tuple[int, int]) -> None:
    async with opened(size) as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("5")
        await until(pilot, lambda: bool(pilot.app.screen.query_one("#decisions", Table).rows))
        await shown(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: bool(pilot.app.screen.query(Fold)))
        await shown(pilot)
        assert picture(pilot) == svg


@SIZES
async def test_owners_beside_each_other(svg: SnapshotAssertion, debating: Path, size: tuple[int, int]) -> None:
    async with opened(size) as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("3", "v", "v")
        await until(pilot, lambda: "Debate" in pilot.app.screen.query_one("#sources", TextPane).as_text())
        await shown(pilot)
        assert picture(pilot) == svg
