"""The mouse: a click on a row, a hint, an answer of a dialog, a key of the error bar or a pane does what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Running, until
from fake_desk import BOUGHT, SOLD, FakeDesk
from textual.command import CommandPalette
from textual.containers import Vertical
from textual.events import MouseDown, MouseUp
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.widgets import Input, Static

from engine.execution.controls import approvals, halted
from engine.journal.reader import JournalReader
from tui.app.app import PaperdeskApp
from tui.screens.ask import AskScreen
from tui.screens.confirm import ConfirmScreen
from tui.screens.desk import DeskScreen
from tui.screens.frame import JumpScreen
from tui.set_up.first_configuration import new_account
from tui.set_up.set_up_offer import SetUpOffer
from tui.settings.invocation import Invocation
from tui.settings.keys import KEYS, SCREENS, WHY, hints
from tui.widgets.navigation_bars import PALETTE, Hints
from tui.widgets.screen_bars import ErrorBar
from tui.widgets.table import Table


def lines(pilot: Pilot[Any]) -> list[str]:
    """The lines that the screen shows."""
    return [strip.text for strip in pilot.app.screen._compositor.render_strips()]


def table(pilot: Pilot[Any], name: str) -> Table:
    """A table of the screen that is shown."""
    return pilot.app.screen.query_one(f"#{name}", Table)


async def click_at(pilot: Pilot[Any], place: Offset) -> None:
    """Click as a terminal tells of it: Pilot would wait three times, for every part of it."""
    for part in (MouseDown, MouseUp):
        pilot.app.post_message(part(None, *place, 0, 0, 1, False, False, False, *place))
    await pilot.pause()


async def click(pilot: Pilot[Any], text: str) -> None:
    """Click on the last letter of a text, once the screen shows it."""
    await until(pilot, lambda: any(text in line for line in lines(pilot)))
    y, line = next((y, line) for y, line in enumerate(lines(pilot)) if text in line)
    await click_at(pilot, Offset(line.index(text) + len(text) - 1, y))


async def every_click_hits(pilot: Pilot[Any], clicked: Table) -> None:
    """Click on each line of a table, from the one below its rows: the row that is drawn there is chosen; frame and
    heading are none. Rows are drawn on as many lines as there is room for."""
    region, inner, hit = clicked.region, clicked.scrollable_content_region, 0
    for y in reversed(range(region.y, min(region.bottom, inner.y + len(clicked.rows) + 2))):
        drawn, before = lines(pilot)[y][inner.x : inner.right], clicked.cursor_key
        # Behind the mark of the cursor, which moves.
        on = [row.key for row in clicked.rows if clicked._row_strip(row, inner.width).text[1:] == drawn[1:]]
        await click_at(pilot, Offset(inner.x + 2, y))
        if pilot.app.screen is not clicked.screen:  # a click on the row under the cursor opened it
            await pilot.press("escape")
        assert clicked.cursor_key in (on or [before]), drawn
        hit += bool(on)
    assert hit == min(len(clicked.rows), inner.height - 1) > 0


@pytest.mark.parametrize("size", [pytest.param((120, 40), marks=pytest.mark.slow), (80, 24)])
async def test_a_click_chooses_the_row_that_it_hits(running: Running, tmp_path: Path, size: tuple[int, int]) -> None:
    symbols = [f"S{n:02}-USD" for n in range(40)]
    async with running(size, desk=FakeDesk(tmp_path, symbols=symbols)) as pilot:
        watchlist = table(pilot, "watchlist")
        await every_click_hits(pilot, watchlist)
        await pilot.press("G")
        await pilot.pause()
        assert watchlist.scroll_offset.y > 0
        await every_click_hits(pilot, watchlist)


async def test_a_click_chooses_the_order_that_it_hits_and_a_acts_on_it(running: Running, asking: FakeDesk) -> None:
    async with running(desk=asking) as pilot:
        await every_click_hits(pilot, table(pilot, "orders"))
        first, second, _ = table(pilot, "orders").rows
        for row, key in ((1, "a"), (0, "x")):
            await pilot.click("#orders", offset=(5, 2 + row))
            await pilot.press(key)
            await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
            asked = "\n".join(str(one.render()) for one in pilot.app.screen.query(Static))
            assert (first, second)[row].cells[0].text in asked
            assert (first, second)[1 - row].cells[0].text not in asked
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(pilot.app.screen, DeskScreen))


EVERY = frozenset(word for key in KEYS for word in key.when.split())
"""The circumstances in which every hint of a screen is shown."""


async def test_a_click_on_a_hint_asks_for_what_its_key_does(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def note(app: PaperdeskApp, action: Any, *_: object) -> bool:
        asked.append(action)
        return True

    monkeypatch.setattr("tui.widgets.navigation_bars.active_contexts", lambda view: EVERY)
    async with running((400, 40)) as pilot:
        for mode in SCREENS:
            await pilot.press(SCREENS[mode][0])
            await until(pilot, lambda mode=mode: pilot.app.current_mode == mode)  # type: ignore[misc]
            pilot.app.screen.set_focus(None)  # a field would take the keys
            bar, end = pilot.app.screen.query_one(Hints), 0
            with monkeypatch.context() as noting:
                noting.setattr(PaperdeskApp, "run_action", note)
                for hint in (*hints(mode, EVERY), PALETTE):
                    label = f"{hint.key} {hint.text}".strip()
                    begin = bar.render_line(0).text.index(label, end)
                    end = begin + len(label)
                    await click_at(pilot, bar.content_region.offset + Offset(begin, 0))
                    keys = next(key.keys for key in KEYS if key.action == hint.action and mode in key.screens)
                    await pilot.press(keys.split(",")[0])
                    clicked, pressed = asked
                    assert clicked.removeprefix("app.") == pressed.removeprefix("app.")  # Textual's own key has none
                    asked.clear()


def waiting(desk: FakeDesk) -> set[str]:
    """The symbols of the orders that were not answered."""
    with JournalReader(desk.journal) as reader:
        answered = approvals(reader)
    return {order.symbol for order in (BOUGHT, SOLD) if order.id not in answered}


async def answers(pilot: Pilot[Any], key: str, choice: str) -> None:
    """Press a key, and click on an answer to the question that comes."""
    await pilot.press(key)
    await until(
        pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen) and any(choice in one for one in lines(pilot))
    )
    await click(pilot, choice)
    await until(pilot, lambda: not isinstance(pilot.app.screen, ConfirmScreen))


async def test_every_answer_about_an_order_can_be_clicked_wherever_it_is_wrapped_to(
    running: Running, asking: FakeDesk
) -> None:
    asking.undo_seconds = 600.0
    async with running((48, 20), desk=asking) as pilot:
        await until(pilot, lambda: len(pilot.app.bridge.snapshot().controls.waiting) == 2)  # type: ignore[attr-defined]
        await answers(pilot, "a", "esc cancel")
        await answers(pilot, "a", "e edit")
        assert isinstance(pilot.app.screen, AskScreen)
        pilot.app.screen.query_one(Input).value = "$3000"
        await pilot.press("enter")
        await until(pilot, lambda: "undo edit" in str(pilot.app.screen.query("#choices").first(Static).content))
        await click(pilot, "u undo edit")
        await until(pilot, lambda: pilot.app.screen is pilot.app.screen_stack[0])
        await answers(pilot, "x", "r with a reason")
        assert isinstance(pilot.app.screen, AskScreen)
        await pilot.press("escape")
        assert waiting(asking) == {BOUGHT.symbol, SOLD.symbol}
        await answers(pilot, "a", "y approve")
        await until(pilot, lambda: waiting(asking) == {SOLD.symbol})
        await answers(pilot, "x", "y veto")
        await until(pilot, lambda: not waiting(asking))


@pytest.mark.parametrize(("key", "choice", "approved"), [("a", "approve all 2", True), ("x", "veto all 2", False)])
async def test_all_orders_are_answered_by_a_click(
    running: Running, asking: FakeDesk, key: str, choice: str, approved: bool
) -> None:
    async with running(desk=asking) as pilot:
        await answers(pilot, key, choice)
        await until(pilot, lambda: not waiting(asking))
    with JournalReader(asking.journal) as reader:
        assert {one.approved for one in approvals(reader).values()} == {approved}


async def test_a_click_halts_and_resumes_the_desk(running: Running, asking: FakeDesk) -> None:
    def is_halted() -> bool:
        with JournalReader(asking.journal) as reader:
            return halted(reader) is not None

    async with running(desk=asking) as pilot:
        await answers(pilot, "K", "esc cancel")
        await answers(pilot, "K", "y halt")
        await until(pilot, lambda: pilot.app.bridge.snapshot().controls.halted is not None)  # type: ignore[attr-defined]
        assert is_halted()
        await answers(pilot, "K", "y resume")
        await until(pilot, lambda: not is_halted())


async def test_a_paid_run_is_left_by_a_click(running: Running, tmp_path: Path) -> None:
    desk = FakeDesk(tmp_path, pause=10)
    desk.label = "gpt-5.2 by openai"
    async with running(desk=desk) as pilot:
        await pilot.press("r")
        await answers(pilot, "q", "y quit")
        await until(pilot, lambda: pilot.app._exit)


async def test_the_keys_of_the_error_bar_can_be_clicked(running: Running, tmp_path: Path) -> None:
    desk, account = FakeDesk(tmp_path, breaks=True), new_account(Invocation(config_file=str(tmp_path / "config.toml")))
    mends = SetUpOffer("Keys", "", lambda: account, error=" ", hint="enter API keys")
    async with running(desk=desk, set_up=mends) as pilot:
        strip = pilot.app.screen.query_one(ErrorBar)
        await pilot.press("r")
        await until(pilot, lambda: bool(strip.text))
        await click(pilot, "ctrl+p enter API keys")
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
        await pilot.press("escape")
        await click(pilot, "y copy")
        assert pilot.app.clipboard == strip.text and desk.cycles == 1
        await click(pilot, "ctrl+t try again")
        await until(pilot, lambda: desk.cycles == 2 and bool(strip.text))
        await click(pilot, "esc dismiss")
        await until(pilot, lambda: not strip.display)


async def test_a_click_in_jump_mode_goes_to_the_pane_or_to_that_of_the_label(running: Running) -> None:
    async with running() as pilot:
        frame = pilot.app.screen
        # The curve takes no focus.
        panes = [name for name in frame.PANES if name != "equity"]  # type: ignore[attr-defined]
        for name in [pane for pane in panes if frame.query_one(f"#{pane}").display]:
            for down in (0, 2):
                frame.set_focus(None)
                await pilot.press("ctrl+o")
                assert isinstance(pilot.app.screen, JumpScreen)
                await click_at(pilot, frame.query_one(f"#{name}").region.offset + Offset(3, down))
                assert pilot.app.screen is frame and frame.focused is not None
                assert name in {node.id for node in frame.focused.ancestors_with_self}
        await pilot.press("ctrl+o")
        await click_at(pilot, Offset(3, 0))  # on the status bar
        assert pilot.app.screen is frame and frame.focused.id == name
        await pilot.resize_terminal(60, 15)
        await pilot.press("ctrl+o")
        await click(pilot, "b chart")
        assert pilot.app.screen is frame and frame.query_one("#chart").display


NAMED = (
    ("slash", ("enter confirms", "esc cancels")),
    ("at", ("esc cancels",)),
    ("o", ("space side", "esc cancels")),
    ("S", ("esc leaves",)),
    ("S", ("enter shows it",)),
    ("grave_accent", ("j down", "k up", "y copy", "esc back")),
    ("question_mark", ("esc back",)),
)
"""The key that opens a page, and the keys that this one names: the last one ends it."""


async def test_the_keys_that_a_page_names_can_be_clicked(running: Running, asking: FakeDesk) -> None:
    async with running(desk=asking) as pilot:
        for opens, keys in NAMED:
            await pilot.press(opens)
            await until(pilot, lambda: len(pilot.app.screen_stack) == 2)
            page = pilot.app.screen
            if opens == "slash":
                page.query_one(Input).value = "nosuch:1"
            if opens == "S":
                await until(pilot, lambda: bool(pilot.app.screen.query_one(Table).cursor_key))
            for key in keys:
                await click(pilot, key)
                if key == "enter confirms":  # what is wrong is said, and the keys are still named
                    await until(pilot, lambda: any("unknown column nosuch" in line for line in lines(pilot)))
                if key == "space side":
                    await until(pilot, lambda: "[SELL]" in str(pilot.app.screen.query_one("#side").render()))
            await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


async def test_a_key_that_a_border_names_can_be_clicked(running: Running, asking: FakeDesk) -> None:
    async with running(desk=asking) as pilot:
        orders = table(pilot, "orders")
        await until(pilot, lambda: "x veto" in lines(pilot)[orders.region.bottom - 1])
        for label, title in (("a approve", "Approve"), ("x veto", "Veto")):
            y = orders.region.bottom - 1
            await click_at(pilot, Offset(lines(pilot)[y].index(label), y))
            question = pilot.app.screen
            assert isinstance(question, ConfirmScreen) and title in str(question.query_one(Vertical).border_title)
            await pilot.press("escape")
        await pilot.press("2")
        await until(pilot, lambda: pilot.app.current_mode == WHY)
        screen = pilot.app.screen
        assert not screen.query_one("#calibration").display
        for _ in range(4):  # of a desk without decisions
            await click(pilot, "v next part")
        assert screen.query_one("#calibration").display
