"""What is drawn again: rows and panes that say something else, no others, and never all of them before a key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import Running, shown, until
from fake_desk import NOW, FakeDesk
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Static

from tui.app.app import PaperdeskApp
from tui.charts.chart_data import ChartData
from tui.screens.reading import ReadingScreen
from tui.view.market_view import at_prices
from tui.widgets.agent_panes import AgentPanes
from tui.widgets.candle_chart import CandleChart
from tui.widgets.long_text import FIRST, LongText
from tui.widgets.screen_bars import StatusBar
from tui.widgets.table import Cell, Row, Table


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
        monkeypatch.setattr(agents, "show", lambda desk, symbol: said.append(symbol))
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


async def test_a_long_text_is_wrapped_a_part_at_a_time(running: Running) -> None:
    def lines(word: str, count: int) -> Content:
        return Content("\n".join(f"{word} {n}" for n in range(count)))

    def text() -> str:
        return "\n".join(str(one.content) for one in pilot.app.screen.query(Static))

    async with running() as pilot:
        page = ReadingScreen("Page", lines("line", 3 * FIRST))
        await pilot.app.push_screen(page)
        (first,) = page.query_one(LongText).compose()
        assert str(first.content) == lines("line", FIRST).plain, "what is painted with the screen"  # type: ignore[attr-defined]
        await until(pilot, lambda: text() == lines("line", 3 * FIRST).plain)
        page.write(lines("other", 10 * FIRST))
        page.write(lines("last", 2 * FIRST))
        assert text().startswith("last 0") and "last 39" not in text()
        await until(pilot, lambda: text() == lines("last", 2 * FIRST).plain)
        page.write(Content("\n".join(["word " * 150] * FIRST)))
        assert page.query(Static).first().content.plain.count("\n") == 0, "long lines take long to wrap"  # type: ignore[union-attr]
        page.write(lines("short", 2))
        await until(pilot, lambda: text() == lines("short", 2).plain)
