"""The Book screen shows what `positions`, `orders` and `equity` print, also of the past."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tests.tui.commands.conftest import SESSIONS, Run
from tests.tui.commands.test_playback import arrived
from tests.tui.conftest import opened, until
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Table

TABLES = ("book-positions", "book-orders", "trades", "flows")


def cells(pilot: Pilot[Any], table: str) -> list[list[str]]:
    """The texts of a table."""
    return [[cell.text for cell in row.cells] for row in pilot.app.screen.query_one(f"#{table}", Table).rows]


async def test_tables_and_curves_are_those_of_the_journal(run: Run, desk: Path) -> None:
    async with opened() as pilot:
        await pilot.press("4")
        await until(pilot, lambda: bool(cells(pilot, "trades")))
        now = {name: cells(pilot, name) for name in TABLES}
        growth = pilot.app.screen.query_one("#growth", CurvePlot)
        assert list(growth.data.series) == ["this account", "buy-and-hold"]
        curve = list(growth.data.series["this account"])
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await until(pilot, lambda: cells(pilot, "trades") != now["trades"])
        before = cells(pilot, "book-orders")
        await pilot.press("z")
        shown = [name for name in ("growth", "falls", *TABLES) if pilot.app.screen.query_one(f"#{name}").display]
        assert shown == ["book-positions"]
    held = run("positions", "--json").json["positions"]
    assert [row[0] for row in now["book-positions"]] == sorted(held)
    equity = run("equity", "--json").json["equity"]
    assert curve == [float(one["value"]) / float(equity[0]["value"]) * 100 for one in equity]
    orders = run("orders", "--json").json["orders"]
    assert {(row[0], row[1], row[2]) for row in now["book-orders"]} == {
        (one["session"], one["symbol"], one["side"]) for one in orders
    }
    then = run("orders", "--at", str(SESSIONS[1]), "--json").json["orders"]
    assert len(before) == len(then) < len(orders)
