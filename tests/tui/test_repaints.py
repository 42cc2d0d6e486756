"""What is drawn again: rows and panes that say something else, no others, and never all of them before a key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import Running, shown, until
from fake_desk import NOW, FakeDesk
from textual.pilot import Pilot
from textual.widgets import Input, Static

from tui.app.app import PaperdeskApp
from tui.charts.chart_data import ChartData
from tui.screens.ask import AskScreen
from tui.screens.confirm import ConfirmScreen
from tui.screens.desk import DeskScreen
from tui.screens.order_ticket import OrderTicket
from tui.screens.set_up import SetUpScreen
from tui.screens.symbol_search import SymbolSearchScreen
from tui.set_up.first_configuration import new_account
from tui.settings.invocation import Invocation
from tui.view.market_view import at_prices
from tui.widgets.agent_panes import AgentPanes
from tui.widgets.candle_chart import CandleChart
from tui.widgets.screen_bars import StatusBar
from tui.widgets.table import Cell, Row, Table
from tui.widgets.text_lines import TextPane


def drawn(pilot: Pilot[Any], monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> list[str]:
    """The rows of tables that are drawn when the screen is painted after a change, by their keys."""
    found: list[str] = []
    row_strip = Table._row_strip

    def noted(table: Table, row: Row, width: int) -> Any:
        found.append(row.key)
        return row_strip(table, row, width)

    pilot.app.screen._compositor.render_strips()
    with monkeypatch.context() as patch:
        patch.setattr(Table, "_row_strip", noted)
        change()
        pilot.app.screen._compositor.render_strips()
    return found


async def test_only_rows_that_changed_are_drawn_again(
    running: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    symbols = tuple(f"S{n:02}-USD" for n in range(6))
    async with running(desk=FakeDesk(tmp_path, symbols=symbols), size=(120, 60)) as pilot:
        await shown(pilot)
        table = pilot.app.screen.query_one("#watchlist", Table)
        rows = list(table.rows)

        def with_price(text: str) -> list[Row]:
            cells = (rows[2].cells[0], Cell(text), *rows[2].cells[2:])
            return [*rows[:2], replace(rows[2], cells=cells), *rows[3:]]

        shorter = rows[2].cells[1].text[:-1] + "7"
        assert drawn(pilot, monkeypatch, lambda: table.show(with_price(shorter))) == [symbols[2]]
        assert drawn(pilot, monkeypatch, lambda: table.show(with_price(shorter))) == []
        assert drawn(pilot, monkeypatch, lambda: table.point_at(symbols[4])) == [symbols[0], symbols[4]]
        # A figure that needs a wider column moves those beside it in every row.
        assert drawn(pilot, monkeypatch, lambda: table.show(with_price("123,456,789.00"))) == list(symbols)
        assert drawn(pilot, monkeypatch, lambda: table.show(with_price("1.00"))) == [symbols[2]], "it stays so wide"
        assert "1.00" in table.render_line(3).text and table._natural[1] > len("123,456,789.00")
        await pilot.pause()
        table.show(rows[:3])
        assert table._natural[1] < len("123,456,789.00"), "for other rows it is fitted anew"


async def test_a_cycle_is_shown_as_begun_by_the_key_itself(
    running: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with running(desk=FakeDesk(tmp_path, pause=1)) as pilot:
        await shown(pilot)
        monkeypatch.setattr(PaperdeskApp, "_refresh_screen", lambda app: None)
        status = pilot.app.screen.query_one(StatusBar)
        assert "Cycle" not in status.render_line(0).text
        await pilot.press("r")
        assert "Cycle" in status.render_line(0).text, "without a refresh"


async def test_a_key_paints_the_chart_before_the_answers_are_laid_out(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as pilot:
        await shown(pilot)
        screen = pilot.app.screen
        chart, agents = screen.query_one(CandleChart), screen.query_one(AgentPanes)
        before = chart.data.title
        said: list[str] = []
        monkeypatch.setattr(agents, "show_steps", lambda desk, symbol: said.append(symbol))
        screen.action_symbol(1)  # type: ignore[attr-defined]
        assert chart.data.title != before and said == []
        await until(pilot, lambda: bool(said) and chart.data.title.startswith(said[-1]))


async def test_charts_at_live_prices_are_made_when_they_are_shown(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as pilot:
        await until(pilot, lambda: pilot.app.bridge.snapshot().market is not None)  # type: ignore[attr-defined]
        market = pilot.app.bridge.snapshot().market  # type: ignore[attr-defined]
    made: list[str] = []
    forming = ChartData.forming

    def noted(chart: ChartData, *what: Any) -> ChartData:
        made.append(chart.title)
        return forming(chart, *what)

    monkeypatch.setattr(ChartData, "forming", noted)
    symbols = [quote.symbol for quote in market.quotes]
    live = at_prices(market, dict.fromkeys(symbols, Decimal(50)), NOW)
    assert made == [] and list(live.charts) == symbols
    assert live.charts[symbols[0]].close[-1] == 50.0 and live.charts[symbols[0]] is live.charts[symbols[0]]
    assert made == [f"{symbols[0]} 1D"]


@pytest.mark.parametrize("asked", [False, True])
async def test_a_widget_that_is_displayed_gets_its_size(
    running: Running, monkeypatch: pytest.MonkeyPatch, *, asked: bool
) -> None:
    async with running(size=(120, 40)) as pilot:
        screen = pilot.app.screen
        bar, told = screen.query_one("#bar", TextPane), list[int]()
        assert isinstance(screen, DeskScreen) and not bar.display
        monkeypatch.setattr(TextPane, "on_resize", lambda text: told.append(text.size.width), raising=False)
        screen.set_display(bar, True)
        while not screen._layout_required:  # it is asked for, and not made yet
            await asyncio.sleep(0)
        if asked:
            screen._compositor._full_map_invalidated = True  # as after scrolling
            assert bar in screen._compositor.full_map
        await shown(pilot)
        await until(pilot, lambda: bar.size.width in told)


def wholly_seen(pilot: Pilot[Any], widget: Any) -> bool:
    """True where all of a widget is on the screen, over whatever holds it."""
    placed = pilot.app.screen._compositor.visible_widgets.get(widget)
    return placed is not None and bool(placed[0].area) and placed[0] == placed[0].intersection(placed[1])


@pytest.mark.parametrize("size", [(30, 8), (40, 12)])
async def test_the_field_that_is_typed_into_is_seen(running: Running, size: tuple[int, int], tmp_path: Path) -> None:
    async with running(size) as pilot:
        app = pilot.app
        for key, dialog in (("o", OrderTicket), ("S", SymbolSearchScreen), ("slash", AskScreen)):
            await pilot.press(key)
            await until(pilot, lambda dialog=dialog: isinstance(app.screen, dialog))  # type: ignore[misc]
            await pilot.press("x")
            await until(pilot, lambda: wholly_seen(pilot, app.focused))
            assert isinstance(app.focused, Input) and "x" in app.focused.value
            await pilot.press("escape")
        app.push_screen(SetUpScreen(new_account(Invocation(config_file=str(tmp_path / "config.toml")))))
        for text in ("first", "key", "secret", "AAA", "no model"):
            await until(
                pilot, lambda: bool(app.screen.query(Input)) and wholly_seen(pilot, app.screen.query_one(Input))
            )
            assert app.focused is app.screen.query_one(Input)
            app.screen.query_one(Input).value = text
            await pilot.press("enter")
        complaint = app.screen.query_one("#complaint", Static)
        await until(pilot, lambda: "model" in str(complaint.render()))
        await until(pilot, lambda: complaint in app.screen._compositor.visible_widgets)
        assert wholly_seen(pilot, app.focused)


async def test_a_message_does_not_lie_over_the_answers_of_a_dialog(running: Running) -> None:
    async with running((30, 8)) as pilot:
        pilot.app.notify("a message of several lines, which are as wide as half of the terminal", timeout=600)
        await pilot.press("K")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await until(pilot, lambda: not pilot.app._notifications)
        drawn = "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())
        assert "y halt   esc cancel" in drawn
