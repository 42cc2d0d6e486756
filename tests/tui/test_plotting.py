"""Curves as text and as a widget: full rectangles, no colour where none is wanted, and the newest data wins."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import pytest
from conftest import drawn as painted
from conftest import until
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from tests.examples import examples
from tui.charts.bars import bar_plot
from tui.charts.candle_raster import ChartStyle
from tui.charts.chart_canvas import Palette
from tui.charts.plotting import PlotData, equity_plot, render_curves
from tui.widgets.plot import CurvePlot

values = st.lists(st.none() | st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, 1e300, 0.0]), max_size=60)


@examples(60)
@given(
    st.dictionaries(st.sampled_from(["desk", "SPY", "buy and hold"]), values, max_size=3),
    st.integers(0, 100),
    st.integers(0, 30),
    st.booleans(),
)
def test_any_curves_fill_their_rectangle(
    series: dict[str, list[float | None]], width: int, height: int, ascii_only: bool
) -> None:
    text = equity_plot(series, ["2024-01-02"] * 60, width, height, colour=False, ascii_only=ascii_only)
    lines = text.split("\n") if text else []
    assert len(lines) == (height if width else 0)
    assert all(len(line) == width for line in lines)
    assert "\x1b" not in text
    assert not ascii_only or text.isascii()


def test_a_rising_curve_climbs_from_left_to_right() -> None:
    labels = [f"2024-01-{day:02d}" for day in range(1, 31)]
    rising = [100.0 + n for n in range(30)]
    rows = equity_plot({"desk": rising}, labels, 60, 15, colour=False, ascii_only=True).split("\n")
    assert rows[0].startswith("* desk 129.00")
    found = [mark for row in rows[1:] if (mark := row.find("*")) >= 0]
    assert len(found) == 13 and found == sorted(found, reverse=True)
    assert found[0] > 40 and found[-1] == 0
    assert rows[-1].split() == ["Jan", "01", "Jan", "08", "Jan", "15", "Jan", "22", "Jan", "29"]


def drawn(*curves: tuple[int, ...], width: int = 16, height: int = 5, **settings: Any) -> list[str]:
    data = PlotData({str(n): curve for n, curve in enumerate(curves)}, **settings)
    canvas = render_curves(data, width, height, ChartStyle()).canvas
    return ["".join(row).rstrip() for row in canvas.chars[1:]]


def test_a_curve_is_one_line_with_corners_whatever_it_does() -> None:
    columns = tuple(range(8)), 12
    assert drawn((0, 0, 3, 3, 3, 0, 0, 2), columns=columns) == [
        "  ╭──╮",
        "· │ ·│ ╭·     2",
        "  │  │ │",
        "──╯ ·╰─╯·     0",
    ]
    # Several points in a column: what goes beyond its ends is drawn too.
    spikes = drawn((1, 1, 3, 0, 1, 1), columns=((0, 1, 1, 1, 1, 2), 12))
    assert [row[:3] for row in spikes] == [" ╷", "·│ ", "─┼─", "·╵ "]


def test_curves_are_told_apart_without_colour_and_the_one_held_against_is_thin() -> None:
    data = PlotData({"desk": [1.0, 2.0], "SPY": [1.5, 1.5], "buy-and-hold": [2.0, 1.0]}, beside="buy-and-hold")
    canvas = render_curves(data, 60, 12, ChartStyle()).canvas
    legend = "".join(canvas.chars[0]).rstrip()
    assert legend == "─ desk 2.00  ━ SPY 1.50  ┈ buy-and-hold 1.00"
    inks = {ink for row in canvas.inks[1:-1] for ink in row}
    assert {"line0", "line1", "muted"} <= inks and "line2" not in inks


def test_a_drawdown_is_tinted_from_the_top() -> None:
    style = ChartStyle(Palette({"fill": "#111111"}))
    canvas = render_curves(PlotData({"fall": [0.0, -3.0]}, columns=((0, 11), 12), shaded=True), 20, 5, style).canvas
    tinted = [sum(ink == "fill" for ink in row) for row in canvas.behind]
    assert tinted[0] == 0 and tinted[1] > tinted[2] > tinted[3] > 0 == tinted[4]


def test_a_cursor_is_ruled_through_the_point_it_is_on() -> None:
    rows = drawn((0, 3, 0), columns=((0, 5, 11), 12), cursor=1)
    assert [row[5] for row in rows] == ["╭", "╯", "┊", "┊"]
    beyond = drawn((0, 3, 0), columns=((0, 5, 30), 40), cursor=2, shaded=True)  # of candles that had more room
    assert "┊" not in "".join(beyond)


def test_every_curve_is_named_however_narrow_the_legend_is() -> None:
    series = {"this account": [1.0, 2.0], "buy-and-hold": [2.0, 3.0], "FABX": [2.0, 1.0]}
    legends = {width: equity_plot(series, ["a", "b"], width, 9, colour=False).split("\n")[0] for width in (32, 40, 80)}
    assert legends[80].split("  ")[2].strip() == "═ FABX 1.00"
    assert legends[40].rstrip() == "─ this account  ━ buy-and-hold  ═ FABX"
    assert legends[32].rstrip() == "─ this acc…  ━ buy-and-…  ═ FABX"


def price_labels(series: Mapping[str, Sequence[float]], width: int, height: int) -> list[str]:
    """The texts right of the plot."""
    data = PlotData(series, columns=(range(9), width - 12))
    canvas = render_curves(data, width, height, ChartStyle()).canvas
    return [text for row in canvas.chars[1:] if (text := "".join(row[width - 12 :]).strip())]


@pytest.mark.parametrize("height", [6, 7, 8, 12, 25])
@pytest.mark.parametrize(
    ("value", "label"),
    [(0.0, "0"), (-0.0, "0"), (100.0, "100"), (97.5, "97.5"), (-0.0004, "-0.0004"), (1_234_570.2, "1,234,570")],
)
def test_a_flat_curve_has_its_value_for_the_only_price_label(value: float, label: str, height: int) -> None:
    assert price_labels({"drawdown": [value] * 4}, 55, height) == [label]


@pytest.mark.parametrize("width", [30, 40, 80])
@pytest.mark.parametrize(
    ("low", "high"), [(95.4, 97.8), (-3.0, 0.0), (0.01, 0.99), (999_999.65, 1_000_000.0), (95.0, 105.0)]
)
def test_a_low_pane_has_two_price_labels_at_least(low: float, high: float, width: int) -> None:
    for height in range(5, 14):
        labels = price_labels({"desk": [high, low]}, width, height)
        assert len(set(labels)) == len(labels) >= 2
        prices = [float(label.replace(",", "")) for label in labels]
        assert prices == sorted(prices, reverse=True)
        assert low - 1e-9 <= prices[-1] < prices[0] <= high + 1e-9


def test_levels_are_ruled_and_named_in_place_of_round_prices() -> None:
    rows = drawn((10, 90), width=40, height=11, columns=((0, 30), 34), levels=(30.0, 70.0))
    assert [row.split()[-1] for row in rows if row[-1:].isdigit()] == ["70", "30"]
    assert [row.count("\u00b7") > 15 for row in rows].count(True) == 2


def test_a_single_level_is_ruled_between_the_ends_of_the_scale() -> None:
    rows = drawn((-4, 6), width=40, height=12, columns=((0, 30), 34), levels=(0.0,))
    assert [row.split()[-1] for row in rows if row[-1:].isdigit()] == ["6", "0", "-4"]
    (ruled,) = [row for row in rows if row.count("·") > 15]
    assert ruled.endswith(" 0")


@pytest.mark.parametrize("sessions", [2, 3, 4, 5, 8, 20, 300])
def test_dates_are_those_of_the_points_above_them_and_never_touch(sessions: int) -> None:
    days = [date(2026, 11, 12) + timedelta(days=n) for n in range(sessions)]
    values = [100 + n / sessions for n in range(sessions)]
    for width in range(24, 131, 5):
        drawing = render_curves(PlotData({"desk": values}, [*map(str, days)]), width, 10, ChartStyle())
        bottom = "".join(drawing.canvas.chars[-1])
        assert bottom.strip()
        for found in re.finditer(r"(Nov|Dec) (\d\d)", bottom):
            at = [place for place, column in enumerate(drawing.columns) if column == found.start()]
            assert f"{found[1]} {found[2]}" in {f"{days[place]:%b %d}" for place in at}


def test_labels_that_are_no_dates_are_named_at_the_ends() -> None:
    last = equity_plot({"rsi": [1.0, 2.0, 3.0]}, ["first", "second", "third"], 70, 8, colour=False).split("\n")[-1]
    assert last.split() == ["first", "third"]


def test_a_legend_drops_decimals_before_it_drops_the_values() -> None:
    series = {"this account": [100.0, 100.05], "buy-and-hold": [100.0, 100.71], "FABX": [100.0, 100.88]}
    legends = [
        equity_plot(series, ["a", "b"], width, 9, colour=False, ascii_only=True).split("\n")[0].rstrip()
        for width in (59, 58, 55, 50, 48)
    ]
    assert legends == [
        "* this account 100.05  + buy-and-hold 100.71  x FABX 100.88",
        "* this account 100.0  + buy-and-hold 100.7  x FABX 100.9",
        "* this account 100  + buy-and-hold 101  x FABX 101",
        "* this account 100  + buy-and-hold 101  x FABX 101",
        "* this account  + buy-and-hold  x FABX",
    ]
    assert equity_plot({"fall": [-1.0, -0.04]}, ["a", "b"], 10, 3, colour=False).startswith("─ fall 0.0")


def test_colour_adds_codes_and_nothing_else() -> None:
    plain, coloured = (equity_plot({"desk": [1.0, 2.0]}, ["a", "b"], 40, 10, colour=colour) for colour in (False, True))
    assert "\x1b[" in coloured and re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_a_spike_survives_thinning() -> None:
    spiky = [100.0] * 5000
    spiky[2500] = 900.0
    rows = equity_plot({"desk": spiky}, [""] * 5000, 60, 14, colour=False, ascii_only=True).split("\n")
    assert any("*" in row for row in rows[1:3])


def test_a_shell_loads_neither_plotext_nor_textual_for_a_curve() -> None:
    draw = "tui.charts.plotting.equity_plot({'a': [1., 2.]}, ['a', 'b'], 60, 9, colour=True)"
    code = f"import sys, tui.charts.plotting; {draw}; sys.exit('plotext' in sys.modules or 'textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class Screen(App[None]):
    def compose(self) -> ComposeResult:
        yield CurvePlot()


async def test_the_widget_draws_and_takes_new_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    app = Screen()
    async with app.run_test(size=(60, 16)) as pilot:
        plot = app.query_one(CurvePlot)
        plot.show(PlotData({"desk": [1.0, 2.0, 4.0]}, ["a", "b", "c"]))
        await app.workers.wait_for_complete()
        assert "desk 4.00" in plot.render_line(0).text
        plot.show(PlotData({"SPY": [7.0, 8.0]}, ["a", "b"]))
        plot.show(PlotData({"QQQ": [7.0, 9.0]}, ["a", "b"]))
        await pilot.pause()
        while any(not worker.is_finished for worker in app.workers):
            await pilot.pause(0.01)
        await until(pilot, lambda: "QQQ 9.00" in painted(pilot))
        plot.show(PlotData())
        await until(pilot, lambda: "QQQ" not in painted(pilot))
        plot.show(PlotData({"QQQ": [7.0, 9.0]}, ["a", "b"]))
        await until(pilot, lambda: "QQQ 9.00" in painted(pilot))
        assert {plot.render_line(y).cell_length for y in range(16)} == {60}
        # Every cell lies on the screen's ground, those of the axes too: the terminal's own may be white.
        grounds = {segment.style and segment.style.bgcolor for y in range(16) for segment in plot.render_line(y)}
        assert grounds == {plot.rich_style.bgcolor}


def test_a_narrow_legend_names_every_curve_rather_than_its_value() -> None:
    series = {name: [1.0, 100_000.0] for name in ("Ann", "Bob", "Cy", "Dee")}
    narrow, wide = (
        equity_plot(series, ["1", "2"], width, 10, colour=False).splitlines()[0].rstrip() for width in (40, 80)
    )
    assert narrow == "─ Ann  ━ Bob  ═ Cy  ╌ Dee"
    assert wide.startswith("─ Ann 100,000.00  ━ Bob 100,000.00") and wide.endswith("╌ Dee 100,000.00")


@pytest.mark.parametrize("count", [1, 2, 24, 90])
def test_bars_of_the_newest_values_stand_between_the_labels_of_their_ends(count: int) -> None:
    labels = [f"run {n}" for n in range(count)]
    rows = bar_plot([*range(1, count), 2 * count], labels, 60, 10)
    assert len(rows) == 10 and max(map(len, rows)) <= 60 and rows[-1].rstrip().endswith(labels[-1])
    assert "█" in rows[1], "the largest value reaches the top"
    assert bar_plot([], [], 60, 10) == []
    none = bar_plot([0.0] * count, labels, 60, 10)
    assert "1.0" in none[1] and "█" not in "".join(none), "the scale of nothing goes to 1"
