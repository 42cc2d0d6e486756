"""The kill switch and approval in the app: by key, from another process, at every size; nothing by one key alone."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from conftest import Running, bar, shown, until
from fake_desk import BOUGHT, NOW, SOLD, SYMBOLS, FakeDesk, asking_desk
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Static

from engine.domain.order import Order, OrderState
from engine.errors import MissingData
from engine.execution.controls import Paused, approvals, carry_out, halt, halted, pause, pause_of, unpause
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.commands import Approve, Undo
from engine.reports.documents.control_state import Waiting
from engine.reports.documents.controls import control_state
from tui.screens.confirm import ConfirmScreen
from tui.settings.app_settings import app_settings
from tui.widgets.screen_bars import HALTED, PAPER, PAUSED
from tui.widgets.table import Table

REPO = Path(__file__).parents[2]
HALTS = (
    "import sys; from datetime import UTC, datetime; from pathlib import Path; from engine.execution import controls; "
    "controls.halt(Path(sys.argv[1]), datetime(2024, 5, 1, tzinfo=UTC), 'from elsewhere')"
)


def orders(pilot: Pilot[Any]) -> Table:
    return pilot.app.screen_stack[0].query_one("#orders", Table)


def answers(pilot: Pilot[Any]) -> str:
    """The keys that the border of the orders names."""
    return Content.from_markup(orders(pilot).border_subtitle or "").plain


def stands(pilot: Pilot[Any]) -> list[str]:
    """Symbol and standing of the open orders, as the table shows them."""
    return [f"{row.cells[0].text} {row.cells[-1].text}" for row in orders(pilot).rows]


def words(desk: FakeDesk) -> dict[str, bool]:
    with JournalReader(desk.journal) as reader:
        return {name: word.approved for name, word in approvals(reader).items()}


def state_of(desk: FakeDesk, order: Order) -> OrderState:
    with JournalReader(desk.journal) as reader:
        return next(entry.order.state for entry in reader.orders() if entry.order.id == order.id)


def is_halted(desk: FakeDesk) -> bool:
    try:
        with JournalReader(desk.journal) as reader:
            return halted(reader) is not None
    except MissingData:  # there is none yet, or nothing in it while it is being made
        return False


async def test_the_kill_switch_halts_and_resumes_a_desk_that_never_ran(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path)
    async with running(desk=desk) as pilot:
        assert HALTED not in bar(pilot)
        await pilot.press("K", "y")
        await until(pilot, lambda: bar(pilot).startswith(PAPER + HALTED))
        assert is_halted(desk) and "from the app" in bar(pilot)
        assert pilot.app.last_command == "paperdesk halt --reason 'from the app'"  # type: ignore[attr-defined]
        await pilot.press("K")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: HALTED not in bar(pilot))
        assert not is_halted(desk)
        assert pilot.app.last_command == "paperdesk resume --only halt"  # type: ignore[attr-defined]
        for screen, stands in (("5", True), ("7", False)):
            await pilot.press(screen, "K")
            await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
            await pilot.press("y")
            await until(pilot, lambda stands=stands: (HALTED in bar(pilot)) is stands)  # type: ignore[misc]
            assert is_halted(desk) is stands


async def test_p_pauses_the_desk_in_its_journal_and_no_cycle_begins_until_the_next_p(
    running: Running, tmp_path: Path
) -> None:
    desk = FakeDesk(tmp_path)
    async with running(desk=desk) as pilot:
        await pilot.press("p")
        await until(pilot, lambda: bar(pilot).startswith(PAPER + PAUSED))
        assert pause_of(desk.journal) == Paused(NOW, "from the app") and "from the app" in bar(pilot)
        assert pilot.app.last_command == "paperdesk pause --reason 'from the app'"  # type: ignore[attr-defined]
        for key in ("r", "n"):
            await pilot.press(key)
            await pilot.pause()
            assert not pilot.app.bridge.snapshot().busy  # type: ignore[attr-defined]
        assert desk.cycles == 0
        await pilot.press("p")
        await until(pilot, lambda: PAUSED not in bar(pilot))
        assert pause_of(desk.journal) is None
        assert pilot.app.last_command == "paperdesk resume --only pause"  # type: ignore[attr-defined]
        await pilot.press("r")
        await until(pilot, lambda: desk.cycles == 1)


async def test_a_pause_of_another_process_shows_on_the_bar_and_on_ops(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path)
    pause(desk.journal, NOW, "on holiday")
    halt(desk.journal, NOW, "and halted")
    async with running(desk=desk) as pilot:
        assert bar(pilot).startswith(PAPER + HALTED + PAUSED) and "and halted" in bar(pilot)
        await pilot.press("5")
        schedule = pilot.app.screen.query_one("#schedule", Static)
        await until(pilot, lambda: "PAUSED since 2024-05-01 00:00 UTC: on holiday" in str(schedule.render()))
        unpause(desk.journal, NOW)
        await until(pilot, lambda: PAUSED not in bar(pilot) and HALTED in bar(pilot))
        assert "PAUSED" not in str(schedule.render())


async def test_only_y_halts(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path)
    async with running(desk=desk) as pilot:
        for key in ("escape", "n", "enter", "Y", "K", "space", "q", "ctrl+q"):
            if not isinstance(pilot.app.screen, ConfirmScreen):
                await pilot.press("K")
                await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
            await pilot.press(key)
            await pilot.pause()
    # A word that was said is written before the desk ends.
    assert not is_halted(desk)


async def test_a_halt_reaches_the_journal_while_a_cycle_runs(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path, pause=10)
    async with running(desk=desk) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: pilot.app.bridge.snapshot().busy)  # type: ignore[attr-defined]
        await pilot.press("K", "y")
        await until(pilot, lambda: is_halted(desk))
        assert pilot.app.bridge.snapshot().busy  # type: ignore[attr-defined]
        await until(pilot, lambda: HALTED in bar(pilot))


async def test_a_halt_of_another_process_shows(running: Running, asking: FakeDesk) -> None:
    async with running(desk=asking) as pilot:
        assert HALTED not in bar(pilot)
        halting = [sys.executable, "-c", HALTS, str(asking.journal)]
        subprocess.run(halting, cwd=REPO, env={**os.environ}, check=True, timeout=600)
        await until(pilot, lambda: HALTED in bar(pilot))
        assert "from elsewhere" in bar(pilot)


async def test_halted_cannot_be_missed_at_any_size(running: Running, asking: FakeDesk) -> None:
    halt(asking.journal, datetime(2024, 5, 1, tzinfo=UTC), "from elsewhere")
    async with running((160, 50), desk=asking) as pilot:
        for size in ((160, 50), (120, 40), (80, 24), (60, 15), (39, 9), (20, 3)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: len(bar(pilot)) == size[0])  # type: ignore[misc]
            assert bar(pilot).startswith(PAPER + HALTED)


async def test_orders_name_only_the_keys_that_answer_them_now(running: Running, asking: FakeDesk) -> None:
    settings = app_settings(bindings={"desk.veto": "ctrl+v"})
    async with running(desk=asking, settings=settings) as pilot:
        await until(pilot, lambda: answers(pilot) == "a approve  ctrl+v veto  e edit")
        await pilot.press("less_than_sign")
        await until(pilot, lambda: pilot.app.bridge.snapshot().place is not None)  # type: ignore[attr-defined]
        await until(pilot, lambda: not answers(pilot))
    async with running(desk=asking, settings=app_settings(read_only=True)) as pilot:
        await until(pilot, lambda: len(orders(pilot).rows) == 3)
        assert not answers(pilot)


async def test_a_and_x_ask_first_and_then_the_order_is_sent_or_ended(running: Running, asking: FakeDesk) -> None:
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: len(orders(pilot).rows) == 3)
        assert stands(pilot) == ["AAA-USD waits 24h00m", "BBB-USD waits 24h00m", "CCC-USD acknowledged"]
        assert "2 to approve" in bar(pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        assert words(asking) == {}
        await pilot.press("y")
        await until(pilot, lambda: state_of(asking, BOUGHT) is OrderState.ACKNOWLEDGED)
        assert words(asking) == {BOUGHT.id: True}
        assert pilot.app.last_command == f"paperdesk approve {BOUGHT.id}"  # type: ignore[attr-defined]
        await until(
            pilot, lambda: stands(pilot)[0] == "BBB-USD waits 24h00m" and "AAA-USD acknowledged" in stands(pilot)
        )
        assert "1 to approve" in bar(pilot)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: state_of(asking, SOLD) is OrderState.CANCELED)
        await until(pilot, lambda: "to approve" not in bar(pilot) and len(orders(pilot).rows) == 2)
        assert "asks before orders" in bar(pilot)
        assert words(asking) == {BOUGHT.id: True, SOLD.id: False}


async def test_the_order_under_the_cursor_is_meant(running: Running, asking: FakeDesk) -> None:
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: len(orders(pilot).rows) == 3)
        pilot.app.screen.focus_pane("orders")  # type: ignore[attr-defined]
        await pilot.press("j", "x", "y")
        await until(pilot, lambda: words(asking) == {SOLD.id: False})
        assert pilot.app.last_command == f"paperdesk veto {SOLD.id}"  # type: ignore[attr-defined]
        await until(pilot, lambda: len(orders(pilot).rows) == 2)
        await pilot.press("G", "x")
        await shown(pilot)
        assert not isinstance(pilot.app.screen, ConfirmScreen), "an order that was sent cannot be vetoed"


async def test_all_that_wait_are_approved_at_once(running: Running, asking: FakeDesk) -> None:
    async with running((80, 24), desk=asking) as pilot:
        await until(pilot, lambda: len(orders(pilot).rows) == 3)
        await pilot.press("a", "A")
        await until(pilot, lambda: words(asking) == {BOUGHT.id: True, SOLD.id: True})
        assert pilot.app.last_command == f"paperdesk approve {BOUGHT.id} {SOLD.id}"  # type: ignore[attr-defined]
        await until(pilot, lambda: state_of(asking, SOLD) is OrderState.ACKNOWLEDGED)
        assert asking.submissions <= 2


async def test_an_answer_that_another_process_takes_back_is_shown_as_taken_back(
    running: Running, asking: FakeDesk
) -> None:
    asking.undo_seconds = 600.0
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: len(orders(pilot).rows) == 3)
        for _ in range(2):
            await pilot.press("a")
            await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
            await pilot.press("y")
            await until(pilot, lambda: "AAA-USD approved" in stands(pilot) and words(asking) == {BOUGHT.id: True})
            carry_out(asking.journal, Undo(BOUGHT.id), NOW)
            await until(pilot, lambda: "AAA-USD waits 24h00m" in stands(pilot) and "2 to approve" in bar(pilot))


async def test_an_approval_that_a_killed_app_has_left_is_sent(running: Running, asking: FakeDesk) -> None:
    carry_out(asking.journal, Approve(BOUGHT.id), NOW)
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: "AAA-USD acknowledged" in stands(pilot))
        assert state_of(asking, SOLD) is OrderState.INTENDED


async def test_nobody_is_asked_about_the_same_order_twice(running: Running, asking: FakeDesk) -> None:
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: len(orders(pilot).rows) == 3)
        await pilot.press("a", "y", "x", "y")
        await until(pilot, lambda: len(words(asking)) == 2)
        assert words(asking) == {BOUGHT.id: True, SOLD.id: False}


async def test_approved_on_a_halted_desk_is_kept_and_said(running: Running, asking: FakeDesk) -> None:
    async with running(desk=asking) as pilot:
        await until(pilot, lambda: len(orders(pilot).rows) == 3)
        await pilot.press("K", "y")
        await until(pilot, lambda: HALTED in bar(pilot))
        await pilot.press("a", "y")
        await until(pilot, lambda: "AAA-USD approved" in stands(pilot))
        assert state_of(asking, BOUGHT) is OrderState.INTENDED


async def test_without_orders_a_and_x_do_nothing_and_a_small_screen_has_no_pane_for_them(running: Running) -> None:
    async with running((80, 24)) as pilot:
        await pilot.press("a", "x")
        assert not isinstance(pilot.app.screen, ConfirmScreen)
        await pilot.press("r")  # before the first cycle the pane has the key that runs it
        await until(pilot, lambda: not orders(pilot).display)


def test_the_state_of_an_order_follows_mode_answer_and_time(asking: FakeDesk) -> None:
    def seen(asks: bool = True, later: timedelta = timedelta(0)) -> dict[str, Waiting]:
        hour = timedelta(hours=1)
        with JournalReader(asking.journal) as reader:
            times = SimpleNamespace(stays_until=lambda session: NOW + hour, fills_at=lambda order, now: None)
            state = control_state(reader, asks=asks, times=times, now=NOW + later)
        return {one.order.symbol: one.state for one in state.orders}

    assert seen() == {SYMBOLS[0]: Waiting.APPROVAL, SYMBOLS[1]: Waiting.APPROVAL, SYMBOLS[2]: Waiting.SENT}
    assert seen(asks=False)[SYMBOLS[0]] is Waiting.HELD_BACK
    assert seen(later=timedelta(hours=1))[SYMBOLS[0]] is Waiting.LATE
    with JournalWriter(asking.journal) as writer:
        writer.order_moved(BOUGHT.moved(OrderState.SUBMITTING), NOW)
    assert seen()[SYMBOLS[0]] is Waiting.UNKNOWN


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
