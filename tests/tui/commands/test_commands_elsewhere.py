"""Commands that an operator gives in another program stand in the app's log, and its own stand there once."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from engine.app.controls import halt_desk, resume_desk
from tests.tui.commands.conftest import Run
from tests.tui.conftest import opened, until

NOW = datetime(2025, 3, 15, 12, tzinfo=UTC)
HALTED = "HALTED: no order is sent until the desk is resumed"


def logged(pilot: Pilot[Any]) -> Counter[str]:
    """How often each line stands in the log."""
    return Counter(line.text for line in pilot.app.bridge.snapshot().desk.lines)  # type: ignore[attr-defined]


async def test_commands_of_other_programs_and_of_this_one_are_logged_once(run: Run, desk: Path) -> None:
    run("halt", "--reason", "before it was opened")
    run("resume")
    async with opened() as pilot:
        await until(pilot, lambda: pilot.app.bridge.snapshot().services is not None)  # type: ignore[attr-defined]
        await asyncio.to_thread(halt_desk, "demo", NOW, "earnings")
        await until(pilot, lambda: logged(pilot)[f"{HALTED}: earnings"] == 1)
        await asyncio.to_thread(resume_desk, "demo", NOW)
        await until(pilot, lambda: logged(pilot)["the desk goes on"] == 1)
        await pilot.press("K", "y")
        await until(pilot, lambda: logged(pilot)[HALTED] == 1)
        await asyncio.to_thread(resume_desk, "demo", NOW)
        await until(pilot, lambda: logged(pilot)["the desk goes on"] == 2)
        assert logged(pilot)[HALTED] == 1 and not any("before it was opened" in text for text in logged(pilot))
