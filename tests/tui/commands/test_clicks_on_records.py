"""The mouse on full screens: a click on a row of any table chooses it, one on the time bar goes to its place."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fake_desk import BOUGHT, FakeDesk
from textual.geometry import Offset
from textual.pilot import Pilot

from engine.app.orders.controls import halt_desk, resume_desk
from engine.domain.order import Order, Side, order_id
from engine.domain.run import CashFlow
from engine.execution.controls import carry_out
from engine.journal.entries import OrderEntry
from engine.journal.writer import JournalWriter
from engine.messages.commands import Approve, Edit, Undo
from engine.settings import places
from tests.tui.commands.conftest import SESSIONS, Run
from tests.tui.conftest import Running, arrived, drawn, opened, shown, until
from tests.tui.test_clicks import click, click_at, every_click_hits
from tui.desk.journal_tail import JournalTail
from tui.screens.frame import TALL
from tui.screens.symbol_search import SymbolSearchScreen
from tui.screens.trail import TrailScreen
from tui.settings.keys import SCREENS
from tui.widgets.navigation_bars import TimeBar
from tui.widgets.table import Table

AFTER = datetime(2025, 3, 14, 22, tzinfo=UTC)
"""After the close of the last session."""
PARTS = 4
"""Parts of a screen at most, which `v` shows in turn."""


@pytest.fixture
async def full(debating: Path, backtest_home: Path, run: Run) -> None:
    """The home of a desk that has something for every table: beside three sessions of debates a backtest, an arena,
    orders and cash flows."""
    shutil.copytree(backtest_home, debating, dirs_exist_ok=True)
    await asyncio.to_thread(run, "arena", "--agents", "controls", "--days", "2", "--run", "one")
    with JournalWriter(places.desk_journal("demo")) as journal:
        for n, symbol in enumerate(("ORVL", "HLXM"), 1):
            paid = CashFlow(session=SESSIONS[-1], symbol=symbol, kind="dividend", amount=Decimal(n))
            journal.cash_flow("", paid)
            meant = Order(
                id=order_id("demo", SESSIONS[-1], n, symbol, Side.BUY),
                symbol=symbol,
                side=Side.BUY,
                session=SESSIONS[-1],
                notional=Decimal(100 * n),
                reason="",
            )
            journal.order_intended(OrderEntry(order=meant, run="", desk="demo", cycle=n, time=AFTER))


@pytest.mark.slow
async def test_a_click_chooses_the_row_that_it_hits_in_every_table(full: None) -> None:
    async with opened((120, TALL)) as pilot:
        for mode, (key, _, _) in SCREENS.items():
            await pilot.press(key)
            await until(pilot, lambda mode=mode: pilot.app.current_mode == mode)  # type: ignore[misc]
            left = set(pilot.app.screen.query(Table))
            for _ in range(PARTS):
                await shown(pilot)
                for table in [one for one in left if one.display and one.rows]:
                    await every_click_hits(pilot, table)
                    left.remove(table)
                if left:
                    await pilot.press("v")
            assert {table.id for table in left} <= {"rates"}, mode  # rules have none
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, SymbolSearchScreen))
        found = pilot.app.screen.query_one(Table)
        await until(pilot, lambda: bool(found.rows))
        await every_click_hits(pilot, found)


async def test_a_click_on_the_time_bar_goes_to_that_place_of_the_track_or_back_to_the_present(desk: Path) -> None:
    async with opened() as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        bar = pilot.app.screen.query_one(TimeBar)
        await until(pilot, lambda: bar.place is not None and bar.place.count > 100 and bar.size.width == 120)
        count = bar.place.count  # type: ignore[union-attr]
        for part in (0.0, 1.0, 0.5):
            first, width = bar._track
            column = round(part * (width - 1))
            number = 1 + round(column / (width - 1) * (count - 1))
            await click_at(pilot, bar.region.offset + Offset(first + column, 0))
            await until(pilot, lambda number=number: bar.place is not None and bar.place.number == number)  # type: ignore[misc]
        await click_at(pilot, bar.region.offset)  # neither the track nor the way back
        await arrived(pilot)
        assert bar.display
        await click(pilot, "\\ present")
        await until(pilot, lambda: not bar.display)


async def test_a_click_on_the_border_of_the_reasons_of_a_decision_opens_its_trail(desk: Path) -> None:
    async with opened() as pilot:
        await pilot.press("2")
        await click(pilot, "enter shows all")
        await until(pilot, lambda: isinstance(pilot.app.screen, TrailScreen) and bool(pilot.app.screen.page.parts))
        trail = pilot.app.screen
        assert isinstance(trail, TrailScreen)
        await click(pilot, "o all")
        await until(pilot, lambda: trail.page.open == set(trail.page.parts.values()))
        first = trail.page.border_title
        await click(pilot, "n next")
        await until(pilot, lambda: trail.page.border_title != first)
        await click(pilot, "esc back")
        await until(pilot, lambda: pilot.app.screen is not trail)


NOW = datetime(2025, 3, 15, 12, tzinfo=UTC)
HALTED = "HALTED: no order is sent until the desk is resumed"


def logged(pilot: Pilot[Any]) -> Counter[str]:
    """How often each line stands in the log."""
    return Counter(line.text for line in pilot.app.bridge.snapshot().desk.lines)  # type: ignore[attr-defined]


async def test_commands_of_other_programs_and_of_this_one_are_logged_once(run: Run, desk: Path) -> None:
    run("halt", "--reason", "before it was opened")
    run("resume")
    async with opened() as pilot:
        await until(pilot, lambda: pilot.app.bridge.snapshot().opened is not None)  # type: ignore[attr-defined]
        await asyncio.to_thread(halt_desk, "demo", NOW, "earnings")
        await until(pilot, lambda: logged(pilot)[f"{HALTED}: earnings"] == 1)
        await asyncio.to_thread(resume_desk, "demo", NOW)
        await until(pilot, lambda: logged(pilot)["the desk goes on"] == 2)
        await pilot.press("K", "y")
        await until(pilot, lambda: logged(pilot)[HALTED] == 2)
        await asyncio.to_thread(resume_desk, "demo", NOW)
        await until(pilot, lambda: logged(pilot)["the desk goes on"] == 3)
        assert logged(pilot)[HALTED] == 2, "once before it was opened, as the journal has it"
        # In the past the halt and the pause of now are named.
        await pilot.press("K", "y", "less_than_sign")
        await until(pilot, lambda: "HALTED now" in drawn(pilot))
        await pilot.press("backslash")
        await until(pilot, lambda: " HALTED " in drawn(pilot) and "HALTED now" not in drawn(pilot))
        await pilot.press("K", "y", "p")
        await until(pilot, lambda: "PAUSED" in drawn(pilot) and "HALTED" not in drawn(pilot).split("\n")[0])
        await pilot.press("less_than_sign")
        await until(pilot, lambda: "PAUSED now" in drawn(pilot))


async def test_each_undo_names_what_it_took_back_and_those_of_this_app_are_logged_once(
    running: Running, asking: FakeDesk
) -> None:
    asking.undo_seconds = 60.0  # type: ignore[assignment]
    tail = JournalTail(asking.journal)
    given = [Edit(BOUGHT.id, quantity=Decimal(60)), Approve(BOUGHT.id), Undo(BOUGHT.id), Undo(BOUGHT.id)]
    name = f"BUY {BOUGHT.symbol}"
    words = [
        f"edited: {name} to 60 shares",
        f"approved: {name}",
        f"approval taken back: {name}",
        f"edit taken back: {name}",
    ]
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: pilot.app.bridge.snapshot().opened is not None)  # type: ignore[attr-defined]
        for command in given:
            carry_out(asking.journal, command, asking.clock.now())
        assert [one.description for one in tail.growth().commands] == words
        await until(pilot, lambda: all(logged(pilot)[text] == 1 for text in words))
        await pilot.press("a", "y")
        await until(pilot, lambda: any("it can be undone for 60 s" in text for text in logged(pilot)))
        await pilot.press("u")
        await until(pilot, lambda: logged(pilot)[words[2]] == 2)
        assert logged(pilot)[words[1]] == 1, "its own stands there with the time for an undo"
