"""Jump mode from any screen; the palette runs every key of the table."""

from __future__ import annotations

from pathlib import Path

from conftest import Running, until
from fake_desk import FakeDesk
from textual.events import Key

from tui.settings.keys import KEYS, MODES

NEVER = {
    *("desk.next-session", "desk.why", "chart.open", "chart.image", "memory.pin", "memory.forget", "table.open"),
    *("backtest.stop", "backtest.compare", "backtest.mark", "backtest.resume", "backtest.export", "source.next"),
    *("source.previous", "watchlist.group", "backtest.report"),
}
"""Keys of circumstances that this desk never comes into: it is no demo desk, has run no backtest, has decided nothing,
and there is no group of symbols."""


async def test_a_letter_focuses_a_pane(running: Running) -> None:
    async with running() as pilot:
        await pilot.press("ctrl+o")
        labels = {str(label.render()).strip(): label.region for label in pilot.app.screen.query(".jump")}
        frame = pilot.app.screen_stack[0]
        assert labels["b chart"].offset == frame.query_one("#chart").region.offset
        assert all(  # a label covers the title of its pane
            region.width == frame.query_one(f"#{label[2:]}").region.width for label, region in labels.items()
        )
        assert set(labels) == {"a watchlist", "b chart", "c agents", "d orders"}
        await pilot.press("c")
        assert pilot.app.screen.focused is not None
        assert "agents" in {node.id for node in pilot.app.screen.focused.ancestors_with_self}
        await pilot.press("ctrl+o", "escape")
        assert len(pilot.app.screen_stack) == 1


async def test_the_palette_offers_every_key_of_the_table(running: Running, asking: FakeDesk, tmp_path: Path) -> None:
    asking.undo_seconds = 600.0
    async with running(desk=asking) as pilot:
        await pilot.press("a", "y")
        await until(pilot, lambda: any(one.undoable for one in pilot.app.bridge.snapshot().controls.orders))  # type: ignore[attr-defined]
        offered: set[str] = set()
        for past in (False, True):
            for mode in MODES:
                pilot.app.switch_mode(mode)
                await until(pilot, lambda wanted=mode: pilot.app.current_mode == wanted)  # type: ignore[misc]
                await until(pilot, lambda: pilot.app.screen_stack[0]._built)  # type: ignore[attr-defined]
                pilot.app._refresh_screen()  # type: ignore[attr-defined]
                titles = {one.title for one in pilot.app.get_system_commands(pilot.app.screen)}
                offered |= {one.id for one in KEYS if mode in one.screens and one.meaning in titles}
            if not past:
                await pilot.press("1", "left_curly_bracket")
        assert {one.id for one in KEYS if one.meaning} - offered == NEVER


ESCAPES = "\x1b\x1b"


async def test_keys_of_one_burst_end_a_page_once(running: Running) -> None:
    """A second key that comes before the first is answered, as one that is typed ahead or pasted, found the page gone
    and ended the screen below it."""
    async with running() as pilot:
        for opens, burst in (
            ("ctrl+o", "zz"),
            ("ctrl+o", "ab"),
            ("question_mark", ESCAPES),
            ("K", "yy"),
            ("S", ESCAPES),
        ):
            await pilot.press(opens)
            await until(pilot, lambda: len(pilot.app.screen_stack) == 2)
            for character in burst:
                name = "escape" if character == "\x1b" else character
                pilot.app.post_message(Key(name, character))
            await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
            await pilot.pause(0.1)
            assert pilot.app.is_running and pilot.app._exception is None, (opens, burst)
            while len(pilot.app.screen_stack) > 1:  # what the second key has opened
                await pilot.press("escape")
