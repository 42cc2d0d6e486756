"""The Book screen shows what `positions`, `orders` and `equity` print, also of the past."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from connectors.wiring.sources import calendars
from engine.settings import places
from tests.data_folders import DrawnOnce
from tests.tui.commands.conftest import BACKTEST, SESSIONS, Run
from tests.tui.conftest import arrived, cells, opened, until
from tui.view.desk_port import Source
from tui.widgets.plot import CurvePlot

TABLES = ("book-positions", "blotter", "flows")


async def growth_of(symbol: str) -> float:
    """The growth of a symbol of the demo market over the desk's closes; it pays nothing within them."""
    closes = await DrawnOnce(7, calendars(), SESSIONS[-1]).history(symbol)
    first, last = (closes.close[closes.index(session) or 0] for session in (SESSIONS[0], SESSIONS[-1]))
    return last / first


async def test_tables_and_curves_are_those_of_the_journal(run: Run, desk: Path) -> None:
    async with opened() as pilot:
        await pilot.press("3")
        await until(pilot, lambda: bool(cells(pilot, "blotter")))
        now = {name: cells(pilot, name) for name in TABLES}
        growth = pilot.app.screen.query_one("#growth", CurvePlot)
        # Beside buy and hold stands the index fund of the data.
        assert list(growth.data.series) == ["desk", "buy-and-hold", "FABX"]
        fund = growth.data.series["FABX"]
        curve = list(growth.data.series["desk"])
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await until(pilot, lambda: len(cells(pilot, "blotter")) < len(now["blotter"]))
        before = cells(pilot, "blotter")
        await pilot.press("z")
        shown = [name for name in ("growth", "falls", *TABLES) if pilot.app.screen.query_one(f"#{name}").display]
        assert shown == ["book-positions"]
        await pilot.press("z", "left_curly_bracket")
        await until(pilot, lambda: len(growth.data.labels) == 1 and growth.drawn)
        lines = ["".join(part.text for part in growth.render_line(row)).strip() for row in range(growth.size.height)]
        assert lines[0].startswith("─ desk") and set(lines[1:]) == {"begins with the second session", ""}
    held = run("positions", "--json").json["positions"]
    assert [row[0] for row in now["book-positions"]] == sorted(held)
    assert fund[0] == 100.0 and fund[-1] == pytest.approx(100 * await growth_of("FABX"))
    equity = run("equity", "--json").json["equity"]
    assert curve == pytest.approx([float(one["value"]) / float(equity[0]["value"]) * 100 for one in equity])
    orders = run("orders", "--json").json["orders"]
    assert {(row[0], row[1], row[2]) for row in now["blotter"]} == {
        (one["session"], one["symbol"], one["side"]) for one in orders
    }
    asked = {f"${Decimal(one['notional']):,.2f}".removesuffix(".00") for one in orders if one["notional"]}
    assert any("." in one for one in asked), "some have cents"
    assert {row[3] for row in now["blotter"] if row[3].startswith("$")} == asked
    assert all(f" {one} " in run("orders").out for one in asked)
    # Every trade costs the slippage of the simulation, and together they earned what the account did.
    filled = {(one["session"], one["symbol"]): one["fills"] for one in orders if one["fills"]}
    blotter = {(row[0], row[1]): row for row in now["blotter"] if row[8] != "-"}
    assert blotter.keys() == filled.keys() and {row[9] for row in blotter.values()} == {"+5.0"}
    for key, (fill, *_) in filled.items():
        assert blotter[key][8] == f"{Decimal(fill['price']):,.2f}"
    profit = sum(Decimal(row[10].replace(",", "")) for row in blotter.values())
    earned = Decimal(equity[-1]["value"]) - Decimal(equity[0]["value"])
    assert abs(profit - earned) < 1 and profit
    then = run("orders", "--at", str(SESSIONS[1]), "--json").json["orders"]
    assert len(before) == len(then) < len(orders)


async def test_an_order_opens_its_decision_and_a_position_that_of_its_latest_trade(run: Run, desk: Path) -> None:
    async with opened() as pilot:
        await pilot.press("3")
        await until(pilot, lambda: bool(cells(pilot, "blotter")))
        filled = [row for row in cells(pilot, "blotter") if row[8] != "-"]
        traded = next(row for row in filled if row[1] == cells(pilot, "book-positions")[0][0])
        for pane, keys, row in (
            ("blotter", ("G", "d"), cells(pilot, "blotter")[-1]),
            ("blotter", ("g", "enter"), cells(pilot, "blotter")[0]),
            ("book-positions", ("d",), traded),
        ):
            pilot.app.screen.query_one(f"#{pane}").focus()
            await pilot.press(*keys)
            await until(pilot, lambda: bool(getattr(pilot.app.screen, "_decision", None)))
            decision = pilot.app.screen._decision.key  # type: ignore[attr-defined]
            assert (str(decision.session), decision.symbol) == tuple(row[:2])
            await pilot.press("escape")


async def test_a_backtest_is_beside_its_simulated_buy_and_hold(run: Run, backtested: Path) -> None:
    document = run("report", "--run", BACKTEST, "--format", "json").json
    held, own = document["baselines"]["buy-and-hold"]["equity"], [row["value"] for row in document["equity"]]
    async with opened() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        assert bridge.to_past(Source("the backtest", places.run_journal(BACKTEST), BACKTEST)) == ""
        await arrived(pilot)
        await pilot.press("3")
        growth = pilot.app.screen.query_one("#growth", CurvePlot)
        for sessions in (len(own), len(own) - 1):
            await until(pilot, lambda wanted=sessions: len(growth.data.labels) == wanted)  # type: ignore[misc]
            for name, values in (("desk", own), ("buy-and-hold", held)):
                expected = [100 * float(value) / float(document["initial_value"]) for value in values[:sessions]]
                assert growth.data.series[name] == pytest.approx(expected), name
            await pilot.press("left_curly_bracket")
            await arrived(pilot)
