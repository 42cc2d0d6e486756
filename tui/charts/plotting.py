"""Curves as text, drawn by plotext: equity, drawdown, comparisons and indicators, for screens and plain reports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple

from tui.charts.chart_axes import PriceScale
from tui.charts.chart_data import is_drawable

_COLOURS = ("blue+", "orange", "green+", "magenta+", "cyan+", "red+")
_PLAIN_MARKS = "*+xo#@"
"""A curve is known by what it is drawn with, and not by its colour alone."""
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_DECIMAL_ZEROS = re.compile(r"(\.\d*?)0+$")
_FRAME_TO_ASCII = str.maketrans("┌┐└┘├┤┬┴┼─│", "+++++++++-|")

LOW = 10
"""Rows from which a drawing has a whole frame."""
_figure = Lock()
"""plotext has one figure for the whole program; it is drawn by one thread at a time."""


@dataclass(frozen=True, slots=True)
class PlotData:
    """Curves by name over a common axis, and a label (ISO date) per point of it; None and NaN are gaps."""

    series: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    labels: Sequence[str] = ()


class Curve(NamedTuple):
    """A curve: its number, its name, the places on the axis that can be drawn, and their values."""

    number: int
    name: str
    places: list[int]
    values: list[float]


class Pen(NamedTuple):
    """The means of telling curves apart: colours, else marks; `plain` keeps to ASCII."""

    colour: bool
    plain: bool

    def mark(self, number: int) -> str:
        """The mark of a curve; `hd` are plotext's quarter blocks."""
        if self.plain:
            return _PLAIN_MARKS[number % len(_PLAIN_MARKS)]
        return "hd" if number == 0 else _PLAIN_MARKS[(number - 1) % len(_PLAIN_MARKS)]

    def sample(self, number: int) -> str:
        """The mark for a legend."""
        text = "▚" if self.mark(number) == "hd" else self.mark(number)
        if not self.colour:
            return text
        import plotext

        return str(plotext.colorize(text, _COLOURS[number % len(_COLOURS)]))


def equity_plot(
    series: Mapping[str, Sequence[float | None]],
    labels: Sequence[str],
    width: int,
    height: int,
    *,
    point: str = "session",
    colour: bool,
    ascii_only: bool = False,
) -> str:
    """Curves over a common axis as `height` lines of `width` characters, joined by line feeds.

    `series` holds a sequence of values by name (None and NaN: nothing is drawn there), `labels` a text per place,
    such as ISO dates. The first line names the curves with their last values; where none has two of them, the second
    line says that they begin with the second `point`. With `colour` the text carries
    ANSI colour codes; without, every curve has a mark of its own, as it has with `ascii_only`.
    """
    if width < 1 or height < 1:
        return ""
    curves = [_curve(number, name, values) for number, (name, values) in enumerate(series.items())]
    if not any(curve.values for curve in curves):
        text = "nothing to draw" if any(map(len, series.values())) else f"begins with the first {point}"
        return _framed([f" {text}"], width, height)
    pen = Pen(colour, ascii_only)
    legend = _legend(curves, width, pen)
    if all(len(curve.places) < 2 for curve in curves):
        return _framed([legend, f" begins with the second {point}"], width, height)
    if height < 6 or width < 16:
        return _framed([legend], width, height)
    low = height < LOW  # without the top of the frame, whose row the curves need
    with _figure:
        body = _drawn(curves, labels, pen, width, height - 1 + low)
    if ascii_only:
        body = body.translate(_FRAME_TO_ASCII)
    return _framed([legend, *body.rstrip("\n").split("\n")[low:]], width, height)


def _curve(number: int, name: str, values: Sequence[float | None]) -> Curve:
    points = [(place, float(value)) for place, value in enumerate(values) if value is not None and is_drawable(value)]
    return Curve(number, name, [place for place, _ in points], [value for _, value in points])


def _drawn(curves: Sequence[Curve], labels: Sequence[str], pen: Pen, width: int, rows: int) -> str:
    """The figure as plotext draws it."""
    import plotext  # a third of a second: only once something is drawn

    drawable = [curve for curve in curves if curve.values]
    values = [value for curve in drawable for value in curve.values]
    scale = PriceScale.spanning(min(values), max(values), rows - 3)
    plotext.terminal.limit(False, False)
    figure: Any = plotext.figure
    figure.clear()
    figure.theme("colorless")
    figure.canvas("default")
    figure.plot_size(width, rows)
    figure.legend(False)
    for curve in reversed(drawable):  # the first curve in front
        pixel = plotext.pixel(_COLOURS[curve.number % len(_COLOURS)]) if pen.colour else plotext.pixel()
        mark = plotext.marker(pen.mark(curve.number), pixel)
        figure.draw(figure.signal(*_thinned(curve.places, curve.values, 2 * width), marker=mark).lines(True))
    _axes(figure, scale, labels, low=min(values), last=max(curve.places[-1] for curve in drawable), width=width)
    text = figure.build().string(colorless=not pen.colour)
    figure.clear()
    return text if pen.colour else _ESCAPES.sub("", text)


def _axes(figure: Any, scale: PriceScale, labels: Sequence[str], *, low: float, last: int, width: int) -> None:
    """Set the prices on the vertical axis, and the labels that the rest of the width has room for on the horizontal."""
    prices = _prices(scale, low)
    figure.ruler("y").lim(scale.low, scale.high)
    figure.ruler("y").ticks(list(prices.values()), list(prices))
    columns = width - max(map(len, prices)) - 2  # the frame takes two
    places = _places(last, max(1, width // 18), columns, max(map(len, labels), default=0))
    named = [place for place in places if place < len(labels)]
    figure.ruler("x").lim(0, last)
    figure.ruler("x").ticks(named, [labels[place] for place in named])


def _prices(scale: PriceScale, low: float) -> dict[str, float]:
    """The prices to name, by their texts: round ones, or where there are not two of those the highest and the lowest;
    of a flat curve its only one."""
    if scale.low < low:  # there is space around a flat curve, and nothing to compare its decimals with
        return {_DECIMAL_ZEROS.sub(r"\1", scale.text(low)).rstrip("."): low}
    prices = [price for _, price in scale.ticks() if scale.low <= price <= scale.high]
    if len(prices) < 2:
        prices = [scale.high, scale.low]
    whole = all(price == int(price) for price in prices)
    return {f"{price:z,.0f}" if whole else scale.text(price): price for price in prices}


def _places(last: int, most: int, columns: int, length: int) -> list[int]:
    """The places to name: the first, the last and those that divide the axis into at most `most` parts, as far as
    labels of `length` characters stay a space apart on `columns`; else the last alone."""
    for parts in range(most, 0, -1):
        places = sorted({round(last * n / parts) for n in range(parts + 1)})
        # plotext centres a label under its place, but keeps it within the axis, and leaves one out that would overlap.
        middles = [int(place * (columns - 1) / last + 0.5) for place in places]
        starts = [min(max(0, middle - (length - 1) // 2), columns - length) for middle in middles]
        if all(after - before > length for before, after in pairwise(starts)):
            return places
    return [last]


def _thinned(places: list[int], ys: list[float], most: int) -> tuple[list[int], list[float]]:
    """At most about `most` points that keep the highs and lows of what they stand for."""
    size = -(-2 * len(places) // most)
    if size <= 2:
        return places, ys
    chosen: list[int] = []
    for start in range(0, len(places), size):
        group = range(start, min(start + size, len(places)))
        chosen += sorted({min(group, key=ys.__getitem__), max(group, key=ys.__getitem__)})
    chosen = sorted({0, *chosen, len(places) - 1})
    return [places[n] for n in chosen], [ys[n] for n in chosen]


def _legend(curves: Sequence[Curve], width: int, pen: Pen) -> str:
    """The curves' names, each with its mark and last value; with fewer decimals, then without the values where those do
    not all fit, and with shortened names where the names do not."""
    for decimals in (2, 1, 0):
        texts = [
            f"{curve.name} {curve.values[-1]:z,.{decimals}f}" if curve.values else f"{curve.name} -" for curve in curves
        ]
        if sum(len(text) + 4 for text in texts) - 2 <= width:
            break
    else:
        names = [curve.name for curve in curves]
        longest = max(map(len, names))
        while longest > 1 and sum(min(len(name), longest) + 4 for name in names) - 2 > width:
            longest -= 1
        texts = [_shortened(name, longest, "." if pen.plain else "…") for name in names]
    return "  ".join(f"{pen.sample(curve.number)} {text}" for curve, text in zip(curves, texts, strict=True))


def _shortened(name: str, width: int, ellipsis: str) -> str:
    return name if len(name) <= width else f"{name[: width - 1].rstrip()}{ellipsis}"


def _framed(lines: list[str], width: int, height: int) -> str:
    """Exactly `height` lines, each padded or cut to `width` visible characters."""
    lines = lines[:height] + [""] * (height - len(lines))
    visible = [_ESCAPES.sub("", line) for line in lines]
    return "\n".join(
        line + " " * (width - len(plain)) if len(plain) <= width else plain[:width]
        for line, plain in zip(lines, visible, strict=True)
    )
