"""Tabs, hints and the palette do what the keys do, where those work; a paid run is not left without a question."""

from __future__ import annotations

import asyncio
import re
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import backtest_targets
import pytest
from conftest import Running, shown, until
from fake_desk import BOUGHT, NOW, SYMBOLS, FakeDesk
from textual.pilot import Pilot
from textual.widgets import Static

from engine.app.models.models import Gate
from engine.app.open_desk import Publish
from engine.domain.order import OrderState
from engine.journal.writer import JournalWriter
from tui.screens.confirm import ConfirmScreen
from tui.settings.keys import SCREENS
from tui.view.snapshot import Place
from tui.widgets.navigation_bars import Hints, Tabs, TimeBar
from tui.widgets.table import Cell, Column, Row, Table


def text(pilot: Pilot[Any], bar: type[Tabs] | type[Hints]) -> str:
    """The text of a bar."""
    return "".join(segment.text for segment in pilot.app.screen.query_one(bar).render_line(0))


async def click(pilot: Pilot[Any], bar: type[Tabs] | type[Hints], word: str) -> None:
    """Click on a word of a bar."""
    assert await pilot.click(bar, offset=(text(pilot, bar).index(word) + 1, 0))
    await pilot.pause()


TABS = {
    120: "1 Desk | 2 Why | 3 Book | 4 Lab | 5 Ops",
    40: "1 Desk 2 Why 3 Book 4 Lab 5 Ops",
}
"""A part of the tabs by the width of the screen."""


async def test_tabs_can_be_clicked_at_any_width_and_bars_are_painted_to_their_last_cell(running: Running) -> None:
    async with running((160, 40)) as pilot:
        for mode, (_, name, _) in SCREENS.items():
            await click(pilot, Tabs, f" {name}")
            assert pilot.app.current_mode == mode
        for columns, tabs in TABS.items():
            await pilot.resize_terminal(columns, 24)
            await pilot.press("2")
            await shown(pilot)
            assert tabs in text(pilot, Tabs) and "2 Why" in text(pilot, Tabs)
            rows = pilot.app.screen._compositor.render_strips()
            assert {sum(len(segment.text) for segment in row) for row in (rows[1], rows[-1])} == {columns}
            await click(pilot, Tabs, "5")
            assert pilot.app.current_mode == "ops"


async def test_hints_show_what_works_and_can_be_clicked(running: Running, asking: FakeDesk) -> None:
    async with running((200, 40), desk=asking) as pilot:
        await until(pilot, lambda: "a approve" in text(pilot, Hints))
        assert "x veto" in text(pilot, Hints) and "present" not in text(pilot, Hints)
        await click(pilot, Hints, "a approve")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await pilot.press("escape", "left_curly_bracket")
        await until(pilot, lambda: "present" in text(pilot, Hints))
        assert "approve" not in text(pilot, Hints) and "run cycle" not in text(pilot, Hints)
        await click(pilot, Hints, "present")
        await until(pilot, lambda: pilot.app.bridge.snapshot().place is None)  # type: ignore[attr-defined]


async def test_the_palette_lists_the_keys_that_work_and_runs_them(running: Running) -> None:
    async with running() as pilot:
        app = pilot.app
        names = {one.title: one for one in app.get_system_commands(app.screen)}
        assert "Kill switch: no order is sent; again: resume" in names
        assert "Approve the order that waits" not in names
        await pilot.press("ctrl+p")
        await pilot.press(*"Ops")
        await until(pilot, lambda: pilot.app.screen.query("OptionList").first().highlighted is not None)  # type: ignore[attr-defined]
        await pilot.press("enter")
        await until(pilot, lambda: app.current_mode == "ops")
        await pilot.press("left_curly_bracket")
        offered = {one.title: one.help for one in app.get_system_commands(app.screen)}
        assert "Back to the present" in offered
        assert offered["Play 1x"] == "a session in 2.5 s"
        assert offered["Play 60x"] == "a session in 0.042 s"


class Standing(FakeDesk):
    """A desk whose cycle stands still once it has decided on its first symbol."""

    async def run_cycle(self, publish: Publish, gate: Gate, only: str | None = None) -> None:
        """Two steps of the first symbol, and no more."""
        begun = count(1)

        async def stands() -> None:
            await gate()
            if next(begun) > 2:
                await asyncio.Event().wait()

        await super().run_cycle(publish, stands, only)


def question(pilot: Pilot[Any]) -> str:
    """The text of the question that is asked; empty where none is."""
    asked = isinstance(pilot.app.screen, ConfirmScreen) and pilot.app.screen.is_mounted
    return str(pilot.app.screen.query_one("#text", Static).render()) if asked else ""


@pytest.mark.parametrize(("cost", "took"), [(Decimal("0.3"), "$0.60"), (None, "cost unknown")])
async def test_a_paid_run_is_left_only_once_that_is_confirmed(
    running: Running, tmp_path: Path, cost: Decimal | None, took: str
) -> None:
    desk = Standing(tmp_path)
    desk.cost, desk.label = cost, "gpt-5.2 by openai"  # type: ignore[assignment]
    async with running(desk=desk) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: pilot.app.bridge.snapshot().desk.at == SYMBOLS[1])  # type: ignore[attr-defined]
        for answer in ("n", "y"):
            await pilot.press("q")
            await until(pilot, lambda: bool(question(pilot)))
            assert question(pilot) == (
                f"A cycle is running: 1 of 3 symbols are decided, its models took {took} so far. They are kept; the "
                "next run decides the other 2."
            )
            assert not pilot.app._exit
            await pilot.press(answer)
        await until(pilot, lambda: pilot.app._exit)


async def test_a_paid_run_that_has_not_begun_is_left_only_once_that_is_confirmed(
    running: Running, tmp_path: Path
) -> None:
    class Slow(FakeDesk):
        """A desk that has much to read before its run begins."""

        async def run_cycle(self, publish: Publish, gate: Gate, only: str | None = None) -> None:
            await asyncio.Event().wait()

    desk = Slow(tmp_path)
    desk.label = "gpt-5.2 by openai"
    async with running(desk=desk) as pilot:
        await pilot.press("r", "q")
        await until(pilot, lambda: bool(question(pilot)))
        assert question(pilot) == "A cycle is starting, without further model calls: the next run starts it again."
        await pilot.press("y")
        await until(pilot, lambda: pilot.app._exit)


async def test_an_order_of_which_nobody_knows_whether_it_arrived_is_named_before_the_app_is_left(
    running: Running, asking: FakeDesk
) -> None:
    with JournalWriter(asking.journal) as writer:
        writer.order_moved(BOUGHT.moved(OrderState.SUBMITTING), NOW)
    async with running(desk=asking) as pilot:
        await pilot.press("q")
        await until(pilot, lambda: bool(question(pilot)))
        assert question(pilot) == (
            "It is unknown yet whether BUY AAA-USD has arrived at the broker: it is checked at the next start."
        )
        await pilot.press("y")
        await until(pilot, lambda: pilot.app._exit)


@pytest.mark.parametrize("target", [backtest_targets.paid, backtest_targets.slow])
async def test_a_backtest_is_left_only_once_that_is_confirmed(running: Running, target: Any) -> None:
    async with running(target=target) as pilot:
        await pilot.press("4", "ctrl+r")
        await until(pilot, lambda: any(one.label for one in pilot.app.bridge.snapshot().backtests))  # type: ignore[attr-defined]
        (run,) = pilot.app.bridge.snapshot().backtests  # type: ignore[attr-defined]
        await pilot.press("q")
        await until(pilot, lambda: bool(question(pilot)))
        assert re.fullmatch(
            rf"The backtest {run.name} is running \(\d+%\): finished sessions are kept, "
            rf"paperdesk backtest --resume {run.spec.run} continues\.",
            question(pilot),
        )
        assert not pilot.app._exit
        await pilot.press("y")
        await until(pilot, lambda: pilot.app._exit)


async def test_a_free_desk_is_left_at_once(running: Running) -> None:
    async with running() as pilot:
        await shown(pilot)
        await pilot.press("q")
        await until(pilot, lambda: pilot.app._exit)


async def test_no_figure_lies_under_a_scrollbar(running: Running) -> None:
    async with running((80, 24)) as pilot:
        await pilot.press("4")
        table = pilot.app.screen.query_one("#results", Table)
        pilot.app.screen.show_view = lambda view: None  # type: ignore[attr-defined]  # which would show no runs
        table.set_columns((Column("A", max_width=9), Column("B", form=str, drop_order=1)))
        figure = "9" * (table.size.width - 5)
        table.show([Row(str(n), (Cell("x"), Cell(figure))) for n in range(40)])
        await until(pilot, lambda: table.show_vertical_scrollbar)
        shown_row = table.render_line(3).text
        assert len(shown_row) == table.size.width - 1 and ("9" not in shown_row or figure in shown_row)


async def test_the_time_bar_of_nothing_has_its_text_and_the_way_back(running: Running) -> None:
    text = "nothing has happened yet"
    async with running((100, 30)) as pilot:
        bar = pilot.app.screen.query_one(TimeBar)
        await shown(pilot)
        pilot.app.screen.show_view = lambda view: None  # type: ignore[attr-defined]  # which would show the present
        for number, count, part in ((0, 0, 0.0), (1, 1, 1.0), (1, 3, 0.0), (2, 3, 0.5), (999, 1000, 0.99), (3, 3, 1.0)):
            bar.show(Place(name="x", number=number, count=count, session=None, text=text, speed=0))
            await until(pilot, lambda: bar.size.width == 100)
            bar.on_resize()
            drawn = str(bar.render())
            assert drawn.endswith("\\ present ") and len(drawn) <= 100 and "nothing has happened" in drawn
            assert drawn.count("=") == int(part * (drawn.count("=") + drawn.count("-"))), (number, count)
