"""While a recorded history is shown the kill switch and the question before quitting are the present's; orders cannot
be answered."""

from __future__ import annotations

from pathlib import Path

from conftest import Running, until
from fake_desk import FakeDesk, asking_desk

from engine.execution.controls import approvals, halted
from engine.journal.reader import JournalReader
from tui.screens.confirm import ConfirmScreen


async def test_the_past_can_be_halted_and_its_orders_not_be_answered(running: Running, tmp_path: Path) -> None:
    desk = asking_desk(tmp_path)

    def is_halted() -> bool:
        with JournalReader(desk.journal) as reader:
            return halted(reader) is not None

    async with running(desk=desk) as pilot:
        await pilot.press("left_curly_bracket")
        await until(pilot, lambda: pilot.app.bridge.snapshot().place is not None)  # type: ignore[attr-defined]
        await pilot.press("a")
        assert not isinstance(pilot.app.screen, ConfirmScreen)
        await pilot.press("K", "y")
        await until(pilot, is_halted)
        await until(pilot, lambda: pilot.app.bridge.present().controls.halted is not None)  # type: ignore[attr-defined]
        await pilot.press("K", "y")
        await until(pilot, lambda: not is_halted())
        with JournalReader(desk.journal) as reader:
            assert not approvals(reader)


async def test_quitting_a_paid_run_asks_in_the_past_too(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path, pause=10)
    desk.label = "gpt-5.2 by openai"
    async with running(desk=desk) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: pilot.app.bridge.present().desk.running)  # type: ignore[attr-defined]
        await pilot.press("left_curly_bracket")
        await until(pilot, lambda: pilot.app.bridge.snapshot().place is not None)  # type: ignore[attr-defined]
        await pilot.press("q")
        assert isinstance(pilot.app.screen, ConfirmScreen)
        await pilot.press("escape")
