"""Layouts by size, amounts as they are written, and one table of keys without a clash."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from conftest import Running, until
from fake_desk import FakeDesk
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot
from textual.screen import ModalScreen

from engine.market.trading_hours import AroundTheClock
from engine.reports import amounts
from engine.reports.table import plain
from tests.decided import decided
from tui.screens.frame import Layout, layout_of
from tui.settings.keys import SCREENS, bindings, hints, menu, works
from tui.text.plain_text import one_line, printable
from tui.view.market_view import MarketView, Quote
from tui.view.snapshot import Snapshot, active_contexts
from tui.view.state import DeskState
from tui.view.watchlist import WatchedGroup
from tui.widgets.desk_tables import watchlist_columns, watchlist_rows
from tui.widgets.screen_bars import ErrorBar
from tui.widgets.table import LEAST, Column, column_widths


@given(st.integers(0, 400), st.integers(0, 200))
def test_a_larger_terminal_never_gets_a_smaller_layout(columns: int, rows: int) -> None:
    order = list(Layout)
    here = order.index(layout_of(columns, rows))
    assert order.index(layout_of(columns + 1, rows)) >= here
    assert order.index(layout_of(columns, rows + 1)) >= here


async def test_the_focus_comes_back_from_a_status_line_to_its_pane_and_to_no_field(running: Running) -> None:
    async with running() as pilot:
        await pilot.press("4")
        await pilot.resize_terminal(30, 8)
        await until(pilot, lambda: pilot.app.screen.focused is None)
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: pilot.app.screen.focused is pilot.app.screen.query_one("#results"))


@pytest.mark.parametrize("screen", list(SCREENS))
def test_no_key_does_two_things_on_a_screen(screen: str) -> None:
    keys = Counter(key for binding in bindings(screen) for key in binding.key.split(","))
    assert [key for key, count in keys.items() if count > 1] == []
    assert {hint.text for hint in hints(screen)} >= {"help", "quit", "run cycle"}


def test_hints_of_a_screen_begin_with_its_own_keys() -> None:
    first = {screen: [hint.text for hint in hints(screen, ("present", "row", "runs"))][:2] for screen in SCREENS}
    assert first["desk"][0] == "run cycle"
    assert (first["lab"], first["ops"], first["why"]) == (
        ["next part", "arena"],
        ["check", "next part"],
        ["pin", "forget"],
    )
    assert hints("lab", ("present", "running"))[0].text == "stop"
    assert hints("ops", ("past", "record"))[0].text == "< > event"
    assert {"pin", "< > event", "why?"}.isdisjoint(hint.text for hint in hints("ops", ("past", "row")))


def test_the_menu_has_what_works_and_the_screens_last() -> None:
    for screen in SCREENS:
        listed = menu(screen, ("present", "row"))
        assert {key.id for key in listed} == {key.id for key in works(screen, ("present", "row")) if key.meaning}
        assert [key.id for key in listed[-len(SCREENS) :]] == [f"screen.{mode}" for mode in SCREENS]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (amounts.money(Decimal("103412.18")), "103,412.18"),
        (amounts.price(Decimal("0.45371")), "0.4537"),
        (amounts.percent(0.0214), "+2.14%"),
        (amounts.percent(-0.00002), "0.00%"),
        (amounts.percent(0.0004, 1), "0.0%"),
        (amounts.percent(None), "-"),
        (amounts.gain(Decimal("-3.5")), "-3.50"),
        (amounts.quantity(Decimal("40.000000000")), "40"),
        (amounts.quantity(Decimal("0.453700000")), "0.4537"),
        (amounts.quantity(Decimal("100.0000001")), "100"),
        (amounts.quantity(Decimal(0)), "-"),
        (amounts.size(Decimal("7.00")), "7"),
        (amounts.cost(None), "cost unknown"),
        (amounts.cost(Decimal(0)), "free"),
        (amounts.cost(Decimal("0.004")), "<$0.01"),
        (amounts.minutes(3723), "1:02:03"),
        (amounts.about(timedelta(hours=2, minutes=14)), "2h14m"),
    ],
)
def test_amounts_have_one_form(written: str, text: str) -> None:
    assert written == text


@given(st.lists(st.tuples(st.integers(1, 30), st.booleans(), st.integers(0, 3)), min_size=1, max_size=6), st.data())
def test_a_table_cuts_texts_before_figures(columns: list[tuple[int, bool, int]], data: st.DataObject) -> None:
    shown = [Column("X", form=str if right else plain, drop_order=order) for _, right, order in columns]
    natural = [width for width, _, _ in columns]
    room = data.draw(st.integers(10, 200))
    widths = column_widths(shown, natural, room)
    assert all(width in (0, *range(natural[n], natural[n] + 4)) for n, width in enumerate(widths) if shown[n].right)
    kept = [n for n, column in enumerate(shown) if not column.drop_order]
    least = sum(natural[n] if shown[n].right else min(natural[n], LEAST) for n in kept) + len(kept)
    assert sum(width + 1 for width in widths if width) <= max(room, least)


@pytest.mark.parametrize(
    ("room", "left_out"),
    [
        (35, {"30D", "DAY", "POS", "VALUE", "SIGNAL"}),
        (46, {"DAY", "POS", "VALUE", "SIGNAL"}),
        (70, {"POS"}),
        (80, set()),
    ],
)
def test_the_watchlist_has_the_columns_that_there_is_room_for(room: int, left_out: set[str]) -> None:
    columns = watchlist_columns(())
    widths = column_widths(columns, [len("WRNN-USD"), 7, 7, 10, 7, len(" 36.0544"), 7, 7, len("BUY  10")], room)
    assert {column.title for column, width in zip(columns, widths, strict=True) if not width} == left_out
    assert [one.title for one in watchlist_columns(("profit", "last"))] == ["SYM", "P&L", "LAST"]


def test_a_coin_s_market_is_always_open() -> None:
    assert amounts.market_words(AroundTheClock(), datetime(2024, 5, 1, 22, 30, tzinfo=UTC)) == (True, "OPEN 1h30m")


@given(st.text())
def test_nothing_printable_can_steer_a_terminal(text: str) -> None:
    shown = printable(text)
    assert "\x1b" not in shown and all(c == "\n" or c.isprintable() or c.isspace() for c in shown)
    assert "\n" not in one_line(text)


def test_a_signal_of_the_session_before_is_marked_until_the_symbol_is_decided() -> None:
    quotes = (Quote("AAPL", Decimal(10), 0.0, date(2024, 5, 2)), Quote("NVDA", Decimal(10), 0.0, date(2024, 5, 2)))
    made = {
        "AAPL": {"desk": decided("AAPL", "BUY", Decimal("8.44"), date(2024, 5, 1))},
        "NVDA": {"desk": decided("NVDA", "SELL", Decimal("8.44"), date(2024, 5, 2))},
    }
    state = DeskState(decisions=made, session=date(2024, 5, 2), running=True)

    def signals(desk: DeskState) -> list[str]:
        view = Snapshot(desk=desk, market=MarketView(quotes))
        return [row.cells[-1].text for row in watchlist_rows(view, WatchedGroup(), watchlist_columns(()))[0]]

    assert signals(state) == ["(BUY)", "SELL 8.4"]
    assert signals(replace(state, running=False)) == ["(BUY)", "SELL 8.4"], "it was not decided anew"
    assert signals(replace(state, session=date(2024, 5, 1))) == ["BUY  8.4", "SELL 8.4"]


ELSEWHERE = {
    *("app.ask_quit", "app.command_palette", "app.save_image", "app.suspend_process"),
    *("present", "run_cycle", "run_symbol"),
}
"""Actions that leave the screen, write a file or change the circumstances: each has a test of its own."""


async def run_all(pilot: Pilot[Any], mode: str) -> int:
    """Do what every key does that works on a screen, leaving whatever opens."""
    app = pilot.app
    here = active_contexts(app.bridge.snapshot()) | {"arena", "decided", "record", "row", "stopped"}  # type: ignore[attr-defined]
    keys = [key for key in works(mode, here) if key.action not in ELSEWHERE]
    for key in keys:
        await app.run_action(key.action, app.screen_stack[0])
        await pilot.pause(0)
        while isinstance(app.screen, ModalScreen):
            app.pop_screen()
        assert app.is_running and app._exception is None, f"{key.id} on {mode}"
        shown = [app.screen_stack[0].query_one(ErrorBar).text, *(one.message for one in app._notifications)]
        assert not any("a bug" in text for text in shown), (key.id, [t for t in shown if "a bug" in t])
    return len(keys)


@pytest.mark.slow
@pytest.mark.parametrize("past", [pytest.param(False, id="present"), pytest.param(True, id="past")])
async def test_no_key_breaks_a_screen(running: Running, asking: FakeDesk, past: bool) -> None:
    async with running(desk=asking) as pilot:
        done = 0
        for mode, (key, _, _) in SCREENS.items():
            await pilot.press(key)
            await until(pilot, lambda wanted=mode: pilot.app.current_mode == wanted)  # type: ignore[misc]
            if past and pilot.app.bridge.snapshot().place is None:  # type: ignore[attr-defined]
                await pilot.press("1", "left_curly_bracket", key)
            done += await run_all(pilot, mode)
        assert done > 100


NOTHING = {
    "lab": "no run is chosen",
    "ops": "no run yet",
    "book": "nothing is held",
}
"""Screens of a desk that has nothing yet, and what `d` says there."""


async def test_why_says_where_there_is_nothing_to_ask(running: Running) -> None:
    async with running() as pilot:
        for mode, words in NOTHING.items():
            await pilot.press(SCREENS[mode][0])
            await until(pilot, lambda wanted=mode: pilot.app.current_mode == wanted)  # type: ignore[misc]
            await pilot.press("d")
            assert any(words in one.message for one in pilot.app._notifications), mode
            assert len(pilot.app.screen_stack) == 1
