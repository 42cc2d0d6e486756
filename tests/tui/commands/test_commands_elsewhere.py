"""Commands that an operator gives in another program stand in the app's log, and its own stand there once."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from fake_desk import BOUGHT, FakeDesk
from textual.pilot import Pilot

from engine.app.orders.controls import halt_desk, resume_desk
from engine.execution.controls import carry_out
from engine.messages.commands import Approve, Edit, Undo
from tests.tui.commands.conftest import Run
from tests.tui.conftest import Running, opened, until
from tui.desk.journal_tail import JournalTail

NOW = datetime(2025, 3, 15, 12, tzinfo=UTC)
HALTED = "HALTED: no order is sent until the desk is resumed"


def drawn(pilot: Pilot[Any]) -> str:
    """The screen as text."""
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())


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
