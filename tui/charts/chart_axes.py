"""The texts around a chart: round prices at its right edge, dates at its lower edge, the title row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain, product
from typing import TYPE_CHECKING

from tui.charts.chart_data import candle_of, is_drawable

if TYPE_CHECKING:
    from engine.domain.chart import Line
    from tui.charts.chart_canvas import Canvas
    from tui.charts.chart_data import Candle, ChartData, ChartView

Pieces = list[tuple[str, str]]
"""Texts beside each other, with their inks."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LINE_SAMPLES = ("───", "── ─", "─ ─", "────", "─── ─")
"""Samples of the dashes, by the number of the line; the raster draws the same ones."""
ASCII_SAMPLES = ("..", "::", "''", "~~", "++")


@dataclass(frozen=True, slots=True)
class PriceScale:
    """The mapping from prices to half rows of a plot of `rows` cells: 0 is the upper half of the top row."""

    low: float
    high: float
    rows: int

    @classmethod
    def spanning(cls, low: float, high: float, rows: int) -> PriceScale:
        """Build a scale from low to high; a flat market gets a little space around it."""
        if high - low <= max(abs(high), abs(low)) * 1e-9:
            room = max(abs(high) * 0.01, 1e-6)
            low, high = low - room, high + room
        return cls(low, high, max(1, rows))

    def at(self, price: float, parts: int = 2) -> int:
        """Return the part of a row that a price falls into, `parts` to a row, counted from the top and limited to the
        plot."""
        last = self.rows * parts - 1
        return min(last, max(0, int((self.high - price) / (self.high - self.low) * (last + 1))))

    def ticks(self) -> list[tuple[int, float]]:
        """List rows and round prices for the scale, top first, at least a few rows apart."""
        wanted = max(1, self.rows // (4 if self.rows >= 24 else 3 if self.rows >= 12 else 2))
        step = round_step((self.high - self.low) / wanted)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        prices = (n * step for n in range(last, first - 1, -1))
        return [(self.at(price) // 2, price) for price in prices]

    def text(self, price: float) -> str:
        """Format a price with as many decimals as distinguish neighbouring rows of this scale, at least two below a
        million; in short from a hundred millions on."""
        largest = max(abs(self.low), abs(self.high))
        if largest >= 1e8:
            return compact(price)
        least = 0 if largest >= 1e6 else 2
        decimals = min(8, max(least, math.ceil(-math.log10((self.high - self.low) / 100))))
        return f"{price:z,.{decimals}f}"


def round_step(least: float) -> float:
    """Return the smallest of 1, 2, 2.5, 5 times a power of ten that is not below `least` (positive)."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= least * (1 - 1e-9))


def compact(value: float) -> str:
    """Format a large number in two or three digits: 48M, 1.4B."""
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:
            part = value / size
            return f"{part:.{1 if abs(part) < 9.95 else 0}f}{letter}" if abs(part) < 1000 else f"{value:.1e}"
    return f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class DateLabel:
    """A label of the date axis. Its first character stands under its candle; `major` begins a month, a year or, within
    days, a day."""

    x: int
    text: str
    major: bool


def date_labels(days: Sequence[date], columns: Sequence[int], width: int) -> list[DateLabel]:
    """Place labels for candles at `columns`, in order, none touching another, the coarse ones first."""
    placed: list[DateLabel] = []
    if not days:
        return placed
    span = columns[-1] - columns[0] + 1
    for labels in _by_importance(days, columns):
        if not labels or span / len(labels) < len(labels[0].text) + 3:
            continue
        for label in labels:
            if label.x + len(label.text) <= width and all(_apart(label, other) for other in placed):
                placed.append(label)
    for text in (f"{_day(days[0])}, {days[0].year}", _day(days[0])):
        first = DateLabel(columns[0], text, False)
        if first.x + len(text) <= width and all(_apart(first, other) for other in placed):
            placed.append(first)
            break
    return sorted(placed, key=lambda label: label.x)


def day_text(day: date) -> str:
    """Format a bar's date, with the time where it has one."""
    return f"{day:%Y-%m-%d %H:%M}" if isinstance(day, datetime) else day.isoformat()


def _by_importance(days: Sequence[date], columns: Sequence[int]) -> list[list[DateLabel]]:
    """List the candidate labels, one list per kind of boundary, the coarsest kind first."""
    kinds: list[list[DateLabel]] = [[], [], [], [], [], []]
    for before, day, x in zip(days, days[1:], columns[1:], strict=False):
        if boundary := _boundary(before, day):
            kind, text, major = boundary
            kinds[kind].append(DateLabel(x, text, major))
    return [_thinned(kinds[0], columns), *kinds[1:]]


def _boundary(before: date, day: date) -> tuple[int, str, bool] | None:
    """The period that begins with a day: 0 year, 1 quarter, 2 month, 3 day (of bars within days), 4 week, 5 hour; with
    its text, and True for a major one."""
    if day.year != before.year:
        return 0, str(day.year), True
    if day.month != before.month:
        return 1 if day.month in {4, 7, 10} else 2, _MONTHS[day.month - 1], True
    if not (isinstance(day, datetime) and isinstance(before, datetime)):
        return (4, _day(day), False) if day.isocalendar().week != before.isocalendar().week else None
    if day.date() != before.date():
        return 3, _day(day), True
    return (5, f"{day:%H:%M}", False) if day.hour != before.hour else None


def _thinned(years: list[DateLabel], columns: Sequence[int]) -> list[DateLabel]:
    """Choose every year, or every second, fifth, tenth ... as space permits."""
    span = columns[-1] - columns[0] + 1
    for every in (1, 2, 5, 10, 20, 50, 100):
        spaced = [label for label in years if int(label.text) % every == 0]
        if span >= len(spaced) * 7:
            return spaced
    return []


def _apart(label: DateLabel, other: DateLabel) -> bool:
    return label.x >= other.x + len(other.text) + 2 or other.x >= label.x + len(label.text) + 2


def _day(day: date) -> str:
    return f"{_MONTHS[day.month - 1]} {day.day:02d}"


def write_title(
    canvas: Canvas,
    data: ChartData,
    view: ChartView,
    candles: Sequence[Candle],
    *,
    price_text: Callable[[float], str],
    ascii_only: bool,
) -> None:
    """Write the top row: name at the left, prices at the right, the legend between them. Where they do not fit, first
    the number of bars is left out, then the samples, then prices; under a cursor the legend is."""
    title = data.title[: canvas.width]
    canvas.write(0, 0, title, "title")
    x = len(title) + 2
    lines, names = _legend(data, ascii_only)
    legends = [[*_bars(view, candles), *lines], lines, names]
    newest = candles[-1].last if candles else len(data)
    shown, before = bar_at(data, newest if view.cursor is None else view.cursor)
    choices: list[Pieces] = [[]]
    if shown is not None:
        choices = [*_prices(data, shown, before, price_text, view.cursor is not None), []]
    shortened = legends if view.cursor is None else [*legends, []]
    pairs = chain(product(choices, shortened), product(choices, [[]]))
    prices, legend = next((pair for pair in pairs if x + _length(*pair) <= canvas.width), ([], []))
    right = at = canvas.width - _length(prices, [])
    for text, ink in prices:
        canvas.write(at, 0, text, ink)
        at += len(text) + 1
    for text, ink in legend or names:
        if x + len(text) + 2 > right:
            break
        canvas.write(x, 0, text, ink)
        x += len(text) + 2


def bar_at(data: ChartData, row: int) -> tuple[Candle | None, float]:
    """The bar of a row alone, however many a candle takes together, and the close of the one before it, 0 for none."""
    within = row < len(data)
    return (candle_of(data, row, row + 1, 0) if within else None), (data.close[row - 1] if within and row else 0.0)


def _prices(
    data: ChartData,
    shown: Candle,
    before: float,
    price_text: Callable[[float], str],
    dated: bool,
) -> list[Pieces]:
    """List texts and inks of date, open, high, low, close and change on the bar before; then shorter choices."""
    direction = "up" if rises(shown, before) else "down"
    date = [(day_text(data.days[shown.last]), "text")] if dated else []
    range_ = [(f"{name}{price_text(price)}", "text") for name, price in zip("OHL", shown[3:6], strict=True)]
    close = [(f"C{price_text(shown.close)}", direction)]
    change = []
    if is_drawable(before) and before and abs(shown.close / before) < 10:
        change = [(f"{(shown.close / before - 1) * 100:+.2f}%", direction)]
    return [date + range_ + close + change, date + close + change, date + close, close]


def rises(bar: Candle, before: float) -> bool:
    """True for a close at or above the one before, by which a change has its sign and colour; without one (0) for a bar
    at or above its own open."""
    return bar.close >= before if is_drawable(before) and before else bar.up


def _length(prices: Pieces, legend: Pieces) -> int:
    """Cells of a legend and of the prices after it."""
    return sum(len(text) + 2 for text, _ in legend) + sum(len(text) + 1 for text, _ in prices) - bool(prices)


def _bars(view: ChartView, candles: Sequence[Candle]) -> Pieces:
    if not candles:
        return []
    bars = candles[-1].last - candles[0].first + 1
    return [(f"{bars} bars" + (f" ({view.per} a candle)" if view.per > 1 else ""), "muted")]


def _legend(data: ChartData, ascii_only: bool) -> tuple[Pieces, Pieces]:
    """List each line's name beside a sample of its dash, and the names alone."""
    samples = ASCII_SAMPLES if ascii_only else LINE_SAMPLES
    entries: Pieces = []
    names: Pieces = []
    plain = 0
    for number, line in enumerate(data.lines):
        place, band = line_place(data.lines, number), line.role in {"upper", "lower"}
        if place == number:
            ink = "band" if band else f"line{plain}"
            entries.append((f"{samples[place % len(samples)]} {line.name}", ink))
            names.append((line.name, ink))
        plain += not band
    return entries, names


def line_place(lines: Sequence[Line], number: int) -> int:
    """Return the number of a line's dash: its own, or that of the first line of the same name (both edges of a
    band)."""
    return next(place for place, line in enumerate(lines) if line.name == lines[number].name)
