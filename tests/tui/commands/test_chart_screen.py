"""The Desk's chart alone: bars by day, week and month, trades and decisions on them, and what the model saw."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from connectors.sandbox import SandboxServer
from engine.app.open_desk import SessionMinutes
from engine.domain.brokerage import Activity, ActivityKind
from engine.domain.decision import Action, Decision, DecisionKey, Proposal
from engine.domain.live import MinuteBar
from engine.domain.order import Fill, Side
from engine.domain.run import RunKind, RunOutcome
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.reports.amounts import price, quantity
from engine.settings import places
from tests.tui.commands.conftest import SESSIONS, OpenBroker
from tests.tui.conftest import Running, arrived, opened, shown, until
from tui.charts.chart_canvas import candle_glyphs
from tui.charts.chart_data import CUT, ChartData, visible_candles
from tui.commands.app import open_desk
from tui.screens.chart_image import ChartImageScreen
from tui.screens.trail import TrailScreen
from tui.settings.invocation import Invocation
from tui.widgets.candle_chart import CandleChart
from tui.widgets.plot import CurvePlot
from tui.widgets.text_lines import TextPane


def axis(chart: CandleChart) -> dict[float, int]:
    """The row of every round price on the scale at the right, and of the last price."""
    lines = [chart.render_line(y).text[chart.places()[1] :].strip(" []") for y in range(chart.size.height)]
    return {
        float(text.replace(",", "")): y
        for y, text in enumerate(lines)
        if text.replace(",", "").replace(".", "").isdigit()
    }


def candles(pilot: Pilot[Any]) -> ChartData:
    """The bars that are shown."""
    return pilot.app.screen.query_one(CandleChart).data


async def titled(pilot: Pilot[Any], title: str) -> ChartData:
    """The bars of a title, once they are shown."""
    await until(pilot, lambda: candles(pilot).title == title)
    return candles(pilot)


@pytest.fixture
def in_summer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some months after the desk's sessions: a chart keeps two years of bars."""
    monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: datetime(2025, 7, 1, 12, tzinfo=UTC))
    monkeypatch.setattr("engine.app.desk.demo_history.DUE", date(2025, 6, 30))


async def test_bars_by_day_week_and_month_end_at_the_moment_that_is_shown(desk: Path) -> None:
    async with opened() as pilot:
        await pilot.press("left_curly_bracket")
        await arrived(pilot)
        await pilot.press("z")
        await titled(pilot, "ORVL 1D")
        await until(pilot, lambda: candles(pilot).days[-1] == SESSIONS[1])
        days = candles(pilot)
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
        chart = pilot.app.screen.query_one(CandleChart)
        await pilot.press("c")
        await until(pilot, lambda: chart.drawn.hundred is not None)
        rows, drawn = chart.rows_in_view, chart.drawn
        assert drawn.hundred == rows.start
        (other,) = drawn.lines
        assert (drawn.close[rows.start], other.values[rows.start]) == (100, 100)
        assert abs(drawn.close[-1] / 100 - days.close[-1] / days.close[rows.start]) < 1e-9
        # Both begin in the row of 100, which is ruled; the other's close of each bar is in the row of its value.
        assert pilot.app.screen.query_one("#candles").border_subtitle == f"from 100 on {days.days[rows.start]}"
        scale = axis(chart)
        assert chart.render_line(scale[100.0]).text.count("·") > 10
        await pilot.press("plus")
        nearer = chart.rows_in_view
        assert nearer.start > rows.start == rows[0]
        assert chart.drawn.hundred == nearer.start and chart.drawn.lines[0].values[nearer.start] == 100
        # The bar under the cursor has the figures that are drawn.
        await pilot.press("left", "left")
        row = chart.shown_view.cursor
        assert row is not None
        pane = pilot.app.screen.query_one("#bar", TextPane)
        for name, value in (("ORVL", chart.drawn.close[row]), (other.name, chart.drawn.lines[0].values[row])):
            assert value not in (None, 100) and f"{name} from 100 {value:,.2f}" in pane.as_text()
        assert f"from 100 {days.close[row]:,.2f}" not in pane.as_text()
        # After the last of the others there is none.
        for _ in range(4):
            await pilot.press("c")
        await until(pilot, lambda: chart.beside is None)
        assert chart.drawn is chart.data


async def test_an_indicator_stands_under_its_candles_at_every_zoom(desk: Path, in_summer: None) -> None:
    async with opened((120, 40)) as pilot:
        await pilot.press("z")
        await until(pilot, lambda: len(candles(pilot)) > 0)
        chart, plot = pilot.app.screen.query_one(CandleChart), pilot.app.screen.query_one("#indicator", CurvePlot)
        for key in ("0", "plus", "plus", "plus", "0", "minus", "minus", "minus", "minus"):
            await pilot.press(key)
            await until(pilot, lambda: plot.data.columns == chart.places() and plot.drawn)
            rows, view = chart.rows_in_view, chart.shown_view
            columns, width = chart.places()
            middle = candle_glyphs(view.step, False).middle // 2
            for candle in visible_candles(chart.data, view, width):
                for row in (candle.first, candle.last):
                    assert columns[row - rows.start] == candle.x + middle, (key, row)
            (curve,) = plot.data.series.values()
            known = {row: value for row, value in enumerate(curve) if value is not None}
            lines = [plot.render_line(y).text[:width] for y in range(1, plot.size.height)]
            strokes = [{x for x, char in enumerate(line) if char not in " ·"} for line in lines]
            # Its trough is in the lowest row that has any of the curve, in the column of its candle; so is its peak.
            for row, where in ((min(known, key=known.__getitem__), -1), (max(known, key=known.__getitem__), 0)):
                assert columns[row] in [line for line in strokes if line][where], (key, row)
        # A click on the curve puts the cursor on the candle above.
        await pilot.press("0")
        await until(pilot, lambda: plot.data.columns == chart.places() and plot.drawn)
        await pilot.click(plot, offset=(chart.places()[0][5] + 1, 4))  # the border is a column
        await until(pilot, lambda: chart.shown_view.cursor == chart.rows_in_view[5])


async def test_a_crosshair_says_all_that_is_known_of_a_bar(desk: Path, in_summer: None) -> None:
    with JournalReader(places.desk_journal("demo")) as reader:
        fill, decisions = reader.fills()[-1], reader.decisions()
    made = next(one for one in decisions if one.key.symbol == fill.symbol)
    async with opened((80, 24)) as pilot:
        await pilot.press("z")
        await until(pilot, lambda: len(candles(pilot)) > 0)
        chart: Any = pilot.app.screen
        chart.show_symbol(fill.symbol)
        await titled(pilot, f"{fill.symbol} 1D")
        await shown(pilot)  # with what is read beside the bars
        data = candles(pilot)
        widget, pane = chart.query_one(CandleChart), chart.query_one("#bar", TextPane)
        assert not pane.display
        await pilot.press("left")
        # A low screen has room for the bar or for the indicator.
        assert pane.display and not chart.query_one("#indicator").display
        assert str(data.days[-1]) in pane.as_text()
        await pilot.press("left")
        assert widget.shown_view.cursor == len(data) - 2
        widget.action_move(data.days.index(fill.session) - len(data) + 2)
        await pilot.pause()
        amount = f"{fill.side.value} {quantity(fill.quantity)} at {price(fill.price)}"
        assert f"{fill.session} filled  {amount}" in pane.as_text()
        row = data.days.index(made.key.session)
        widget.action_move(row - widget.shown_view.cursor)
        await pilot.pause()
        text = pane.as_text()
        prices = [f"{column[row]:,.2f}" for column in (data.open, data.high, data.low, data.close)]
        assert all(f"{name} {one}" in text for name, one in zip("OHLC", prices, strict=True))
        assert f"change {100 * (data.close[row] / data.close[row - 1] - 1):+.2f}%" in text
        averages = {line.name: line.values[row] for line in data.lines if line.role in ("short", "long")}
        assert all(f"{name} {value:,.2f}" in text for name, value in averages.items() if value is not None)
        assert f"RSI 14 {chart.chart._chart.panes['RSI']['RSI 14'][row]:,.2f}" in text
        assert f"{made.key.session} decided {made.action.value}" in text
        drawn = "".join(widget.render_line(y).text for y in range(widget.size.height))
        assert "╌" in drawn and "┊" in drawn and f"╌{data.close[row]:,.2f}" in drawn
        # The bar under the pointer comes before it, and another symbol or timeframe begins at its newest bar.
        await pilot.hover(CandleChart, offset=(20, 5))
        assert widget.shown_view.cursor == row != widget.pointed and f"{data.days[row]}" not in pane.as_text()
        await pilot.hover("#bar")
        await until(pilot, lambda: f"{data.days[row]}" in pane.as_text())
        await pilot.press("l")
        weeks = await titled(pilot, f"{fill.symbol} 1W")
        await until(pilot, lambda: f"C {weeks.close[-1]:,.2f}" in pane.as_text())
        await pilot.press("escape")
        assert not pane.display and widget.shown_view.cursor is None and chart.query_one("#indicator").display


async def test_without_live_data_the_absence_of_minutes_is_said_in_a_line(desk: Path) -> None:
    async with opened() as pilot:
        await pilot.press("z")
        days = await titled(pilot, "ORVL 1D")
        await pilot.press("h")
        said = pilot.app._notifications
        await until(pilot, lambda: any("no bars within the day here" in one.message for one in said))
        assert candles(pilot) is days


def at(hour: int, minute: int) -> datetime:
    """A minute of the session."""
    return datetime(2024, 3, 1, hour, minute, tzinfo=UTC)


@pytest.fixture
def sandbox(open_broker: OpenBroker) -> SandboxServer:
    """An hour after the open."""
    return open_broker(at(15, 30), through=date(2024, 3, 20), symbols=("ORVL",))


def write_a_morning(symbol: str) -> None:
    """A journal in which the desk decided after the close before, and bought a quarter of an hour after the open."""
    run, bought = "daily-paper-20240229", Decimal("41.25")
    made = Decision(
        key=DecisionKey(run, date(2024, 2, 29), 1, symbol, "desk"),
        action=Action.BUY,
        size=Decimal(5),
        proposal=Proposal(Action.BUY, 5, None, "it rises"),
    )
    traded = {"symbol": symbol, "side": Side.BUY, "quantity": Decimal(3), "price": bought}
    fill = Fill(order_id="order-1", session=date(2024, 3, 1), **traded)
    told = {"kind": ActivityKind.FILL, **traded}
    with JournalWriter(places.desk_journal("paper")) as writer:
        began = datetime(2024, 2, 29, 21, 5, tzinfo=UTC)
        writer.run_started(RunEntry(id=run, kind=RunKind.DAILY, name="finvision", started=began, session=began.date()))
        writer.decision(made)
        writer.activity(run, Activity(id="one", time=at(14, 45), **told), booked=True)
        writer.fill(run, fill, "one")
        writer.run_finished(run, RunOutcome.DONE, began)


async def test_minutes_of_the_session_come_from_live_data(running: Running, sandbox: SandboxServer) -> None:
    write_a_morning("ORVL")
    async with running(open_desk=partial(open_desk, Invocation())) as pilot:
        view = pilot.app.bridge.snapshot  # type: ignore[attr-defined]
        await until(pilot, lambda: bool(view().market))
        await pilot.press("z")
        await titled(pilot, "ORVL 1D")
        await pilot.press("h")
        minutes = await titled(pilot, "ORVL 1min UTC")
        assert minutes.days[0] == at(14, 30)
        assert len(minutes) == 60 + (minutes.days[-1] == at(15, 30))
        # The trade is on its minute, and the decision that came before the session on the first one.
        assert [(one.index, one.side, one.price) for one in minutes.markers] == [(15, "BUY", 41.25)]
        chart: Any = pilot.app.screen
        assert {row: [one.key.session for one in some] for row, some in chart.chart._chart.decided.items()} == {
            0: [date(2024, 2, 29)]
        }
        assert [(row, *(one.quantity for one in some)) for row, some in chart.chart._chart.fills.items()] == [(15, 3)]
        await until(pilot, lambda: any("feed of shares is up" in one.text for one in view().desk.lines))
        await asyncio.to_thread(sandbox.advance, "3m")
        # The minutes in between follow those that the feed has told of.
        await until(pilot, lambda: candles(pilot).days[-4:-1] == [at(15, 30), at(15, 31), at(15, 32)])
        later = candles(pilot)
        # Minutes that are over do not change.
        assert list(later.close[:59]) == list(minutes.close[:59])
        await pilot.press("l")
        assert (await titled(pilot, "ORVL 1D")).days[-1] == date(2024, 3, 1), "the session is forming at live prices"


async def test_before_the_first_trade_of_a_session_it_says_so(
    running: Running, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none_yet(*_: object) -> tuple[MinuteBar, ...]:
        return ()

    monkeypatch.setattr(SessionMinutes, "_requested", none_yet)
    async with running(open_desk=partial(open_desk, Invocation())) as pilot:
        await until(pilot, lambda: bool(pilot.app.bridge.snapshot().market))  # type: ignore[attr-defined]
        await pilot.press("z")
        days = await titled(pilot, "ORVL 1D")
        await pilot.press("h")
        said = pilot.app._notifications
        await until(pilot, lambda: any("no trade in this session yet" in one.message for one in said))
        assert candles(pilot).title == days.title


async def test_trades_and_decisions_are_on_the_bars(desk: Path, in_summer: None) -> None:
    with JournalReader(places.desk_journal("demo")) as reader:
        fills, decisions = reader.fills(), reader.decisions()
    symbol = fills[0].symbol
    made = [one for one in decisions if one.key.symbol == symbol]
    uncut = {(one.key.symbol, one.key.session): one.action.value for one in decisions if not one.cuts}
    assert {"HOLD", "BUY"} <= set(uncut.values()), "those without an order too"
    async with opened() as pilot:
        await until(pilot, lambda: len(pilot.app.screen.query_one(CandleChart).data) > 0)
        while not pilot.app.screen.query_one(CandleChart).data.title.startswith(f"{symbol} "):
            await pilot.press("right_square_bracket")
        desk = candles(pilot)
        charts = pilot.app.bridge.snapshot().market.charts  # type: ignore[attr-defined]
        shown = {(of, one.days[row]): name for of, one in charts.items() for row, name in one.decided.items()}
        bars = {(of, day) for of, one in charts.items() for day in one.days}  # a coin has had more of them since
        assert {where: name for where, name in shown.items() if where in uncut} == {
            where: name for where, name in uncut.items() if where in bars
        }
        cut = {(one.key.symbol, one.key.session) for one in decisions if one.cuts and not one.size}
        assert {where for where, name in shown.items() if name == CUT} == cut
        assert desk.decided
        await pilot.press("z")
        while (await titled(pilot, f"{pilot.app.screen.symbol} 1D")).title != f"{symbol} 1D":  # type: ignore[attr-defined]
            await pilot.press("right_square_bracket")
            await pilot.pause()
        data = candles(pilot)
        assert {data.days[row]: name for row, name in data.decided.items()} == {
            desk.days[row]: name for row, name in desk.decided.items()
        }
        marked = {(data.days[one.index], one.side) for one in data.markers}
        assert marked == {(fill.session, fill.side.value) for fill in fills if fill.symbol == symbol}
        chart = pilot.app.screen.query_one(CandleChart)
        chart.action_move(0)
        chart.action_move(data.days.index(made[-1].key.session) + 1 - len(data))
        await pilot.press("left", "right")
        await until(pilot, lambda: pilot.app.screen.chart.decision() is not None)  # type: ignore[attr-defined]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TrailScreen))
        await pilot.press("escape", "v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChartImageScreen))
        image = next((places.data_dir() / "screenshots").glob(f"{symbol}-*.png"))
        assert image.name == f"{symbol}-{made[-1].key.session}.png" and image.read_bytes().startswith(b"\x89PNG")
