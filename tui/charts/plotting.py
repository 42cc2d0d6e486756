"""Curves as text, with scale and dates as candles have them: equity, drawdown, comparisons and indicators, for screens
and plain reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from rich.color import ColorSystem
from rich.style import Style

from tui.charts.candle_raster import ChartStyle
from tui.charts.chart_axes import PriceScale, date_labels
from tui.charts.chart_canvas import Canvas, Palette
from tui.charts.chart_data import is_drawable

_ASCII_MARKS = "*+xo#@"
_STROKES, _THIN = ("─│╭╮╰╯┤├┼╷╵", "━┃┏┓┗┛┫┣╋╻╹", "═║╔╗╚╝╣╠╬║║", "╌╎╭╮╰╯┤├┼╷╵", "┅┇┏┓┗┛┫┣╋╻╹"), "┈┊╭╮╰╯┤├┼╷╵"
"""Strokes of the curves, which are not told apart by colour alone: level, upright, the corners of a rise's end and of a
fall's beginning, of a fall's end and of a rise's beginning, the joints of a column that goes beyond both its ends, and
the ends of that. Every terminal's font has them, unlike the dots of Braille."""
CURVES = 6
"""Curves that have an ink of their own, `line0` and those that follow."""
LOW = 4
"""Rows, and 16 columns, from which anything but the names is drawn."""
_TERMINAL = Palette(
    {
        **{f"line{n}": ink for n, ink in enumerate(("yellow", "bright_blue", "magenta", "cyan", "green", "red"))},
        **dict.fromkeys(("muted", "grid"), "bright_black"),
    }
)


@dataclass(frozen=True, slots=True)
class PlotData:
    """Curves over a common axis; None and NaN are not drawn.

    series: values by name.
    labels: a text per point of the axis, such as an ISO date.
    columns: the cell of every point, and the width of the plot: those of candles above, which have the dates. Else the
        points are spread over the width.
    cursor: the point with a line through it.
    levels: values with a line across.
    beside: name of the curve that the others are held against, which is thin and grey.
    shaded: True where the area between the first curve and the top is tinted.
    """

    series: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    labels: Sequence[str] = ()
    columns: tuple[Sequence[int], int] | None = None
    cursor: int | None = None
    levels: Sequence[float] = ()
    beside: str = ""
    shaded: bool = False


class Curve(NamedTuple):
    """A curve: its number, its ink, its name, the places on the axis that can be drawn, and their values."""

    number: int
    ink: str
    name: str
    places: list[int]
    values: list[float]


class Drawing(NamedTuple):
    """A drawing, and the column of every point of the axis; none where no curve is drawn."""

    canvas: Canvas
    columns: Sequence[int] = ()


def equity_plot(
    series: Mapping[str, Sequence[float | None]],
    labels: Sequence[str],
    width: int,
    height: int,
    *,
    point: str = "session",
    beside: str = "",
    colour: bool,
    ascii_only: bool = False,
) -> str:
    """Curves for a shell, as `height` lines of `width` characters joined by line feeds; `beside` and the rest as
    PlotData and `render_curves` have it. With `colour` the text carries ANSI colour codes."""
    style = ChartStyle(_TERMINAL if colour else None, ascii_only)
    drawn = render_curves(PlotData(series, labels, beside=beside), width, height, style, point=point).canvas
    rows = drawn.segments(style.palette or Palette({})) if drawn.width else []

    def coded(text: str, ink: Style | None) -> str:
        return ink.render(text, color_system=ColorSystem.STANDARD) if colour and ink is not None else text

    return "\n".join("".join(coded(part.text, part.style) for part in row) for row in rows)


def render_curves(data: PlotData, width: int, height: int, style: ChartStyle, *, point: str = "session") -> Drawing:
    """Draw curves on `height` rows of `width` cells; on nothing where either is not positive.

    The first row names the curves with their last values; where none has two of them, the second row says that they
    begin with the second `point`.
    """
    if width < 1 or height < 1:
        return Drawing(Canvas(0, 0))
    canvas, columns = Canvas(width, height), list[int]()
    curves = [_curve(number, name, data) for number, name in enumerate(data.series)]
    if not any(curve.values for curve in curves):
        text = "nothing to draw" if any(map(len, data.series.values())) else f"begins with the first {point}"
        canvas.write(0, 0, f" {text}", "muted")
    else:
        _write_legend(canvas, curves, ascii_only=style.ascii_only)
        if all(len(curve.places) < 2 for curve in curves):
            canvas.write(0, 1, f" begins with the second {point}", "muted")
        elif height >= LOW and width >= 16:
            columns = _Plot(canvas, data, [curve for curve in curves if curve.values], style).draw()
    return Drawing(canvas, columns)


def _curve(number: int, name: str, data: PlotData) -> Curve:
    points = [
        (place, float(one)) for place, one in enumerate(data.series[name]) if one is not None and is_drawable(one)
    ]
    ink = "muted" if name == data.beside else f"line{number % CURVES}"
    return Curve(number, ink, name, [place for place, _ in points], [value for _, value in points])


class _Plot:
    """Curves on a canvas under its first row: the scale at the right, the dates in the last row."""

    def __init__(self, canvas: Canvas, data: PlotData, curves: Sequence[Curve], style: ChartStyle) -> None:
        self.canvas, self.data, self.curves, self.style = canvas, data, curves, style
        values = [*(value for curve in curves for value in curve.values), *data.levels]
        self.dated = data.columns is None and bool(data.labels)
        self.scale = PriceScale.spanning(min(values), max(values), canvas.height - 1 - self.dated)
        self.prices = self._prices(min(values))
        room = max(map(len, self.prices.values())) + 2
        self.width = canvas.width - room if data.columns is None else min(data.columns[1], canvas.width)
        last = max(curve.places[-1] for curve in curves)
        even = [round(place / max(1, last) * (self.width - 1)) for place in range(last + 1)]
        self.columns = even if data.columns is None else list(data.columns[0])

    def draw(self) -> list[int]:
        """Draw it, the first curve in front, and return the cells of the points."""
        levels = {self.scale.at(level, 1) for level in self.data.levels}
        for row in self.prices:
            for x in range(0, self.width, 1 if row in levels else 4):
                self.canvas.put(x, 1 + row, "." if self.style.ascii_only else "·", "grid")
        for curve in reversed(self.curves):
            self._draw(curve)
        self._write_scale()
        if self.dated:
            self._write_dates(self.columns[: len(self.data.labels)])
        if self.data.cursor is not None and self.data.cursor < len(self.columns):
            self._rule(self.columns[self.data.cursor])
        return self.columns

    def _rule(self, x: int) -> None:
        for y in range(1, 1 + self.scale.rows) if x < self.canvas.width else ():
            if self.canvas.chars[y][x] in " ·.":
                self.canvas.put(x, y, "|" if self.style.ascii_only else "┊", "text")

    def _draw(self, curve: Curve) -> None:
        mark = _ASCII_MARKS[curve.number % len(_ASCII_MARKS)] if self.style.ascii_only else ""
        strokes = _strokes(curve)
        points = [(self.columns[place], value) for place, value in zip(curve.places, curve.values, strict=True)]
        for column in _columns([(x, self.scale.at(value, 1)) for x, value in points]):
            if self.data.shaded and curve.number == 0 and self.style.palette is not None:
                for row in range(column.top):
                    self.canvas.behind[1 + row][column.x] = "fill"
            for row in range(column.top, column.bottom + 1):
                self.canvas.put(column.x, 1 + row, mark or strokes[column.stroke(row)], curve.ink)

    def _prices(self, low: float) -> dict[int, str]:
        """The texts of the scale by row: the levels, or round prices; where there are not two of those in rows of their
        own, the highest and the lowest with a level between them; of a flat curve its only one."""
        scale = self.scale
        if scale.low < low:  # there is space around a flat curve, and nothing to compare its decimals with
            return {scale.at(low, 1): _short(scale.text(low))}
        prices = [*self.data.levels] or [price for _, price in scale.ticks() if scale.low <= price <= scale.high]
        rows = {scale.at(price, 1): price for price in prices}
        if len(rows) < 2:
            rows = {
                0: scale.high,
                scale.rows - 1: scale.low,
                **{scale.at(level, 1): level for level in self.data.levels},
            }
        if all(price == int(price) for price in rows.values()):
            return {row: f"{price:z,.0f}" for row, price in rows.items()}
        return {row: scale.text(price) for row, price in rows.items()}

    def _write_scale(self) -> None:
        for row, text in self.prices.items():
            self.canvas.write(self.width, 1 + row, f"{text} ".rjust(self.canvas.width - self.width), "muted")

    def _write_dates(self, columns: Sequence[int]) -> None:
        """Write the dates as under candles; of other labels the last one, and the first where it has room."""
        labels, bottom = self.data.labels, self.canvas.height - 1
        try:
            days = [datetime.fromisoformat(label) for label in labels[: len(columns)]]
        except ValueError:
            first, last = labels[0], labels[len(columns) - 1]
            at = max(0, min(columns[-1], self.canvas.width - len(last)))
            if columns[0] + len(first) + 2 <= at:
                self.canvas.write(columns[0], bottom, first, "muted")
            self.canvas.write(at, bottom, last[: self.canvas.width], "muted")
            return
        dated = days if any(":" in label for label in labels) else [day.date() for day in days]
        for label in date_labels(dated, columns, self.canvas.width):
            self.canvas.write(label.x, bottom, label.text, "text" if label.major else "muted")


class Column(NamedTuple):
    """The part of a curve in a column of cells: its rows, that in which it comes from the left and that in which it
    leaves to the right."""

    x: int
    top: int
    bottom: int
    comes: int
    leaves: int

    def stroke(self, row: int) -> int:
        """The number of the stroke in a row."""
        if self.top == self.bottom:
            return 0
        if row not in (self.comes, self.leaves):
            return 9 if row == self.top else 10 if row == self.bottom else 1
        if self.comes == self.leaves:
            return 8
        if self.top < row < self.bottom:
            return 6 if row == self.comes else 7
        if row == self.leaves:
            return 2 if row == self.top else 4
        return 3 if row == self.top else 5


def _columns(points: Sequence[tuple[int, int]]) -> Iterator[Column]:
    """The columns of a curve through points (column and row); a column in which several of them lie has them all."""
    rows: dict[int, list[int]] = {}
    rows.setdefault(points[0][0], []).append(points[0][1])
    for (x, y), (to_x, to_y) in pairwise(points):
        for column in range(x + 1, to_x):
            rows.setdefault(column, []).append(y + round((to_y - y) * (column - x) / (to_x - x)))
        rows.setdefault(to_x, []).append(to_y)
    comes = points[0][1]
    for x, ys in sorted(rows.items()):
        yield Column(x, min(comes, *ys), max(comes, *ys), comes, ys[-1])
        comes = ys[-1]


def _short(text: str) -> str:
    """A number without the zeros at the end of its decimals."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _write_legend(canvas: Canvas, curves: Sequence[Curve], *, ascii_only: bool) -> None:
    """Write the curves' names, each with its mark and last value; with fewer decimals, then without the values where
    those do not all fit, and with shortened names where the names do not."""
    for decimals in (2, 1, 0):
        texts = [
            f"{curve.name} {curve.values[-1]:z,.{decimals}f}" if curve.values else f"{curve.name} -" for curve in curves
        ]
        if sum(len(text) + 4 for text in texts) - 2 <= canvas.width:
            break
    else:
        names = [curve.name for curve in curves]
        longest = max(map(len, names))
        while longest > 1 and sum(min(len(name), longest) + 4 for name in names) - 2 > canvas.width:
            longest -= 1
        texts = [_shortened(name, longest, "." if ascii_only else "…") for name in names]
    x = 0
    for curve, text in zip(curves, texts, strict=True):
        mark = _ASCII_MARKS[curve.number % len(_ASCII_MARKS)] if ascii_only else _strokes(curve)[0]
        canvas.write(x, 0, mark, curve.ink)
        canvas.write(x + 2, 0, text, "text")
        x += len(text) + 4


def _strokes(curve: Curve) -> str:
    return _THIN if curve.ink == "muted" else _STROKES[curve.number % len(_STROKES)]


def _shortened(name: str, width: int, ellipsis: str) -> str:
    return name if len(name) <= width else f"{name[: width - 1].rstrip()}{ellipsis}"
