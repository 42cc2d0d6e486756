"""The candle renderer: any data at any size gives a full rectangle, and a small chart looks as it should."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from engine.domain.chart import Line, Marker
from engine.errors import InvariantBroken
from tests.examples import examples
from tui.charts.candle_raster import SIGNS, ChartStyle, render_candles
from tui.charts.chart_axes import PriceScale, compact, date_labels
from tui.charts.chart_canvas import Palette
from tui.charts.chart_data import ChartData, ChartView, visible_candles

NAN = math.nan
COLOURS = Palette({"up": "green", "down": "red", "paper": "black", "fill": "#222222"}, "#101010")

prices = st.one_of(
    st.floats(min_value=0.01, max_value=1000),
    st.sampled_from([0.0, -5.0, 1e-12, 1e14, 1e300, -1e300, NAN, math.inf, -math.inf]),
)


@st.composite
def charts(draw: st.DrawFn) -> ChartData:
    count = draw(st.integers(0, 40))
    column = st.lists(prices, min_size=count, max_size=count)
    volume = draw(st.one_of(st.just([]), column))
    lines = tuple(
        Line(role, tuple(draw(st.lists(st.none() | prices, min_size=count, max_size=count))), role)
        for role in draw(st.lists(st.sampled_from(["line", "upper", "lower"]), max_size=4))
    )
    sides = st.sampled_from(["BUY", "SELL"])
    markers = draw(st.lists(st.builds(Marker, st.integers(-3, 45), sides, prices), max_size=5))
    start = draw(st.sampled_from([date(2023, 12, 20), datetime(2023, 12, 31, 15, 30, tzinfo=UTC)]))
    days = [start + timedelta(hours=draw(st.sampled_from([24, 30])) * n) for n in range(count)]
    columns = [draw(column) for _ in range(4)]
    return ChartData(
        **dict(zip(("open", "high", "low", "close"), columns, strict=True)),
        volume=volume,
        days=days,
        lines=lines,
        markers=tuple(markers),
        decided=draw(st.dictionaries(st.integers(-3, 45), st.sampled_from(sorted(SIGNS)), max_size=5)),
        title=draw(st.sampled_from(["", "NVDA 1D"])),
    )


views = st.builds(
    ChartView,
    step=st.integers(1, 9),
    per=st.integers(1, 60),
    end=st.none() | st.integers(-2, 50),
    cursor=st.none() | st.integers(-2, 50),
)
styles = st.builds(ChartStyle, palette=st.sampled_from([None, COLOURS]), ascii_only=st.booleans())


@examples(150)
@given(charts(), st.integers(-1, 90), st.integers(-1, 40), views, styles)
def test_any_chart_fills_its_rectangle(
    data: ChartData, width: int, height: int, view: ChartView, style: ChartStyle
) -> None:
    strips = render_candles(data, width, height, view, style)
    assert len(strips) == (max(0, height) if width > 0 else 0)
    for strip in strips:
        assert sum(len(segment.text) for segment in strip) == strip.cell_length == width
        if style.ascii_only:
            assert strip.text.isascii()
        if style.palette is None:
            assert all(s.style is None or (s.style.color is s.style.bgcolor is None) for s in strip)


@pytest.mark.parametrize("price", [0.0, 5.0, 1e14])
def test_a_flat_market_is_drawn(price: float) -> None:
    flat = [price] * 5
    days = [date(2024, 3, 4) + timedelta(days=n) for n in range(5)]
    text = [s.text for s in render_candles(ChartData(open=flat, high=flat, low=flat, close=flat, days=days), 40, 10)]
    assert any(set(row) & set("▘▝▀▖▌▞▛▗▚▐▜▄▙▟█") for row in text)


def small_chart() -> ChartData:
    opens = [10.0, 11.0, 12.0, 13.0, 12.0, 11.0]
    closes = [11.0, 12.0, 13.0, 12.0, 11.0, 14.0]
    highs = [11.5, 12.5, 14.0, 13.5, 12.0, 15.0]
    lows = [9.0, 11.0, 11.5, 11.5, 10.0, 11.0]
    days = [date(2024, 2, 27) + timedelta(days=n) for n in range(6)]
    markers = (Marker(1, "BUY", 11.2), Marker(3, "SELL", 12.9))
    volume = [100.0, 200.0, 800.0, 300.0, 200.0, 400.0]
    return ChartData(
        open=opens,
        high=highs,
        low=lows,
        close=closes,
        volume=volume,
        days=days,
        lines=(),
        markers=markers,
        title="ABC 1D",
    )


def rows(data: ChartData, width: int, height: int, **how: object) -> list[str]:
    view = how.pop("view", ChartView(step=4))
    assert isinstance(view, ChartView)
    return [s.text.rstrip() for s in render_candles(data, width, height, view, ChartStyle(**how))]  # type: ignore[arg-type]


DECIDED = {0: "BUY", 1: "HOLD", 2: "SELL", 3: "CUT", 4: "ABSTAIN"}


def test_a_small_chart_is_drawn_in_blocks_and_in_plain_characters(snapshot: SnapshotAssertion) -> None:
    """Six candles, the third the most traded, bought in the second, sold in the fourth. With room the fills stand
    beside their candles, with a free row between, and what was decided under each."""
    decided = replace(small_chart(), decided=DECIDED)
    assert "\n".join(rows(small_chart(), 40, 14)) == snapshot(name="blocks")
    assert "\n".join(rows(small_chart(), 40, 14, ascii_only=True)) == snapshot(name="plain characters")
    assert "\n".join(rows(decided, 40, 20)) == snapshot(name="decided")
    plain = rows(decided, 40, 20, ascii_only=True)
    assert plain[15] == "        ^   -   v   #   ?       decided"
    # Of several bars in one candle an order counts first, then what a limit cut.
    assert rows(decided, 40, 20, view=ChartView(step=4, per=2))[15].split() == ["▲", "▼", "?", "decided"]


def test_rising_bodies_are_hollow_and_falling_ones_solid_without_colour() -> None:
    rising = ChartData(open=[1.0], high=[9.0], low=[1.0], close=[9.0], days=[date(2024, 3, 4)])
    falling = ChartData(open=[9.0], high=[9.0], low=[1.0], close=[1.0], days=[date(2024, 3, 4)])
    inside_rising, inside_falling = (rows(data, 8, 9)[4] for data in (rising, falling))
    assert inside_rising.strip() == "▌ ▌"
    assert inside_falling.strip() == "██▌"
    assert "██▌" in rows(rising, 8, 9, palette=COLOURS)[4]


def inks(chart: ChartData, view: ChartView | None = None) -> tuple[str, str]:
    """The colours of the boxed price and of the change in the title row."""
    palette = Palette({"up": "#00ff00", "down": "#ff0000", "paper": "#000001"})
    strips = render_candles(chart, 80, 14, view, ChartStyle(palette))
    cells = [segment for strip in strips for segment in strip if segment.style is not None]
    box = next(one for one in cells if one.style.bgcolor is not None and one.text.strip())  # type: ignore[union-attr]
    change = next(one for one in strips[0] if one.text.strip().endswith("%"))
    assert box.style is not None and change.style is not None
    assert box.style.bgcolor is not None and change.style.color is not None
    return box.style.bgcolor.name, change.style.color.name


@pytest.mark.parametrize(("close", "colour"), [(101.0, "#00ff00"), (99.0, "#ff0000")])
@pytest.mark.parametrize("view", [None, ChartView(step=2, per=5)])
def test_box_and_title_have_the_sign_of_the_days_change(close: float, colour: str, view: ChartView | None) -> None:
    """Of a bar that opened beyond its close on the other side of the close before."""
    opened = 102.0 if close > 100 else 98.0
    days = [date(2024, 3, 4) + timedelta(days=n) for n in range(12)]
    column = [100.0] * 11
    chart = ChartData(
        open=[*column, opened], high=[*column, 103.0], low=[*column, 97.0], close=[*column, close], days=days
    )
    assert visible_candles(chart, ChartView(), 80)[-1].up is (close < 100), "the candle has its own colour"
    assert inks(chart, view) == (colour, colour)


def test_bars_beyond_the_columns_are_taken_together() -> None:
    count = 100
    opens = [float(n) for n in range(count)]
    days = [date(2024, 1, 1) + timedelta(days=n) for n in range(count)]
    data = ChartData(
        open=opens,
        high=[n + 3.0 for n in opens],
        low=[n - 2.0 for n in opens],
        close=opens,
        volume=[1.0] * count,
        days=days,
    )
    view = ChartView(step=2, per=10)
    candles = visible_candles(data, view, 20)
    assert len(candles) == 10
    first = candles[0]
    assert (first.open, first.high, first.low, first.close, first.volume) == (0.0, 12.0, -2.0, 9.0, 10.0)
    assert candles[-1].last == count - 1


def test_panning_keeps_the_groups() -> None:
    count = 60
    column = [float(n % 7 + 1) for n in range(count)]
    days = [date(2024, 1, 1) + timedelta(days=n) for n in range(count)]
    data = ChartData(open=column, high=column, low=column, close=column, days=days)
    newest = {c.first for c in visible_candles(data, ChartView(1, 5), 8)}
    earlier = {c.first for c in visible_candles(data, ChartView(1, 5, end=50), 8)}
    assert {c % 5 for c in newest | earlier} == {0}
    assert max(earlier) == 45


@pytest.mark.parametrize("per", [1, 2])
def test_under_a_cursor_the_title_is_of_one_bar_however_many_a_candle_takes_together(per: int) -> None:
    title = rows(small_chart(), 60, 14, view=ChartView(step=4, per=per, cursor=2))[0]
    assert "2024-02-29 O12.00 H14.00 L11.50 C13.00 +8.33%" in title


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(InvariantBroken, match="2 opens but 1 highs"):
        ChartData(open=[1.0, 2.0], high=[1.0])


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.integers(1, 80))
def test_ticks_are_on_the_rows_of_their_prices(low: float, span: float, height: int) -> None:
    scale = PriceScale.spanning(low, low + span, height)
    ticks = scale.ticks()
    assert [row for row, _ in ticks] == sorted(row for row, _ in ticks)
    assert all(0 <= row < height and abs(scale.at(price, 1) - row) <= 1 for row, price in ticks)


def test_date_labels_never_touch() -> None:
    days = [date(2022, 11, 1) + timedelta(days=n) for n in range(500)]
    for step, width in ((1, 500), (1, 80), (2, 200), (4, 120)):
        shown = days[-(width // step) :]
        labels = date_labels(shown, [n * step for n in range(len(shown))], width)
        assert labels
        ends = [label.x + len(label.text) for label in labels]
        assert all(end + 2 <= label.x for end, label in zip(ends, labels[1:], strict=False))
        assert ends[-1] <= width


def test_compact_numbers() -> None:
    assert [compact(v) for v in (950.0, 1200.0, 999_900.0, 48_200_000.0, 1.79e9)] == [
        "950",
        "1.2k",
        "1.0M",
        "48M",
        "1.8B",
    ]
