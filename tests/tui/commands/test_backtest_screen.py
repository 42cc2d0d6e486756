"""The Backtest screen's runs of any day: results, drawdown, trades, report, comparison, export, and a stopped run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from engine.reports.html_charts import growth_of
from engine.reports.stored import stored_document
from engine.reports.summary import drawdowns
from tests.tui.commands.conftest import BACKTEST, Run
from tests.tui.conftest import arrived, opened, shown, until
from tui.screens.lab import RunProgress
from tui.screens.reading import ReadingScreen
from tui.view.backtest_run import STOPPED
from tui.view.snapshot import PAST
from tui.widgets.navigation_bars import Hints
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Table


def results(pilot: Pilot[Any]) -> dict[str, list[str]]:
    """The rows of the results by their key."""
    table = pilot.app.screen_stack[0].query_one("#results", Table)
    return {row.key: [cell.text for cell in row.cells] for row in table.rows}


async def fill(pilot: Pilot[Any], **fields: str) -> None:
    """Fills the form and starts."""
    for field, text in fields.items():
        pilot.app.screen.query_one(f"#field-{field}", Input).value = text
    await pilot.press("ctrl+r")


@pytest.mark.slow
async def test_a_run_of_an_earlier_day_is_shown_compared_and_exported(
    backtested: Path, tmp_path: Path, run: Run
) -> None:
    printed = run("report", "--run", BACKTEST, "--json").json
    async with opened() as pilot:
        await pilot.press("4")
        screen = pilot.app.screen_stack[0]
        await until(pilot, lambda: any(key.endswith("\nbuy-and-hold") for key in results(pilot)))
        name = next(key for key in results(pilot) if "/" not in key)
        assert name.startswith("finvision ")
        plot = screen.query_one("#curve", CurvePlot)
        await until(pilot, lambda: name in plot.data.series)
        assert plot.data.series[name] == [float(point["value"]) for point in printed["equity"]]
        assert [len(one) for one in plot.data.series.values()] == [len(printed["equity"])] * 2
        progress = str(screen.query_one(RunProgress).content)
        assert f"trades {len(printed['trades'])} " in progress
        await pilot.press("v")
        falls = screen.query_one("#fall", CurvePlot)
        await until(pilot, lambda: name in falls.data.series)
        deepest = min(one for one in falls.data.series[name] if one is not None)
        assert deepest / 100 == pytest.approx(-abs(printed["metrics"]["max_drawdown"]))
        await pilot.press("v")
        await until(pilot, lambda: len(screen.query_one("#trades", Table).rows) == len(printed["trades"]))
        # d asks why: the decision that led to the trade, which fills at the open after it.
        await pilot.press("d")
        await until(pilot, lambda: bool(getattr(pilot.app.screen, "_decision", None)))
        trade, sessions = printed["trades"][-1], [point["session"] for point in printed["equity"]]
        made = pilot.app.screen._decision  # type: ignore[attr-defined]
        assert (made.key.symbol, made.action) == (trade["symbol"], trade["side"])
        assert str(made.key.session) == sessions[sessions.index(trade["session"]) - 1]
        await pilot.press("escape")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReadingScreen))
        assert "Decided by" in pilot.app.screen.text.plain  # type: ignore[attr-defined]
        await pilot.press("escape", "v", "space", "e")  # marked: what it is compared with does not depend on other runs
        await fill(
            pilot, decides="buy-and-hold", symbols="ORVL", first="2025-03-11", last="2025-03-24", warm_up_from=""
        )
        began = "paperdesk backtest --strategy buy-and-hold --symbols ORVL --from 2025-03-11 --to 2025-03-24"
        assert pilot.app.last_command == began  # type: ignore[attr-defined]
        await until(pilot, lambda: results(pilot).get("buy-and-hold 1", [""])[-1] == "done")
        assert screen.query_one("#results", Table).cursor_key == "buy-and-hold 1"
        # A rule tells nothing before its result.
        await until(pilot, lambda: "trades 1 " in str(screen.query_one(RunProgress).content))
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReadingScreen))
        assert "buy-and-hold beside finvision" in pilot.app.screen.text.plain  # type: ignore[attr-defined]
        assert "Sharpe" in pilot.app.screen.text.plain.title()  # type: ignore[attr-defined]
        assert any(row[0].startswith("* ") for row in results(pilot).values())
        await pilot.press("escape", "left_curly_bracket")
        await arrived(pilot)
        await shown(pilot)
        await pilot.press("c")
        await until(
            pilot,
            lambda: any(page.border_title == "Comparison, the whole runs" for page in pilot.app.screen.query("#page")),
        )
        await pilot.press("escape", "backslash", "v")
        chosen = pilot.app.bridge.present().backtests[0].spec.run  # type: ignore[attr-defined]
        fell = [100 * one for one in drawdowns(growth_of(stored_document(chosen)))[1:]]
        assert fell[0] < 0, "it begins with a loss"
        await until(pilot, lambda: falls.data.series.get("buy-and-hold 1") == pytest.approx(fell))
        await pilot.press("E")
        pilot.app.screen.query_one(Input).value = str(tmp_path)
        await pilot.press("enter")
        refused = f"{tmp_path} already exists: name another folder"
        await until(pilot, lambda: any(one.message == refused for one in pilot.app._notifications))
        await pilot.press("E")
        pilot.app.screen.query_one(Input).value = str(tmp_path / "out")
        await pilot.press("enter")
        exported = f"paperdesk runs export {chosen} --to {tmp_path / 'out'}"
        await until(pilot, lambda: pilot.app.last_command == exported)  # type: ignore[attr-defined]
        assert (tmp_path / "out" / "result.json").exists()


@pytest.mark.slow
async def test_a_run_that_was_stopped_goes_on_to_the_result_of_an_unbroken_one(fresh: Path, run: Run) -> None:
    async with opened() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await pilot.press("4", "e")
        await fill(pilot, decides="finvision", symbols="ORVL", first="2025-01-10", last="2025-03-24", warm_up_from="")
        await until(pilot, lambda: any(len(one.curve) > 2 for one in bridge.present().backtests))
        await pilot.press("x")
        await until(pilot, lambda: bridge.present().backtests[0].status == STOPPED)
        await until(
            pilot,
            lambda: (
                not any(one.running for one in bridge._backtests.values())
                and any(row[-1] == STOPPED for row in results(pilot).values())
            ),
        )
        stopped = bridge.present().backtests[0].spec.run
        hints = pilot.app.screen.query_one(Hints)
        assert "o resume" in str(hints.render())
        await pilot.press("left_curly_bracket")
        came_to = (await arrived(pilot)).place
        await until(pilot, lambda: "o resume" not in str(hints.render()))
        await pilot.press("o")
        assert [one.message for one in pilot.app._notifications][-1] == PAST
        assert bridge.present().backtests[0].status == STOPPED, "a record that is shown does not go on beneath"
        await pilot.press("backslash", "o")
        assert pilot.app.last_command == f"paperdesk backtest --resume {stopped}"  # type: ignore[attr-defined]
        assert bridge.present().backtests[0].name == "finvision 1"
        await until(
            pilot,
            lambda: (
                bridge.present().backtests[0].document is not None
                and not bridge.present().backtests[0].document["interrupted"]
            ),
        )
        progress = pilot.app.screen.query_one(RunProgress)
        await until(pilot, lambda: "test 2025-03-24" in str(progress.content))
        await pilot.press("left_curly_bracket")
        place = (await arrived(pilot)).place
        assert place is not None and came_to is not None and place.count > came_to.count
        await pilot.press("right_curly_bracket")
        place = (await arrived(pilot)).place
        assert place is not None and (str(place.session), place.number) == ("2025-03-24", place.count)
    reported = await asyncio.to_thread(run, "report", "--run", stopped, "--json")
    assert reported.code == 0, reported.err
    resumed = reported.json
    arguments = ("--preset", "finvision", "--symbols", "ORVL", "--from", "2025-01-10", "--to", "2025-03-24")
    unbroken = await asyncio.to_thread(run, "backtest", *arguments, "--json")
    assert unbroken.code == 0, unbroken.err
    assert unbroken.json["fingerprint"] == resumed["fingerprint"]


async def test_runs_that_began_in_one_minute_are_told_apart(fresh: Path, run: Run) -> None:
    by_minute: dict[str, list[str]] = {}
    arguments = ("--strategy", "macd", "--symbols", "ORVL", "--from", "2025-03-11", "--to", "2025-03-14", "--json")
    while not (cli_equivalents := next((one for one in by_minute.values() if len(one) > 1), [])):
        name = (await asyncio.to_thread(run, "backtest", *arguments)).json["run"]
        by_minute.setdefault(name[: len("backtest-20250701-1200")], []).append(name)
    async with opened() as pilot:
        await pilot.press("4")
        await until(pilot, lambda: sum("\n" not in key for key in results(pilot)) == sum(map(len, by_minute.values())))
        await pilot.press("g", "c")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReadingScreen))
        shown = pilot.app.screen.text.plain  # type: ignore[attr-defined]
        assert all(f" {name[-4:]} " in shown for name in cli_equivalents)  # the end of an id tells names apart
