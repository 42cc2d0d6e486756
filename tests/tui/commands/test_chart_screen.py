"""The Chart screen: bars by day, week and month, trades and decisions on them, and what the model saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from engine import places
from engine.journal.reader import JournalReader
from tests.tui.commands.conftest import SESSIONS
from tests.tui.commands.test_playback import arrived
from tests.tui.conftest import opened, until
from tui.chart_data import ChartData
from tui.screens.chart_image import ChartImageScreen
from tui.screens.reading import TrailScreen
from tui.widgets.candle_chart import CandleChart
from tui.widgets.plot import CurvePlot


def candles(pilot: Pilot[Any]) -> ChartData:
    """The bars that are shown."""
    return pilot.app.screen.query_one(CandleChart).data


async def titled(pilot: Pilot[Any], title: str) -> ChartData:
    """The bars of a title, once they are shown."""
    await until(pilot, lambda: candles(pilot).title == title)
    return candles(pilot)


async def test_bars_by_day_week_and_month_end_at_the_moment_that_is_shown(desk: Path) -> None:
    async with opened() as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("2")
        days = await titled(pilot, "ORVL 1D")
        assert days.days[-1] == SESSIONS[1]
        await pilot.press("l")
        weeks = await titled(pilot, "ORVL 1W")
        last = [row for row, day in enumerate(days.days) if day.isocalendar()[:2] == SESSIONS[1].isocalendar()[:2]]
        assert (weeks.open[-1], weeks.close[-1]) == (days.open[last[0]], days.close[last[-1]])
        assert weeks.high[-1] == max(days.high[row] for row in last)
        assert weeks.volume[-1] == sum(days.volume[row] for row in last)
        await pilot.press("l")
        assert len(await titled(pilot, "ORVL 1M")) < len(weeks)
        await pilot.press("h", "h")
        await titled(pilot, "ORVL 1D")
        for _ in range(3):
            await pilot.press("i")
        await pilot.press("c")
        await until(pilot, lambda: len(pilot.app.screen.query_one(CurvePlot).data.series) == 2)
        compared = pilot.app.screen.query_one(CurvePlot).data.series
        rows = pilot.app.screen.query_one(CandleChart).rows_in_view
        shown = compared["ORVL"]
        assert abs(shown[-1] / shown[0] - days.close[rows.stop - 1] / days.close[rows.start]) < 1e-9  # type: ignore[operator]


async def test_trades_and_decisions_are_on_the_bars(desk: Path) -> None:
    with JournalReader(places.desk_journal("demo")) as reader:
        fills, decisions = reader.fills(), reader.decisions()
    symbol = fills[0].symbol
    async with opened() as pilot:
        await pilot.press("2")
        while (await titled(pilot, f"{pilot.app.screen.symbol} 1D")).title != f"{symbol} 1D":  # type: ignore[attr-defined]
            await pilot.press("right_square_bracket")
            await pilot.pause()
        data = candles(pilot)
        marked = {(data.days[one.index], one.side) for one in data.markers if one.side in ("BUY", "SELL")}
        assert marked == {(fill.session, fill.side.value) for fill in fills if fill.symbol == symbol}
        made = [one for one in decisions if one.key.symbol == symbol]
        chart = pilot.app.screen.query_one(CandleChart)
        chart.action_move(0)
        while data.days[chart.shown_view.cursor or 0] != made[-1].key.session:
            await pilot.press("left")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TrailScreen))
        await pilot.press("escape", "v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChartImageScreen))
        image = next((places.data_dir() / "screenshots").glob(f"{symbol}-*.png"))
        assert image.name == f"{symbol}-{made[-1].key.session}.png" and image.read_bytes().startswith(b"\x89PNG")
