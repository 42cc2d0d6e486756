"""A few screens as pictures: frozen clock, nothing blinks, ids made equal, so that a change of look is seen."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import Running, shown, until
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.pilot import Pilot
from textual.widgets import Input, Static

from tui.widgets.plot import CurvePlot


class Svg(SingleFileSnapshotExtension):
    """One SVG file per picture, to be opened in a browser."""

    _write_mode = WriteMode.TEXT
    file_extension = "svg"


def picture(pilot: Pilot[Any]) -> str:
    """The screen as SVG, the id that Rich draws at random replaced, and the address of its fonts left out."""
    svg = pilot.app.export_screenshot(title="Paperdesk", simplify=True)
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


@pytest.fixture
def svg(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Compares with the stored picture."""
    return snapshot.use_extension(Svg)


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
async def test_desk_after_a_cycle(running: Running, svg: SnapshotAssertion, size: tuple[int, int]) -> None:
    async with running(size) as pilot:
        await pilot.press("r")
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: bridge.snapshot().sources[0].version == 2 and not bridge.snapshot().busy)
        await shown(pilot)
        assert picture(pilot) == svg


async def test_desk_before_the_first_cycle(running: Running, svg: SnapshotAssertion) -> None:
    async with running((80, 24)) as pilot:
        assert picture(pilot) == svg


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
async def test_a_halted_desk_with_orders_that_wait(
    running: Running, svg: SnapshotAssertion, asking: Any, size: tuple[int, int]
) -> None:
    async with running(size, desk=asking) as pilot:
        await pilot.press("K", "y")
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: bridge.snapshot().controls.halted is not None and len(pilot.app.screen_stack) == 1)
        await shown(pilot)
        assert picture(pilot) == svg


async def test_an_approval_is_asked_for(running: Running, svg: SnapshotAssertion, asking: Any) -> None:
    async with running((80, 24), desk=asking) as pilot:
        await pilot.press("a")
        await shown(pilot)
        assert picture(pilot) == svg


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
async def test_the_ticket_of_an_order_of_ones_own(
    running: Running, svg: SnapshotAssertion, size: tuple[int, int]
) -> None:
    async with running(size) as pilot:
        await pilot.press("o", *"$2500")
        effect = pilot.app.screen.query_one("#effect", Static)
        await until(pilot, lambda: "within the cash floor" in str(effect.content))
        await shown(pilot)
        assert picture(pilot) == svg


async def test_backtest_with_results(running: Running, svg: SnapshotAssertion) -> None:
    async with running((120, 40)) as pilot:
        await pilot.press("7")
        await until(pilot, lambda: bool(pilot.app.screen.query_one("#field-symbols", Input).value))
        await pilot.press("ctrl+r")
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: bool(bridge.snapshot().backtests[0].document))
        await until(pilot, lambda: bool(pilot.app.screen.query_one("#curve", CurvePlot).drawn))
        await shown(pilot)
        assert picture(pilot) == svg
        await pilot.resize_terminal(200, 60)
        fall = pilot.app.screen.query_one("#run-fall", CurvePlot)
        await until(pilot, lambda: fall.display and fall.drawn and "below" not in str(fall.render_line(0).text))
        assert "nothing" not in "".join(fall.render_line(y).text for y in range(fall.size.height))
