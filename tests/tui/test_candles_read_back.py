"""Candles are read back from the cells that are drawn, as an eye would: from blocks and colours alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.strip import Strip

from engine.domain.chart import Line, Marker
from tests.examples import examples
from tui.charts.candle_raster import ChartStyle, plot_layout, render_candles
from tui.charts.chart_canvas import Palette
from tui.charts.chart_data import ChartData, ChartView

NAN = math.nan
COLOURS = {"up": "green", "down": "red", "volume_up": "blue", "volume_down": "magenta", "buy": "cyan", "sell": "yellow"}
DOTS = dict(zip(" ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█", range(16), strict=True))
"""The quarters of a cell that a block fills: 1 and 2 above, 4 and 8 below, left before right."""
NARROW = {"│": "ww", "╷": " w", "╵": "w ", "┃": "bb", "╻": " b", "╹": "b ", "╽": "wb", "╿": "bw"}
NARROW |= {"⣿": "hh", "⣤": " h", "⠛": "h ", "⣧": "wh", "⡟": "hw"}
"""The halves of a cell one column wide: w wick, b body, h the body of a rising candle without colour."""


class Seen(NamedTuple):
    """A candle as it is seen: half rows from the top of the plot, and its direction."""

    high: int
    low: int
    top: int
    bottom: int
    rises: bool


def colour_of(cells: Strip, x: int) -> str:
    """The colour of the character in a column."""
    (one,) = cells.crop(x, x + 1)
    return "" if one.style is None or one.style.color is None else str(one.style.color.name)


def halves(cells: Strip, x: int, step: int) -> tuple[str, str]:
    """The parts of a candle in the upper and lower half of a row: blank, w, b or h."""
    text = cells.text[x : x + step]
    if step == 1:
        parts = NARROW.get(text, "  ")
        return parts[0], parts[1]
    found = []
    for left, right in ((1, 2), (4, 8)):
        filled = [bool(DOTS.get(char, 0) & bit) for char in text for bit in (left, right)]
        inside = filled[1 : max((n for n, dot in enumerate(filled) if dot), default=0)]
        found.append(" " if not any(filled) else "w" if sum(filled) == 1 else "b" if all(inside) else "h")
    return found[0], found[1]


def read_back(data: ChartData, width: int, height: int, step: int, style: ChartStyle) -> list[Seen | None]:
    """The candles in a drawing, oldest first; None for a place without one."""
    strips = render_candles(data, width, height, ChartView(step=step), style)
    layout = plot_layout(data, width, height)
    rows = strips[layout.title : layout.bottom]
    shown = min(len(data), layout.plot_width // step)
    return [_candle(rows, layout.plot_width - (shown - n) * step, step, style) for n in range(shown)]


def _candle(rows: Sequence[Strip], x: int, step: int, style: ChartStyle) -> Seen | None:
    parts = [half for row in rows for half in halves(row, x, step)]
    drawn = [n for n, part in enumerate(parts) if part != " "]
    if not drawn:
        return None
    body = [n for n, part in enumerate(parts) if part in "bh"]
    assert body == list(range(body[0], body[-1] + 1)) and drawn == list(range(drawn[0], drawn[-1] + 1)), "no holes"
    rises = any(parts[n] == "h" for n in body)
    if style.palette is not None:
        row = rows[body[0] // 2]
        rises = {colour_of(row, column) for column in range(x, x + step)} >= {"green"}
    return Seen(drawn[0], drawn[-1], body[0], body[-1], rises)


@st.composite
def series(draw: st.DrawFn) -> ChartData:
    """Random bars: some rise, some fall, some end where they began, and a day in between may have none."""
    count = draw(st.integers(1, 14))
    price = st.floats(min_value=1, max_value=1000)
    bars = []
    for _ in range(count):
        first, last = draw(price), draw(price)
        last = first if draw(st.integers(0, 4)) == 0 else last
        tail, head = draw(st.floats(0, 50)), draw(st.floats(0, 50))
        bar = (first, max(first, last) + head, min(first, last) - tail, last)
        bars.append(bar if draw(st.integers(0, 6)) else (NAN, NAN, NAN, NAN))
    opens, highs, lows, closes = (list(column) for column in zip(*bars, strict=True))
    days = [date(2024, 3, 4) + timedelta(days=n) for n in range(count)]
    volume = [draw(st.floats(1, 1e9)) for _ in range(count)] if draw(st.booleans()) else []
    return ChartData(open=opens, high=highs, low=lows, close=closes, days=days, volume=volume)


styles = st.sampled_from([ChartStyle(Palette(COLOURS)), ChartStyle(None)])


@examples(150)
@given(series(), st.sampled_from([1, 2, 3, 4, 6, 8]), st.integers(20, 120), st.integers(10, 40), styles)
def test_candles_are_read_back_within_half_a_row(
    data: ChartData, step: int, width: int, height: int, style: ChartStyle
) -> None:
    seen = read_back(data, width, height, step, style)
    first = len(data) - len(seen)
    bars = list(zip(data.open, data.high, data.low, data.close, strict=True))[first:]
    known = [bar for bar in bars if not math.isnan(bar[0])]
    # A day without a price keeps its place, and every other candle stands on its own.
    assert [one is None for one in seen] == [math.isnan(bar[0]) for bar in bars]
    if not known:
        return
    top, bottom = max(bar[1] for bar in known), min(bar[2] for bar in known)
    if top - bottom < 1e-6 * top:
        return  # a flat market is drawn in the middle of a scale of its own
    half = (top - bottom) / (2 * plot_layout(data, width, height).rows)
    for one, (start, high, low, close) in zip(seen, bars, strict=True):
        if one is None:
            continue
        told = {
            "high": (one.high, high),
            "low": (one.low, low),
            "open": (one.bottom if one.rises else one.top, start),
            "close": (one.top if one.rises else one.bottom, close),
        }
        assert one.rises is (close >= start)
        for name, (place, price) in told.items():
            middle = top - (place + 0.5) * half
            assert abs(middle - price) <= half * 1.001, f"{name} {price} stands at {middle}, half a row is {half}"


def bars(*rows: tuple[float, float, float, float], **more: object) -> ChartData:
    """A chart of open, high, low, close."""
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
    days = [date(2024, 3, 4) + timedelta(days=n) for n in range(len(rows))]
    named = dict(zip(("open", "high", "low", "close"), columns, strict=True))
    return ChartData(**named, days=days, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [1, 2, 4, 8])
@pytest.mark.parametrize("style", [ChartStyle(Palette(COLOURS)), ChartStyle(None)], ids=["colour", "no colour"])
def test_a_doji_a_gap_and_an_empty_series(style: ChartStyle, step: int) -> None:
    doji, gap = (15.0, 20.0, 10.0, 15.0), (NAN, NAN, NAN, NAN)
    seen = read_back(bars(doji, gap, (20.0, 20.0, 10.0, 10.0)), 40, 14, step, style)
    assert seen[0] is not None and seen[0].top == seen[0].bottom and seen[0].rises
    assert seen[0].high < seen[0].top < seen[0].low
    assert seen[1] is None
    assert seen[2] == (0, seen[0].low, 0, seen[0].low, False)
    # A gap between two closes is a gap between two bodies.
    apart = read_back(bars((10.0, 11.0, 10.0, 11.0), (19.0, 20.0, 19.0, 20.0)), 40, 20, step, style)
    assert apart[0] is not None and apart[1] is not None and apart[1].low + 10 < apart[0].high
    empty = render_candles(bars(), 40, 14, ChartView(step=step), style)
    assert len(empty) == 14 and sum("no prices yet" in strip.text for strip in empty) == 1


@examples(60)
@given(series(), st.sampled_from([1, 2, 4]), st.integers(20, 90), st.integers(10, 40))
def test_the_lowest_candle_never_grows_into_the_volume(data: ChartData, step: int, width: int, height: int) -> None:
    strips = render_candles(data, width, height, ChartView(step=step), ChartStyle(Palette(COLOURS)))
    layout = plot_layout(data, width, height)
    for y, strip in enumerate(strips):
        colours = {
            str(one.style.color.name) for one in strip.crop(0, layout.plot_width) if one.style and one.style.color
        }
        volume = layout.floor <= y < layout.floor + layout.volume
        assert not colours & ({"green", "red"} if volume else {"blue", "magenta"})


@pytest.mark.parametrize("rows", [10, 14, 30])
def test_a_mark_is_no_part_of_a_candle(rows: int) -> None:
    marked = bars(*[(10.0, 20.0, 5.0, 15.0)] * 3, markers=(Marker(1, "BUY", 12.0), Marker(2, "SELL", 12.0)))
    for palette in (Palette(COLOURS, "black"), None):
        strips = render_candles(marked, 40, rows, ChartView(step=4), ChartStyle(palette))
        marks = {
            char: (strip.text.index(char), y) for y, strip in enumerate(strips) for char in "▲▼" if char in strip.text
        }
        assert set(marks) == {"▲", "▼"}
        layout = plot_layout(marked, 40, rows)
        if layout.marks:  # no room beside the candles: they stand under the plot
            assert {y for _, y in marks.values()} == {layout.bottom}
        else:
            for char, towards in (("▲", -1), ("▼", 1)):
                x, y = marks[char]
                nearest = strips[y + towards].text[x - 1 : x + 2]
                assert set(nearest) <= set(" ·"), "a free row between a mark and its candle"
                (one,) = strips[y].crop(x, x + 1)
                # In the mark's own colour and on the plot's ground: a filled cell would look like a candle.
                assert one.style is not None and one.style.bold
                if palette is not None:
                    assert one.style.color is not None and one.style.color.name in ("cyan", "yellow")
                    assert one.style.bgcolor is not None and one.style.bgcolor.name == "black"
        above = read_back(marked, 40, rows, 4, ChartStyle(palette))
        assert len({one and (one.high, one.low) for one in above}) == 1, "marks change no candle"


def test_the_legend_stays_at_120_columns() -> None:
    closes = [100.0 + n % 7 for n in range(50)]
    flat = tuple([100.0] * 50)
    lines = (
        Line("SMA10", flat, "short"),
        Line("SMA50", flat, "long"),
        Line("BB", flat, "upper"),
        Line("BB", flat, "lower"),
    )
    data = bars(*[(one, one + 2, one - 2, one + 1) for one in closes], lines=lines, title="NVDA 1D")
    for width in (80, 100, 120, 140):
        title = render_candles(data, width, 30, ChartView(step=2))[0].text
        assert all(name in title for name in ("SMA10", "SMA50", "BB")), width
