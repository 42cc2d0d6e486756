"""Draw candles into rows of text from data, a view and a size; without an app, a state or a clock.

Candles are placed by index, so weekends leave no gap. Prices are exact to half a row (quarter blocks: a body of an odd
number of dots with its wick in the middle), the lines over them to a third. Without colour, hollow and solid bodies
show the direction, the dashes tell the lines apart, and the markers of fills point up or down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui.charts.chart_axes import PriceScale, bar_at, compact, date_labels, line_place, rises, write_title
from tui.charts.chart_canvas import ASCII_VOLUME_BARS, LINE_LEVELS, VOLUME_BARS, Canvas, Palette, candle_glyphs
from tui.charts.chart_data import CUT, Candle, ChartData, ChartView, is_drawable, visible_candles

if TYPE_CHECKING:
    from textual.strip import Strip

_DASHES = ("─", "── ", "─ ", "──── ", "─── ─ ")
"""Columns that a line is drawn in, by the number of the line; repeated along the chart."""
_ASCII_LINES = ".:'~+"

SIGNS = {
    "BUY": ("▲", "buy"),
    "SELL": ("▼", "sell"),
    CUT: ("◆", "decision"),
    "HOLD": ("-", "muted"),
    "ABSTAIN": ("?", "decision"),
}
"""Sign and ink of a decision, or of a fill; of several in one candle the first counts."""
ASCII_SIGNS = {**SIGNS, "BUY": ("^", "buy"), "SELL": ("v", "sell"), CUT: ("#", "decision")}

ROOMY, APART = 11, 2
"""Rows of a plot from which fills stand beside their candles, and their distance in rows: one is left free."""


@dataclass(frozen=True, slots=True)
class ChartStyle:
    """Colours and characters of a chart.

    Without a palette there is no colour. `ascii_only` draws with characters that every terminal has. In both cases the
    bodies of rising candles are hollow.
    """

    palette: Palette | None = None
    ascii_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Size of each part of a chart, in cells, from the top: title, plot, marks, volume, dates; the price scale at the
    right.

    width: columns of the whole chart
    plot_width: columns of the plot, without the price scale
    title: rows of the title, 0 or 1
    rows: rows of the plot
    marks: rows of the marks under the plot, 0 or 1
    volume: rows of the volume, 0 without
    dates: rows of the date axis, 0 or 1
    """

    width: int
    plot_width: int
    title: int
    rows: int
    marks: int
    volume: int
    dates: int

    @property
    def bottom(self) -> int:
        """The row under the plot."""
        return self.title + self.rows

    @property
    def floor(self) -> int:
        """The row under the plot and the marks."""
        return self.bottom + self.marks


def plot_layout(data: ChartData, width: int, height: int) -> Layout:
    """Divide a size into its parts. Small sizes lose marks and volume, the scale, the dates, then the title."""
    scale = 0
    prices = [price for row in (-1, 0) if len(data) for price in (data.high[row], data.low[row]) if is_drawable(price)]
    if width >= 24 and prices:
        low, high = min(prices), max(prices)
        scale = max(len(PriceScale.spanning(low, high, 1).text(price)) for price in (low, high)) + 2
        scale = max(9, scale)
    title, dates = int(height >= 4), int(height >= 6)
    volume = 0
    if any(is_drawable(amount) and amount > 0 for amount in data.volume[-1000:]):
        volume = next((rows for least, rows in ((34, 5), (26, 4), (18, 3), (13, 2), (9, 1)) if height >= least), 0)
    rows = height - title - dates - volume
    marks = int(height >= 8 and bool(data.decided or (data.markers and rows < ROOMY)))
    return Layout(
        width=width,
        plot_width=max(1, width - scale),
        title=title,
        rows=max(1, rows - marks),
        marks=marks,
        volume=volume,
        dates=dates,
    )


def render_candles(
    data: ChartData,
    width: int,
    height: int,
    view: ChartView | None = None,
    style: ChartStyle | None = None,
    *,
    layout: Layout | None = None,
) -> list[Strip]:
    """Draw a chart of exactly `height` rows of `width` cells; no rows where either is not positive. Without a layout
    that of the data."""
    if width <= 0 or height <= 0:
        return []
    layout = layout or plot_layout(data, width, height)
    return _Raster(data, layout, height, view or ChartView(), style or ChartStyle()).strips()


class _Raster:
    """One drawing of one chart: everything computed once, then painted from back to front."""

    def __init__(self, data: ChartData, layout: Layout, height: int, view: ChartView, style: ChartStyle) -> None:
        self.data, self.layout, self.view, self.style = data, layout, view, style
        self.candles = visible_candles(data, view, layout.plot_width)
        self.canvas = Canvas(layout.width, height)
        self.glyphs = candle_glyphs(max(1, view.step), style.ascii_only)
        self.hollow = style.ascii_only or style.palette is None
        first, last = (self.candles[0].first, self.candles[-1].last) if self.candles else (0, -1)
        self.marks_fills = self.layout.rows >= ROOMY
        """True where fills stand beside their candles; else under the plot, in the place of the decisions."""
        self.has_markers = self.marks_fills and any(first <= marker.index <= last for marker in data.markers)
        self._signs = ASCII_SIGNS if style.ascii_only else SIGNS
        self._sides: dict[int, set[str]] = {}
        for marker in data.markers:
            self._sides.setdefault(marker.index, set()).add(marker.side.upper())
        self.lines = [[self._line_value(n, candle) for candle in self.candles] for n in range(len(data.lines))]
        self.scale = self._price_scale()

    def strips(self) -> list[Strip]:
        """Paint all layers and return the rows."""
        if self.candles:
            labels = self._date_axis()
            self._grid(labels)
            self._band_fill()
            for candle in self.candles:
                self._candle(candle)
            for number in reversed(range(len(self.lines))):
                self._line(number)
            self._markers()
            self._marks()
            self._volume()
            self._price_axis()
            self._cursor()
        else:
            text = "no prices yet"
            self.canvas.write(max(0, (self.layout.width - len(text)) // 2), self.canvas.height // 2, text, "muted")
        if self.layout.title:
            price_text, ascii_only = self.scale.text, self.style.ascii_only
            write_title(self.canvas, self.data, self.view, self.candles, price_text=price_text, ascii_only=ascii_only)
        return self.canvas.strips(self.style.palette or Palette({}))

    def _price_scale(self) -> PriceScale:
        """Scale from the lowest to the highest price in view, widened for lines and markers."""
        if not self.candles:
            return PriceScale(0.0, 1.0, self.layout.rows)
        low, high = min(c.low for c in self.candles), max(c.high for c in self.candles)
        room = (high - low) / 4
        values = [v for line in self.lines for v in line if is_drawable(v)]
        if values:
            low, high = max(low - room, min(low, *values)), min(high + room, max(high, *values))
        if self.has_markers:
            # A little more than those rows, so that the lowest price is drawn above them.
            margin = 1.01 * (high - low) * APART / (self.layout.rows - 2 * APART)
            low, high = low - margin, high + margin
        return PriceScale.spanning(low, high, self.layout.rows)

    def _line_value(self, number: int, candle: Candle) -> float:
        """Return the last value of a line within a candle, or NaN."""
        values = self.data.lines[number].values
        found = (values[row] for row in range(candle.last, candle.first - 1, -1))
        return next((value for value in found if value is not None and is_drawable(value)), math.nan)

    def _line_ink(self, number: int) -> str:
        if self.data.lines[number].role in {"upper", "lower"}:
            return "band"
        return f"line{sum(line.role not in {'upper', 'lower'} for line in self.data.lines[:number])}"

    def _grid(self, columns: list[int]) -> None:
        """Draw faint dots at the round prices, under the dates that begin a month or a year, and across at 100."""
        dot = "." if self.style.ascii_only else "·"
        if self.data.hundred is not None:
            for x in range(self.layout.plot_width):
                self.canvas.put(x, self.layout.title + self.scale.at(100, 1), dot, "muted")
        if self.layout.plot_width == self.layout.width:
            return
        for row, _ in self.scale.ticks():
            for x in range(0, self.layout.plot_width, 4):
                self.canvas.put(x, self.layout.title + row, dot, "grid")
        for x in columns:
            for row in range(0, self.layout.rows, 2):
                self.canvas.put(x, self.layout.title + row, dot, "grid")

    def _band_fill(self) -> None:
        """Tint the area between an upper and a lower line."""
        roles = [line.role for line in self.data.lines]
        if self.style.palette is None or "upper" not in roles or "lower" not in roles:
            return
        for candle, above, below in zip(
            self.candles, self.lines[roles.index("upper")], self.lines[roles.index("lower")], strict=True
        ):
            if math.isnan(above) or math.isnan(below):
                continue
            columns = slice(candle.x, candle.x + max(1, self.view.step))
            first, last = self.scale.at(max(above, below), 1), self.scale.at(min(above, below), 1)
            for row in range(self.layout.title + first, self.layout.title + last + 1):
                self.canvas.behind[row][columns] = ["fill"] * len(self.canvas.behind[row][columns])

    def _candle(self, candle: Candle) -> None:
        at, ink = self.scale.at, "up" if candle.up else "down"
        body = at(max(candle.open, candle.close)), at(min(candle.open, candle.close))
        wick = at(candle.high), at(candle.low)
        for row, text in self.glyphs.drawn(wick, body, hollow=self.hollow and candle.up):
            for offset, char in enumerate(text.rstrip()):  # a hollow body covers the grid behind it
                self.canvas.put(candle.x + offset, self.layout.title + row, char, ink)

    def _line(self, number: int) -> None:
        """Draw a line across full bodies and free cells, behind the edges of candles."""
        ink, place = self._line_ink(number), line_place(self.data.lines, number)
        dash = _DASHES[place % len(_DASHES)]
        mark = _ASCII_LINES[place % len(_ASCII_LINES)] if self.style.ascii_only else ""
        chars, inks = self.canvas.chars, self.canvas.inks
        for x, row, glyph in self._line_cells(self.lines[number]):
            y = self.layout.title + row
            if dash[x % len(dash)] == " " and glyph != "│":
                continue
            if chars[y][x] == "█" and self.style.palette is not None:
                self.canvas.behind[y][x] = inks[y][x]
            elif chars[y][x] != " " and inks[y][x] != "grid":
                continue
            chars[y][x] = mark or glyph
            inks[y][x] = ink

    def _line_cells(self, values: list[float]) -> Iterator[tuple[int, int, str]]:
        """Yield columns, rows and glyphs of a line through the candles. The line is interrupted outside the plot."""
        levels = len(LINE_LEVELS)
        before: tuple[int, int] | None = None
        for candle, value in zip(self.candles, values, strict=True):
            if not self.scale.low <= value <= self.scale.high:
                before = None
                continue
            at = candle.x + self.glyphs.middle // 2, self.scale.at(value, levels)
            start = at if before is None else before
            span, last = max(1, at[0] - start[0]), start[1]
            for x in range(at[0] if before is None else start[0] + 1, at[0] + 1):
                level = start[1] + round((at[1] - start[1]) * (x - start[0]) / span)
                row, last_row = level // levels, last // levels
                for between in range(min(row, last_row) + 1, max(row, last_row)):
                    yield x, between, "│"
                yield x, row, LINE_LEVELS[level % levels]
                last = level
            before = at

    def _markers(self) -> None:
        """Draw the fills: buys point up from under a candle, sells down from above, a free row away from it."""
        if not self.has_markers:
            return
        buy, sell = (self._signs[side][0] for side in ("BUY", "SELL"))
        top, bottom = self.layout.title, self.layout.bottom - 1
        for candle in self.candles:
            here = self._filled(candle)
            x = candle.x + self.glyphs.middle // 2
            if "SELL" in here:
                self.canvas.put(x, max(top, top + self.scale.at(candle.high) // 2 - APART), sell, "sell")
            if "BUY" in here:
                self.canvas.put(x, min(bottom, top + self.scale.at(candle.low) // 2 + APART), buy, "buy")

    def _filled(self, candle: Candle) -> set[str]:
        return set[str]().union(*(self._sides.get(row, ()) for row in range(candle.first, candle.last + 1)))

    def _marks(self) -> None:
        """Write under every candle what was decided on its close, or where the plot is low its fills."""
        if not self.layout.marks:
            return
        decided, shown = self.data.decided, self.marks_fills and bool(self.data.decided)
        for candle in self.candles:
            rows = range(candle.first, candle.last + 1)
            here = {decided.get(row) for row in rows} if shown else self._filled(candle)
            found = next((sign for name, sign in self._signs.items() if name in here), None)
            if found is not None:
                self.canvas.put(candle.x + self.glyphs.middle // 2, self.layout.bottom, *found)
        self._scale_text(self.layout.bottom, "decided" if shown else "fills", "muted")

    def _volume(self) -> None:
        most = max((c.volume for c in self.candles if is_drawable(c.volume)), default=0.0)
        if not self.layout.volume or most <= 0:
            return
        bars = ASCII_VOLUME_BARS if self.style.ascii_only else VOLUME_BARS
        width = max(1, self.view.step - 1)
        for candle in self.candles:
            if not is_drawable(candle.volume) or candle.volume <= 0:
                continue
            eighths = max(1, round(candle.volume / most * self.layout.volume * 8))
            for row in range(self.layout.volume):
                filled = min(8, max(0, eighths - 8 * row))
                ink = "volume_up" if candle.up else "volume_down"
                for x in range(candle.x, candle.x + width if filled else candle.x):
                    self.canvas.put(x, self.layout.floor + self.layout.volume - 1 - row, bars[filled], ink)
        self._scale_text(self.layout.floor, f"vol {compact(most)}", "muted")

    def _price_axis(self) -> None:
        """Write round prices beside the plot and, in a box, the last price of the data if it is in view."""
        if self.layout.plot_width == self.layout.width:
            return
        for row, price in self.scale.ticks():
            self._scale_text(self.layout.title + row, self.scale.text(price), "text")
        last = self.data.close[-1]
        if not is_drawable(last) or not self.scale.low <= last <= self.scale.high:
            return
        row = self.layout.title + self.scale.at(last, 1)
        bar, before = bar_at(self.data, len(self.data) - 1)
        text, ink = self.scale.text(last), "up" if bar is not None and rises(bar, before) else "down"
        room = self.layout.width - self.layout.plot_width
        if self.style.palette is None:
            text, ink = f"[{text}]".rjust(room), "title"
            self.canvas.write(self.layout.plot_width, row, text, ink)
        else:
            self.canvas.write(self.layout.plot_width, row, f"{text} ".rjust(room), "paper", ink)

    def _scale_text(self, row: int, text: str, ink: str) -> None:
        room = self.layout.width - self.layout.plot_width
        if room:
            self.canvas.write(self.layout.plot_width, row, f"{text} ".rjust(room), ink)

    def _date_axis(self) -> list[int]:
        """Write the dates; return the columns that begin a month or a year."""
        if not self.layout.dates:
            return []
        days = [self.data.days[candle.first] for candle in self.candles]
        labels = date_labels(days, [candle.x for candle in self.candles], self.layout.width)
        for label in labels:
            self.canvas.write(label.x, self.canvas.height - 1, label.text, "text" if label.major else "muted")
        return [label.x for label in labels if label.major]

    def _cursor(self) -> None:
        """Draw dotted lines through the candle under the cursor, and mark its column on the date axis."""
        row = self.view.cursor
        here = next((c for c in self.candles if row is not None and c.first <= row <= c.last), None)
        if here is None:
            return
        x = here.x + self.glyphs.middle // 2
        line, across = ("|", "-") if self.style.ascii_only else ("┊", "╌")
        if self.scale.low <= here.close <= self.scale.high:
            level = self.layout.title + self.scale.at(here.close, 1)
            for column in range(self.layout.plot_width):
                if self.canvas.chars[level][column] in " ·.":
                    self.canvas.put(column, level, across, "text")
            self._scale_text(level, f"{across}{self.scale.text(here.close)}", "title")
        for y in range(self.layout.title, self.canvas.height - self.layout.dates):
            if self.canvas.chars[y][x] in " ·.":
                self.canvas.put(x, y, line, "text")
        if self.layout.dates:
            self.canvas.put(x, self.canvas.height - 1, "^" if self.style.ascii_only else "╿", "title")
