"""The title row of a chart: its name, the legend of its lines, and the prices of one candle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.domain.chart import Line
from tui.widgets.chart_axes import day_text
from tui.widgets.chart_canvas import Canvas
from tui.widgets.chart_data import Candle, ChartData, ChartView

LINE_SAMPLES = ("───", "── ─", "─ ─", "────", "─── ─")
"""Samples of the dashes, by the number of the line; the raster draws the same ones."""
ASCII_SAMPLES = ("..", "::", "''", "~~", "++")


def write_title(
    canvas: Canvas,
    data: ChartData,
    view: ChartView,
    candles: Sequence[Candle],
    *,
    price_text: Callable[[float], str],
    ascii_only: bool,
) -> None:
    """Write the top row: name at the left, prices at the right, the legend between them as far as it fits."""
    title = data.title[: canvas.width]
    canvas.write(0, 0, title, "title")
    x = len(title) + 2
    right = canvas.width
    shown = _candle_at(candles, view.cursor)
    if shown is not None:
        choices = _prices(data, candles, shown, price_text, view.cursor is not None)
        pieces = next((some for some in choices if x + _length(some) <= canvas.width), [])
        right -= _length(pieces)
        at = right
        for text, ink in pieces:
            canvas.write(at, 0, text, ink)
            at += len(text) + 1
    for text, ink in _legend(data, view, candles, ascii_only):
        if x + len(text) + 2 > right:
            break
        canvas.write(x, 0, text, ink)
        x += len(text) + 2


def _candle_at(candles: Sequence[Candle], cursor: int | None) -> Candle | None:
    """Return the candle under the cursor, else the newest in view."""
    if not candles:
        return None
    here = (c for c in candles if cursor is not None and c.first <= cursor <= c.last)
    return next(here, candles[-1])


def _prices(
    data: ChartData,
    candles: Sequence[Candle],
    shown: Candle,
    price_text: Callable[[float], str],
    dated: bool,
) -> list[list[tuple[str, str]]]:
    """List texts and inks of date, open, high, low, close and change on the bar before; then shorter choices."""
    direction = "up" if shown.up else "down"
    date = [(day_text(data.days[shown.last]), "text")] if dated else []
    range_ = [(f"{name}{price_text(price)}", "text") for name, price in zip("OHL", shown[3:6], strict=True)]
    close = [(f"C{price_text(shown.close)}", direction)]
    change = []
    at = candles.index(shown)
    if at > 0 and candles[at - 1].close and abs(shown.close / candles[at - 1].close) < 10:
        change = [(f"{(shown.close / candles[at - 1].close - 1) * 100:+.2f}%", direction)]
    return [date + range_ + close + change, date + close + change, date + close, close]


def _length(pieces: Sequence[tuple[str, str]]) -> int:
    return sum(len(text) + 1 for text, _ in pieces) - 1 if pieces else 0


def _legend(data: ChartData, view: ChartView, candles: Sequence[Candle], ascii_only: bool) -> list[tuple[str, str]]:
    """List the number of bars in view, then each line's name beside a sample of its dash."""
    bars = candles[-1].last - candles[0].first + 1 if candles else 0
    entries = [(f"{bars} bars" + (f" ({view.per} a candle)" if view.per > 1 else ""), "muted")]
    samples = ASCII_SAMPLES if ascii_only else LINE_SAMPLES
    plain = 0
    for number, line in enumerate(data.lines):
        place, band = line_place(data.lines, number), line.role in {"upper", "lower"}
        if place == number:
            entries.append((f"{samples[place % len(samples)]} {line.name}", "band" if band else f"line{plain}"))
        plain += not band
    return entries


def line_place(lines: Sequence[Line], number: int) -> int:
    """Return the number of a line's dash: its own, or that of the first line of the same name (both edges of a
    band)."""
    return next(place for place, line in enumerate(lines) if line.name == lines[number].name)
