"""The symbol search: what the desk knows by symbol and company, shown on the screen below, added to a group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from tests.tui.commands.conftest import Run
from tests.tui.commands.test_book_screen import cells
from tests.tui.conftest import opened, until
from tui.screens.symbol_search import SymbolSearchScreen
from tui.settings import app_settings
from tui.widgets.candle_chart import CandleChart


async def searched(pilot: Pilot[Any], text: str, first: str) -> None:
    """Types into the search, and waits until a symbol is the first that fits."""
    await pilot.press("S")
    await until(pilot, lambda: isinstance(pilot.app.screen, SymbolSearchScreen))
    await pilot.press(*text)
    await until(pilot, lambda: bool(cells(pilot, "found")) and cells(pilot, "found")[0][0] == first)


def drawn(widget: Any) -> str:
    """The text of a widget that draws lines."""
    return "\n".join(widget.render_line(y).text for y in range(widget.size.height))


def said(pilot: Pilot[Any]) -> str:
    """The line at the foot of the search."""
    return str(pilot.app.screen.query_one("#complaint", Static).render())


async def test_a_symbol_is_found_by_symbol_and_company_and_shown(run: Run, desk: Path) -> None:
    run("watchlist", "add", "mine", "ZZZZ")
    async with opened() as pilot:
        screen: Any = pilot.app.screen_stack[0]
        await searched(pilot, "", "ORVL")
        every = {row[0]: row[1:] for row in cells(pilot, "found")}
        assert every["ORVL"] == ["Orvelle Semiconductors", "desk, data, runs"]
        assert every["ZZZZ"] == ["", "mine"] and every["FABX"][1] == "data"
        # What begins so comes first: the symbol, then a word of the name, then a part of either.
        await pilot.press("v")
        await until(pilot, lambda: cells(pilot, "found")[0][0] == "VDRL")
        assert [row[0] for row in cells(pilot, "found")].index("ORVL") > 0
        await pilot.press("backspace", *"thera")
        await until(pilot, lambda: [row[0] for row in cells(pilot, "found")] == ["HLXM"])
        await pilot.press("enter")
        await until(pilot, lambda: screen.symbol == "HLXM" and pilot.app.screen is screen)
        own = [row[0] for row in cells(pilot, "watchlist")]
        # One that the desk does not trade gets a row under the group, with its last close and its chart.
        await searched(pilot, "index f", "FABX")
        await pilot.press("enter")
        await until(pilot, lambda: bool(len(screen.query_one(CandleChart).data)) and screen.symbol == "FABX")
        assert screen.query_one(CandleChart).data.title == "FABX 1D"
        assert [row[0] for row in cells(pilot, "watchlist")] == [*own, "FABX"]
        assert cells(pilot, "watchlist")[-1][1] != "-"
        # A symbol without prices here says so.
        await searched(pilot, "zz", "ZZZZ")
        await pilot.press("enter")
        await until(pilot, lambda: screen.query_one(CandleChart).data.title == "ZZZZ 1D")
        assert "no prices to draw" in drawn(screen.query_one(CandleChart))
        await pilot.press("S", *"nothing of that name", "enter")
        assert "no symbol that the desk knows" in drawn(pilot.app.screen.query_one("#found"))
        assert said(pilot) == "esc leaves"
        await pilot.press("escape")
        assert pilot.app.screen is screen


async def test_a_searched_symbol_is_added_to_the_present_group(run: Run, desk: Path) -> None:
    async with opened((80, 24)) as pilot:
        await searched(pilot, "fab", "FABX")
        await pilot.press("z")
        await until(pilot, lambda: said(pilot) == "esc leaves")
        await pilot.press("backspace")
        await until(pilot, lambda: said(pilot) == "enter shows it   + adds it to the group core   esc leaves")
        await pilot.press("plus")
        assert said(pilot) == "FABX is in the group core"
        assert pilot.app.last_command == "paperdesk watchlist add core FABX"  # type: ignore[attr-defined]
        assert pilot.app.screen.query_one(Input).value == "fab"
        await pilot.press("escape", "w")
        await until(pilot, lambda: [row[0] for row in cells(pilot, "watchlist")] == ["FABX"])
        await searched(pilot, "kest", "KSTO")
        await pilot.press("plus", "escape")
        await until(pilot, lambda: [row[0] for row in cells(pilot, "watchlist")] == ["FABX", "KSTO"])
    assert run("watchlist", "--json").json["groups"][-1] == {
        "group": "core",
        "symbols": ["FABX", "KSTO"],
        "traded": False,
    }


async def test_other_screens_show_it_on_the_chart_also_where_nothing_may_be_changed(
    run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = app_settings.app_settings(read_only=True)
    async with opened(settings=reading) as pilot:
        await pilot.press("4")
        await searched(pilot, "tamb", "TMBK")
        assert "group" not in said(pilot)
        await pilot.press("plus")
        assert "read-only" in said(pilot)
        await pilot.press("down", "up", "enter")
        await until(pilot, lambda: pilot.app.current_mode == "chart")
        chart: Any = pilot.app.screen_stack[0]
        await until(pilot, lambda: chart.query_one(CandleChart).data.title == "TMBK 1D")
        # The keys of the chart go on from it to the desk's symbols.
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: chart.query_one(CandleChart).data.title == "ORVL 1D")
    assert [one["group"] for one in run("watchlist", "--json").json["groups"]] == ["desk"]
