"""The PNG of a chart: what is on it, how large it is, and that equal charts are equal pictures."""

from __future__ import annotations

import asyncio
import csv
import io
import math
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from connectors.charts.painter import MatplotlibPainter, TextLayout
from engine.domain.chart import Candles, ChartSpec, Line, Marker, Panel
from engine.errors import InvariantBroken, MissingData
from engine.ports import ChartPainter

GREEN, RED, BLUE, ORANGE = (10, 143, 108), (214, 52, 44), (23, 105, 210), (224, 123, 0)
BAND, BAR_UP, BAR_DOWN = (241, 234, 248), (134, 200, 183), (234, 154, 150)


def wave(count: int, height: float = 5.0, base: float = 100.0) -> tuple[float, ...]:
    return tuple(round(base + height * math.sin(n / 4) + n / 10, 4) for n in range(count))


def signals(count: int = 30, *markers: Marker) -> ChartSpec:
    closes = wave(count)
    sessions = tuple(f"2024-{1 + n // 28:02d}-{1 + n % 28:02d}" for n in range(count))
    return ChartSpec(
        kind="signals",
        title="NVDA, closes",
        symbol="NVDA",
        sessions=sessions,
        lines=(Line("close", closes, "close"),),
        markers=markers,
    )


def kline(count: int = 30) -> ChartSpec:
    closes = wave(count)
    opens = tuple(value + (0.8 if n % 3 else -0.8) for n, value in enumerate(closes))
    candles = Candles(
        opens,
        tuple(max(pair) + 0.5 for pair in zip(opens, closes, strict=True)),
        tuple(min(pair) - 0.5 for pair in zip(opens, closes, strict=True)),
        closes,
    )
    upper, lower = (tuple(value + away for value in closes) for away in (4.0, -4.0))
    late = (None,) * 9
    lines = (
        Line("SMA 10", late + closes[9:], "short"),
        Line("upper band", late + upper[9:], "upper"),
        Line("lower band", late + lower[9:], "lower"),
    )
    panels = (
        Panel("Volume", bars=tuple(1e6 * (1 + n % 5) for n in range(count))),
        Panel("RSI 14", (Line("RSI 14", wave(count, 30, 50)),), levels=(30.0, 70.0)),
        Panel("MACD", (Line("MACD", wave(count, 2, 0), "fast"),), bars=wave(count, 3, -1), levels=(0.0,)),
    )
    return replace(signals(count), kind="kline", candles=candles, lines=lines, panels=panels)


async def picture(spec: ChartSpec) -> Image.Image:
    return Image.open(io.BytesIO(await MatplotlibPainter().paint(spec)))


def pixels(image: Image.Image, colour: tuple[int, int, int], box: tuple[int, int, int, int] | None = None) -> int:
    part = (image.crop(box) if box else image).convert("RGB")
    return {found: count for count, found in part.getcolors(part.width * part.height)}.get(colour, 0)


async def test_it_is_a_small_png_of_the_promised_size_in_64_colours() -> None:
    painter: ChartPainter = MatplotlibPainter()
    png = await painter.paint(kline(60))
    image = Image.open(io.BytesIO(png))
    assert (image.format, image.size, image.mode) == ("PNG", (1000, 800), "P")
    assert len(image.getcolors()) <= 64
    assert len(png) < 45_000


async def test_equal_charts_are_equal_bytes_and_other_charts_are_not() -> None:
    one, other = MatplotlibPainter(), MatplotlibPainter()
    assert await one.paint(kline()) == await other.paint(kline()) == await one.paint(kline())
    moved = replace(kline(), title="AAPL, closes")
    assert await one.paint(moved) != await one.paint(kline())


async def test_candles_band_lines_and_panels_are_all_there() -> None:
    image = await picture(kline())
    for colour in (GREEN, RED, BLUE, BAND, BAR_UP, BAR_DOWN):
        assert pixels(image, colour) > 100, colour
    bare = await picture(replace(kline(), lines=(), panels=()))
    # What is left are pixels on the edges of candles.
    for colour in (BLUE, BAND, BAR_UP, BAR_DOWN):
        assert pixels(bare, colour) < pixels(image, colour) / 8, colour


@pytest.mark.parametrize("count", [5, 60, 250])
async def test_labels_of_sessions_do_not_overprint(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weeks and months begin anywhere in a window, so a first label can stand close to the second."""
    written: list[tuple[float, float]] = []
    write = TextLayout.write

    def noted(layout: TextLayout, x: float, y: float, text: str, *rest: Any, **more: Any) -> None:
        if y == 16:
            half = layout.width(text, 9) / 2
            written.append((x - half, x + half))
        write(layout, x, y, text, *rest, **more)

    monkeypatch.setattr(TextLayout, "write", noted)
    for first in (date(2019, 1, 30), date(2024, 3, 29)):
        weekdays = (first + timedelta(days=n) for n in range(2 * count + 7))
        sessions = tuple(str(day) for day in weekdays if day.weekday() < 5)[:count]
        written.clear()
        await picture(replace(signals(count), sessions=sessions))
        placed = sorted(written)
        assert len(placed) >= 2 and placed[0][0] >= 0 and placed[-1][1] <= 1000
        assert all(after[0] - before[1] >= 8 for before, after in pairwise(placed)), (count, first, placed)


async def test_candles_fill_the_price_panel_and_lines_far_from_them_stay_inside_it() -> None:
    spec = kline(60)
    far = Line("SMA 50", tuple(value + 60 * (n < 20) - 60 * (n > 40) for n, value in enumerate(wave(60))), "long")
    image = await picture(replace(spec, lines=(*spec.lines, far)))
    # The panel of prices is what three panels of at most 128 pixels leave between 72 and 768.
    top, bottom = 72, 768 - 3 * 128
    candles = [
        y
        for y in range(top, bottom)
        if pixels(image, GREEN, (12, y, 915, y + 1)) + pixels(image, RED, (12, y, 915, y + 1))
    ]
    assert (max(candles) - min(candles)) / (bottom - top) > 0.8
    assert pixels(image, ORANGE, (12, 58, 915, top - 1)) == pixels(image, ORANGE, (12, bottom + 2, 915, 768)) == 0
    assert pixels(image, ORANGE, (12, top, 915, bottom)) > 100


async def test_a_chart_of_rising_sessions_has_no_red_candle() -> None:
    spec = kline()
    assert spec.candles is not None
    closes = tuple(value + 1 for value in spec.candles.open)
    rising = replace(spec.candles, close=closes, high=tuple(value + 1 for value in closes))
    image = await picture(replace(spec, candles=rising, lines=(), panels=()))
    plot = (0, 80, 915, 760)
    assert pixels(image, RED, plot) == 0
    assert pixels(image, GREEN, plot) > 1000


async def test_buys_are_green_under_the_price_sells_red_over_it_and_holds_leave_nothing() -> None:
    plot = (0, 80, 915, 760)
    closes = wave(30)
    buy, sell = Marker(5, "BUY", closes[5]), Marker(20, "SELL", closes[20])
    none = await picture(signals())
    bought, sold = await picture(signals(30, buy)), await picture(signals(30, sell))
    # The last price's dotted line is green or red as well, and the same on all three.
    green, red = pixels(none, GREEN, plot), pixels(none, RED, plot)
    assert pixels(bought, GREEN, plot) - green > 50
    assert pixels(bought, RED, plot) == red
    assert pixels(sold, RED, plot) - red > 50
    changed = sideways(none, bought), sideways(none, sold)
    assert abs(changed[0][0] - (12 + 5.5 * 906 / 30)) < 3
    assert abs(changed[1][0] - (12 + 20.5 * 906 / 30)) < 3


def sideways(before: Image.Image, after: Image.Image) -> tuple[float, float]:
    """The middle of what differs in the plot, from left and from above."""
    from PIL import ImageChops

    plot = (0, 80, 915, 760)
    box = ImageChops.difference(before.convert("RGB").crop(plot), after.convert("RGB").crop(plot)).getbbox()
    assert box is not None
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


async def test_a_marker_stands_off_its_price_on_its_own_side() -> None:
    closes = wave(30)
    none = await picture(signals())
    below = sideways(none, await picture(signals(30, Marker(14, "BUY", closes[14]))))
    above = sideways(none, await picture(signals(30, Marker(14, "SELL", closes[14]))))
    assert below[1] - above[1] > 20


@pytest.mark.parametrize(
    "spec",
    [
        signals(1),
        kline(10),
        kline(750),
        replace(signals(5), lines=(Line("close", (7.0,) * 5, "close"),)),
        replace(signals(5), lines=(Line("close", (None,) * 5, "close"),)),
        replace(signals(5), lines=()),
        replace(signals(5), sessions=tuple(f"day {n}" for n in range(5))),
        replace(signals(5), title="$NVDA_{x} & 100%"),
        replace(signals(5), lines=(Line("close", (1e-7, 2e-7, 1e-7, 3e-7, 2e-7), "close"),)),
        replace(signals(5), panels=(Panel("empty"), Panel("flat", (Line("zero", (0.0,) * 5),)))),
        replace(signals(5), panels=(Panel("Volume", bars=(None, 0.0, 0.0, None, 0.0)),)),
    ],
    ids=lambda spec: f"{spec.kind}-{len(spec.sessions)}",
)
async def test_odd_charts_are_painted_all_the_same(spec: ChartSpec) -> None:
    assert (await picture(spec)).size == (1000, 800)


async def test_a_chart_without_sessions_is_missing_data() -> None:
    with pytest.raises(MissingData, match="no sessions"):
        await MatplotlibPainter().paint(replace(signals(), sessions=()))


@pytest.mark.parametrize(
    "change",
    [
        {"lines": (Line("close", (1.0,), "close"),)},
        {"panels": (Panel("Volume", bars=(1.0,)),)},
        {"panels": (Panel("RSI", (Line("RSI", (1.0,)),)),)},
        {"candles": Candles((1.0,), (1.0,), (1.0,), (1.0,))},
        {"markers": (Marker(30, "BUY", 1.0),)},
        {"markers": (Marker(-1, "BUY", 1.0),)},
    ],
)
async def test_parts_that_do_not_fit_the_sessions_are_a_bug_that_is_told(change) -> None:
    with pytest.raises(InvariantBroken, match="30 sessions"):
        await MatplotlibPainter().paint(replace(signals(), **change))


async def test_painting_leaves_the_event_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def painted(figure: object) -> bytes:
        assert released.wait(600), "the event loop was held while the chart was painted"
        return b"png"

    monkeypatch.setattr("connectors.charts.painter.encode_png", painted)
    painting = asyncio.create_task(MatplotlibPainter().paint(kline(60)))
    await asyncio.sleep(0)
    released.set()
    assert await painting == b"png"


async def test_charts_may_be_painted_side_by_side() -> None:
    painter = MatplotlibPainter()
    specs = [replace(signals(), title=f"chart {n % 2}") for n in range(4)]
    pictures = await asyncio.gather(*(painter.paint(spec) for spec in specs))
    assert pictures[0] == pictures[2] != pictures[1] == pictures[3]


def test_neither_is_matplotlib_loaded_before_the_first_chart_nor_pyplot_ever() -> None:
    program = (
        "import sys, asyncio\n"
        "from connectors.charts.painter import MatplotlibPainter\n"
        "from engine.domain.chart import ChartSpec\n"
        "assert not {'matplotlib', 'PIL', 'numpy'} & set(sys.modules)\n"
        "spec = ChartSpec(kind='signals', title='t', symbol='s', sessions=('2024-01-02',))\n"
        "asyncio.run(MatplotlibPainter().paint(spec))\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


async def test_sixty_real_sessions_are_a_small_picture(real_data: Path) -> None:
    with (real_data / "prices" / "NVDA.csv").open() as file:
        rows = list(csv.DictReader(file))[-60:]
    candles = Candles(*(tuple(float(row[name]) for row in rows) for name in ("open", "high", "low", "close")))
    volume = Panel("Volume", bars=tuple(float(row["volume"]) for row in rows))
    sessions = tuple(row["date"] for row in rows)
    spec = ChartSpec(
        kind="kline",
        title="NVDA, last 60 sessions",
        symbol="NVDA",
        sessions=sessions,
        candles=candles,
        panels=(volume,),
    )
    assert 8_000 < len(await MatplotlibPainter().paint(spec)) < 40_000
