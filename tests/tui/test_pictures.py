"""The Desk, a backtest and every page over a screen as pictures: frozen clock, nothing blinks, ids made equal, so that
a change of look is seen."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from conftest import Running, shown, until
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.pilot import Pilot
from textual.widgets import Input, Static

import tui.screens
from tui.screens.dialog import Dialog
from tui.screens.pick import PickScreen
from tui.set_up.set_up_offer import offered
from tui.settings.invocation import Invocation
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Table

SIZES = pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])


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
def svg(snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> SnapshotAssertion:
    """Compares with the stored picture; no cursor blinks."""
    monkeypatch.setattr(Input, "_toggle_cursor", lambda line: None)
    return snapshot.use_extension(Svg)


@SIZES
async def test_desk_after_a_cycle_and_its_log(running: Running, svg: SnapshotAssertion, size: tuple[int, int]) -> None:
    async with running(size) as pilot:
        await pilot.press("r")
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: bridge.snapshot().sources[0].version == 2 and not bridge.snapshot().busy)
        await shown(pilot)
        assert picture(pilot) == svg
        await pilot.press("grave_accent")
        await shown(pilot)
        assert picture(pilot) == svg


@SIZES
async def test_desk_before_the_first_cycle(running: Running, svg: SnapshotAssertion, size: tuple[int, int]) -> None:
    async with running(size) as pilot:
        assert picture(pilot) == svg


@SIZES
async def test_a_halted_desk_with_orders_that_wait(
    running: Running, svg: SnapshotAssertion, asking: Any, size: tuple[int, int]
) -> None:
    async with running(size, desk=asking) as pilot:
        await pilot.press("K", "y")
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: bridge.snapshot().controls.halted is not None and len(pilot.app.screen_stack) == 1)
        await shown(pilot)
        assert picture(pilot) == svg


PAGES = {
    "approve": ("ConfirmScreen", ("a",)),
    "veto": ("ConfirmScreen", ("x",)),
    "edit": ("AskScreen", ("e",)),
    "kill-switch": ("ConfirmScreen", ("K",)),
    "search": ("SymbolSearchScreen", ("S", *"bb")),
    "filter": ("AskScreen", ("slash",)),
    "filter-refused": ("AskScreen", ("slash", *"size:5", "enter")),
    "date": ("AskScreen", ("at",)),
    "jump": ("JumpScreen", ("ctrl+o",)),
    "menu": ("MenuScreen", ("question_mark",)),
    "palette": ("CommandPalette", ("ctrl+p",)),
    "tour": ("TourScreen", "Tour"),
    "set-up": ("SetUpScreen", "Set up a paper account"),
}
"""Pages over the Desk: their kind, and the keys or the entry of the palette that open them."""
IN_OTHER_TESTS = {"OrderTicket", "ReadingScreen", "TrailScreen", "ChartImageScreen", "SettingsScreen", "ChoiceScreen"}
"""Kinds with pictures of their own, below and in `test_screens_of_the_past`."""


async def test_a_page_over_the_desk(running: Running, svg: SnapshotAssertion, asking: Any) -> None:
    async with running((80, 24), desk=asking, set_up=offered(Invocation())) as pilot:
        for page, (kind, opened_by) in PAGES.items():
            if isinstance(opened_by, str):
                {one.title: one.callback for one in pilot.app.get_system_commands(pilot.app.screen)}[opened_by]()
            else:
                await pilot.press(*opened_by)
            await until(pilot, lambda kind=kind: type(pilot.app.screen).__name__ == kind)  # type: ignore[misc]
            await shown(pilot)
            assert picture(pilot) == svg(name=page)
            await pilot.press("escape")
            await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


@SIZES
async def test_the_settings_and_the_values_of_one(
    running: Running, svg: SnapshotAssertion, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text('[broker]\nmode = "ask"\n')
    async with running(size) as pilot:
        pilot.app.invocation = Invocation(config_file="own.toml")  # type: ignore[attr-defined]
        await pilot.press("comma")
        await until(pilot, lambda: bool(pilot.app.screen.query(Table)) and bool(pilot.app.screen.query_one(Table).rows))
        pilot.app.screen.query_one(Table).point_at("broker.mode")
        await shown(pilot)
        assert picture(pilot) == svg(name="settings")
        await pilot.press("enter")
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "ChoiceScreen")
        await until(pilot, lambda: bool(pilot.app.screen.query_one(Table).rows))
        await shown(pilot)
        assert picture(pilot) == svg(name="values")


def test_every_kind_of_page_is_pictured() -> None:
    modules = [import_module(f"tui.screens.{module.name}") for module in iter_modules(tui.screens.__path__)]
    found = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    pages = {kind.__name__ for kind in found if issubclass(kind, Dialog) and kind not in (Dialog, PickScreen)}
    assert pages <= {kind for kind, _ in PAGES.values()} | IN_OTHER_TESTS


@SIZES
async def test_the_ticket_of_an_order_of_ones_own(
    running: Running, svg: SnapshotAssertion, size: tuple[int, int]
) -> None:
    async with running(size) as pilot:
        await pilot.press("o", *"$2500")
        effect = pilot.app.screen.query_one("#effect", Static)
        await until(pilot, lambda: "within the cash floor" in str(effect.content))
        await shown(pilot)
        assert picture(pilot) == svg


@SIZES
async def test_backtest_with_results(running: Running, svg: SnapshotAssertion, size: tuple[int, int]) -> None:
    async with running(size) as pilot:
        await pilot.press("4")
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
