"""The Ops screen shows checks, models and runs as `doctor`, `status` and the journal have them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from textual.pilot import Pilot

from engine.journal.reader import JournalReader
from engine.market.trading_hours import exchange_calendar
from engine.reports import amounts
from engine.settings import places
from tests.tui.commands.conftest import FEW_AGENTS, SESSIONS, Run
from tests.tui.conftest import arrived, cells, drawn, opened, until
from tui.screens.ops import budget_meter, schedule_text
from tui.screens.reading import ReadingScreen
from tui.screens.trail import TrailScreen
from tui.view.market_view import MarketView
from tui.view.snapshot import Snapshot
from tui.widgets.table import Table
from tui.widgets.text_lines import TextPane


def reading(pilot: Pilot[Any]) -> str:
    """The trail over the screen; empty where there is none."""
    return pilot.app.screen.page.as_text() if isinstance(pilot.app.screen, TrailScreen) else ""


def test_a_session_with_coins_is_due_only_once_their_day_is_over_too() -> None:
    stocks, coins = SimpleNamespace(symbols=("ORVL",)), SimpleNamespace(symbols=("ORVL", "WRNN-USD"))
    for services, hour, due in ((stocks, 20, 27), (stocks, 22, 28), (coins, 22, 27), (coins, 25, 28)):
        services.schedule, services.moves_on = None, False
        view = Snapshot(opened=cast(Any, services), market=MarketView(calendar=exchange_calendar()))
        now = datetime(2025, 1, 28, 0, 1, tzinfo=UTC) + timedelta(hours=hour)
        text = schedule_text(view, now, ())
        assert text.startswith(f"session 2025-01-{due} is due; r, or"), (services, hour)
        read = schedule_text(view, now, (), acts=False)
        assert read == f"session 2025-01-{due} is due; paperdesk --daily by cron"


@pytest.mark.parametrize(
    ("spent", "text"),
    [
        ("0", "free, 0% of today's $5.00 ▱▱▱▱▱▱▱▱▱▱"),
        ("1.20", "$1.20, 24% of today's $5.00 ▰▰▰▱▱▱▱▱▱▱"),
        ("5", "$5.00, 100% of today's $5.00 ▰▰▰▰▰▰▰▰▰▰"),
        (None, "cost unknown (today's budget: $5.00)"),
    ],
)
def test_the_days_budget_is_drawn_as_far_as_it_is_spent(spent: str | None, text: str) -> None:
    dollars = None if spent is None else Decimal(spent)
    assert budget_meter(dollars, Decimal(5), amounts.cost(dollars)) == text


async def test_checks_models_and_runs(run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.app.desk.demo_history.DUE", SESSIONS[-1])
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: datetime(2025, 3, 15, 0, 10, tzinfo=UTC))
    async with opened() as pilot:
        pilot.app.add_class("-plain")
        await pilot.press("5")
        await until(pilot, lambda: bool(cells(pilot, "runs") and cells(pilot, "checks")))
        runs, checks, models = cells(pilot, "runs"), cells(pilot, "checks"), cells(pilot, "models")
        rates = cells(pilot, "rates")
        await until(pilot, lambda: "- free, 0% of today's $5.00 ▱▱▱▱▱▱▱▱▱▱ -" in drawn(pilot))
        # The log goes back beyond the last run.
        await until(pilot, lambda: f"{SESSIONS[0]:%m-%d}" in pilot.app.screen.query_one("#log", TextPane).as_text())
        # d asks why: the last decision of the run, and of a run that decided nothing it says so.
        skipped = [row[4] for row in runs].index("skipped")
        for keys, text in ((("d",), f"{SESSIONS[-1]}"), (("escape", *["down"] * skipped, "d"), "has decided nothing")):
            await pilot.press(*keys)
            await until(pilot, lambda text=text: text in reading(pilot))  # type: ignore[misc]
        await pilot.press("escape", "g")
        # Enter goes back to the end of a run, and shows a finding whole.
        await pilot.press("down", "enter")
        view = await arrived(pilot)
        assert view.place is not None and view.place.session == SESSIONS[1]
        await pilot.press("less_than_sign")
        await arrived(pilot)
        await until(pilot, lambda: cells(pilot, "runs")[0][4:7] == ["no end", "-", "-"])
        await pilot.press("backslash", "R", *["shift+tab"] * 4, "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReadingScreen))
    found = run("doctor", "--json").json["checks"]
    assert {(row[1], row[2], row[3]) for row in checks if row[1] == "Journals"} == {
        (one["area"], one["name"], one["detail"]) for one in found if one["area"] == "Journals"
    }
    done = [row[2] for row in runs if row[4] == "done"]
    assert done == [str(session) for session in reversed(SESSIONS)]
    assert [row[2] for row in runs if row[4] == "skipped"] == ["2025-03-13"]
    assert {row[5] for row in runs if row[4] == "done"} == {"0"}
    status = run("status", "--json").json
    ends = status["operation"]["runs"]
    assert [row[5] for row in runs] == ["-" if one["exit_code"] is None else str(one["exit_code"]) for one in ends]
    assert [(one["model"], one["limited"]) for one in status["operation"]["rates"]] == [("offline", 0)]
    details = {one["name"]: one["detail"] for one in found}
    assert details["last run"] == f"{ends[0]['id']}: done, exit code 0"
    assert details["rates"].startswith("offline: ") and "in the last minute" in details["rates"]
    counts = status["counts"]
    told = [row[8] for row in runs if row[4] == "done"]
    assert sum(int(text.split()[0]) for text in told) == counts["decisions"]
    with JournalReader(places.desk_journal("demo")) as reader:
        asked = len(reader.answers(run=ends[0]["id"]))
    assert sum(int(row[2]) for row in models) == asked < status["model"]["calls"], "those of the last run's day"
    # The rules know no tokens and no limit; how many requests the last minute had depends on when one looks.
    assert {(row[0], *row[2:]) for row in rates} == {("offline", "0", "0", "free", "free")}
    assert all(0 <= int(row[1]) <= asked for row in rates)


async def test_the_desk_is_checked_again_after_a_run(run: Run, fresh: Path) -> None:
    def journals() -> str:
        return " ".join(row[3] for row in cells(pilot, "checks") if row[1] == "Journals")

    async with opened() as pilot:
        await pilot.press("5")
        await until(pilot, lambda: "has not run yet" in journals())
        await asyncio.to_thread(run, "--daily", "--session", str(SESSIONS[0]))
        await until(pilot, lambda: bool(cells(pilot, "runs")) and "has not run yet" not in journals())


@pytest.mark.slow
async def test_the_last_run_that_cron_started_is_named(run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def started() -> list[tuple[str, str]]:
        return [(row[2], row[7]) for row in cells(pilot, "runs")]

    for name, value in FEW_AGENTS.items():  # not those of the recorded history, with which another process begins
        monkeypatch.setenv(name, value)
    async with opened() as pilot:
        command = (sys.executable, "-c", "from tui.cli import main; main()", "--daily", "--session", str(SESSIONS[0]))
        await asyncio.to_thread(subprocess.run, command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
        await pilot.press("5")
        await until(pilot, lambda: started() == [(str(SESSIONS[0]), "cron")])
        title = str(pilot.app.screen.query_one("#runs", Table).border_title)
        with JournalReader(places.desk_journal("demo")) as reader:
            first = reader.runs()[0]
        assert title == f"Runs  last by cron {first.started:%Y-%m-%d %H:%M} UTC, done"
        monkeypatch.setattr("tui.commands.daily._in_terminal", lambda: True)
        await asyncio.to_thread(run, "--daily", "--session", str(SESSIONS[1]))
        await until(pilot, lambda: started()[0] == (str(SESSIONS[1]), "terminal"))
        await pilot.press("r")
        await until(pilot, lambda: started()[0][1] == "app" and cells(pilot, "runs")[0][4] == "done")
        assert pilot.app.screen.query_one("#runs", Table).border_title == title
    runs = run("status", "--json").json["operation"]["runs"]
    assert [one["trigger"] for one in runs if one["outcome"] == "done"] == ["app"]  # of the latest sixty
