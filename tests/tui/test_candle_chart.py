"""The chart widget in a running app: it draws, zooms, follows its cursor and takes its colours from the theme."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from textual import events
from textual.app import App, ComposeResult

from engine.domain.chart import Line
from tui.app import app as app_module
from tui.charts.chart_data import ChartData
from tui.settings.app_settings import THEMES
from tui.widgets.candle_chart import CandleChart


def data(count: int) -> ChartData:
    opens = [100.0 + n % 9 for n in range(count)]
    closes = [price + (1 if n % 3 else -2) for n, price in enumerate(opens)]
    days = [date(2024, 1, 1) + timedelta(days=n) for n in range(count)]
    return ChartData(
        open=opens,
        high=[p + 3 for p in opens],
        low=[p - 3 for p in opens],
        close=closes,
        volume=[5.0] * count,
        days=days,
        title="ABC 1D",
    )


class Desk(App[None]):
    CSS_PATH = Path(app_module.__file__).with_suffix(".tcss")

    def __init__(self, chart: ChartData) -> None:
        super().__init__()
        self.chart = chart

    def compose(self) -> ComposeResult:
        yield CandleChart(id="alone")

    def on_mount(self) -> None:
        chart = self.query_one(CandleChart)
        chart.show(self.chart)
        chart.focus()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)


def title(chart: CandleChart) -> str:
    return chart.render_line(0).text


@pytest.mark.parametrize("bars", [20, 60, 130, 520])
async def test_it_zooms_out_until_every_bar_is_in_view(bars: int) -> None:
    app = Desk(data(bars))
    async with app.run_test(size=(120, 40)) as pilot:
        chart = app.query_one(CandleChart)
        seen = []
        for _ in range(12):
            seen.append(chart.rows_in_view)
            await pilot.press("minus")
        assert seen[-1] == range(bars) and seen == sorted(seen, key=len)
        # The first level at which all are in view is the last one.
        fits = chart.shown_view
        assert seen.index(range(bars)) == 0 or len(seen[seen.index(range(bars)) - 1]) < bars
        await pilot.press("minus")
        assert chart.shown_view == fits
        await pilot.press("plus")
        assert chart.shown_view != fits


async def test_it_draws_and_zooms() -> None:
    app = Desk(data(400))
    async with app.run_test(size=(120, 40)) as pilot:
        chart = app.query_one(CandleChart)
        assert "ABC 1D  55 bars" in title(chart)
        await pilot.press("+")
        assert "37 bars" in title(chart)
        await pilot.press("minus", "minus")
        assert "111 bars" in title(chart)
        await pilot.press("minus")
        assert "(5 a candle)" in title(chart)
        await pilot.press("0")
        assert "55 bars" in title(chart)
        for _ in range(20):
            await pilot.press("minus")
        assert "400 bars" in title(chart)


async def test_the_cursor_moves_and_the_chart_follows() -> None:
    app = Desk(data(400))
    async with app.run_test(size=(120, 40)) as pilot:
        chart = app.query_one(CandleChart)
        await pilot.press("left")
        assert chart.shown_view.cursor == 399
        await pilot.press("left")
        assert chart.shown_view.cursor == 398
        assert "2025-02-02" in title(chart)
        for _ in range(60):
            await pilot.press("left")
        assert chart.shown_view.cursor == 338
        assert chart.shown_view.end == 338 + 55
        await pilot.press("end")
        assert (chart.shown_view.cursor, chart.shown_view.end) == (None, None)


@pytest.mark.parametrize("zoomed_out", range(5))
async def test_the_bar_under_the_cursor_is_drawn_at_every_zoom(zoomed_out: int) -> None:
    app = Desk(data(503))
    async with app.run_test(size=(121, 40)) as pilot:
        chart = app.query_one(CandleChart)
        await pilot.press(*["minus"] * zoomed_out)
        while (chart.shown_view.cursor or 503) > 100:
            await pilot.press("left")
            cells, _ = chart.places()
            assert chart.shown_view.cursor in chart.rows_in_view and min(cells) >= 0
        rows = chart.rows_in_view
        await pilot.click(CandleChart, offset=(0, 10))  # no candle stands there, or the first one in view
        assert chart.rows_in_view == rows


async def test_bars_in_view_fill_the_chart_and_are_of_the_same_days_after_a_session_came_or_went() -> None:
    every = data(504)
    columns = {name: getattr(every, name) for name in ("open", "high", "low", "close", "volume", "days")}

    def show(first: int, last: int) -> None:
        chart.show(
            replace(every, **{name: one[first:last] for name, one in columns.items()}), ("XYZ", [1.0] * (last - first))
        )

    app = Desk(data(503))
    async with app.run_test(size=(121, 40)) as pilot:
        chart = app.query_one(CandleChart)
        show(0, 503)
        await pilot.press("left", "pageup")
        shown = [chart.data.days[row] for row in chart.rows_in_view]
        show(1, 504)
        assert chart.data.days[chart.shown_view.cursor or 0] == every.days[502]
        assert [chart.data.days[row] for row in chart.rows_in_view] == shown
        show(0, 300)  # a place in the past: neither a bar nor a cursor beyond it
        assert chart.rows_in_view.stop == 300 and chart.shown_view.cursor == 299
        await pilot.pause()
        assert "XYZ" in title(chart)
        await pilot.press("home", "minus", "minus", "minus")
        assert chart.rows_in_view == range(300)


async def test_a_click_puts_the_cursor_on_the_candle() -> None:
    app = Desk(data(400))
    async with app.run_test(size=(120, 40)) as pilot:
        chart = app.query_one(CandleChart)
        await pilot.click(CandleChart, offset=(110, 10))
        assert chart.shown_view.cursor == 399
        await pilot.click(CandleChart, offset=(107, 10))
        assert chart.shown_view.cursor == 398


async def test_the_mouse_drags_zooms_and_crosses_the_bar_under_it() -> None:
    app = Desk(data(400))
    async with app.run_test(size=(120, 40)) as pilot:
        chart = app.query_one(CandleChart)
        await pilot.mouse_down(CandleChart, offset=(40, 10))
        await pilot.hover(CandleChart, offset=(60, 10))
        await pilot.mouse_up(CandleChart, offset=(60, 10))
        # Ten candles of two columns, and no cursor where the button was let go.
        assert (chart.shown_view.end, chart.shown_view.cursor) == (390, None)
        await pilot.hover(CandleChart, offset=(110, 10))
        assert chart.pointed == 389 and chart.shown_view.cursor is None
        close = f"╌{chart.data.close[389]:,.2f}"
        assert close in "".join(chart.render_line(y).text for y in range(40))
        chart.post_message(events.Leave(chart))
        await pilot.pause()
        assert chart.pointed is None and close not in "".join(chart.render_line(y).text for y in range(40))
        bars = len(chart.rows_in_view)
        for kind, fewer in ((events.MouseScrollUp, True), (events.MouseScrollDown, False)):
            chart.post_message(kind(chart, 40, 10, 0, 0, 0, False, False, False))
            await pilot.pause()
            assert (len(chart.rows_in_view) < bars) is fewer
        assert len(chart.rows_in_view) == bars


@pytest.mark.parametrize("bars", [61, 70, 130, 520])
async def test_zoomed_out_all_bars_fill_most_of_the_plot(bars: int) -> None:
    app = Desk(data(bars))
    async with app.run_test(size=(70, 40)) as pilot:
        chart = app.query_one(CandleChart)
        for _ in range(12):
            await pilot.press("minus")
        columns, width = chart.places()
        assert chart.rows_in_view == range(bars) and columns[0] < width / 2


async def test_rows_are_drawn_once_until_something_changes() -> None:
    app = Desk(data(50))
    async with app.run_test(size=(80, 24)) as pilot:
        chart = app.query_one(CandleChart)
        before = chart.render_line(5)
        chart.refresh()
        await pilot.pause()
        assert chart.render_line(5) is before
        chart.show(data(60))
        assert chart.render_line(5) is not before


async def test_colours_follow_the_theme_and_there_is_one_for_the_colour_blind() -> None:
    app = Desk(data(50))
    async with app.run_test(size=(80, 24)) as pilot:
        chart = app.query_one(CandleChart)

        def colours() -> set[str]:
            rows = [chart.render_line(y) for y in range(24)]
            return {s.style.color.name for row in rows for s in row if s.style and s.style.color}

        blue = THEMES["paperdesk-colour-blind"].success
        assert blue not in colours()
        app.register_theme(THEMES["paperdesk-colour-blind"])
        app.theme = THEMES["paperdesk-colour-blind"].name
        await pilot.pause()
        assert blue in colours()
        app.theme = "ansi-dark"
        await pilot.pause()
        bright_red, bright_green = "color(9)", "color(10)"
        assert {bright_red, bright_green} <= colours()


async def test_no_colour_means_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Desk(data(50))
    async with app.run_test(size=(80, 24)):
        chart = app.query_one(CandleChart)
        segments = [s for y in range(24) for s in chart.render_line(y)]
        assert all(s.style is None or s.style.color is None for s in segments)
        assert any("[" in s.text for s in segments)


@pytest.mark.parametrize(
    ("columns", "bars", "high", "samples", "close"),
    [
        (90, True, True, True, True),
        (80, False, True, True, True),
        (58, False, False, True, True),
        (44, False, False, False, True),
        (30, False, False, False, False),
    ],
)
async def test_names_of_the_lines_stay_the_longest_in_a_title_without_room(
    columns: int, bars: bool, high: bool, samples: bool, close: bool
) -> None:
    lines = tuple(Line(name, [1.0] * 50) for name in ("SMA10", "SMA50", "BB"))
    app = Desk(replace(data(50), lines=lines))
    async with app.run_test(size=(columns, 24)):
        shown = title(app.query_one(CandleChart))
        assert all(line.name in shown for line in lines), shown
        assert (" bars" in shown, " H1" in shown, "─" in shown, " C1" in shown) == (bars, high, samples, close), shown


@pytest.mark.parametrize("size", [(10, 4), (4, 2), (24, 8), (200, 60)])
@pytest.mark.parametrize("count", [0, 1, 400])
async def test_any_size_and_any_number_of_bars(size: tuple[int, int], count: int) -> None:
    app = Desk(data(count))
    async with app.run_test(size=size) as pilot:
        chart = app.query_one(CandleChart)
        await pilot.press("left", "right", "minus", "pageup", "pagedown", "home", "plus", "end")
        await pilot.pause()
        assert {chart.render_line(y).cell_length for y in range(size[1])} == {size[0]}
