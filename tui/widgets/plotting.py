"""Curves as text, drawn by plotext: equity, drawdown, comparisons and indicators, for screens and plain reports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

from tui.chart_data import is_drawable
from tui.widgets.chart_axes import PriceScale

_COLOURS = ("blue+", "orange", "green+", "magenta+", "cyan+", "red+")
_PLAIN_MARKS = "*+xo#@"
"""A curve is known by what it is drawn with, and not by its colour alone."""
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_FRAME_TO_ASCII = str.maketrans("┌┐└┘├┤┬┴┼─│", "+++++++++-|")

_figure = Lock()
"""plotext has one figure for the whole program; it is drawn by one thread at a time."""


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
    with _figure:
        body = _drawn(curves, labels, pen, width, height - 1)
    if ascii_only:
        body = body.translate(_FRAME_TO_ASCII)
    return _framed([legend, *body.rstrip("\n").split("\n")], width, height)


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
    _axes(figure, scale, labels, last=max(curve.places[-1] for curve in drawable), names=max(1, width // 18))
    text = figure.build().string(colorless=not pen.colour)
    figure.clear()
    return text if pen.colour else _ESCAPES.sub("", text)


def _axes(figure: Any, scale: PriceScale, labels: Sequence[str], *, last: int, names: int) -> None:
    """Set round prices on the vertical axis, and about so many labels on the horizontal one."""
    prices = [price for _, price in scale.ticks() if scale.low <= price <= scale.high]
    whole = all(price == int(price) for price in prices)
    figure.ruler("y").lim(scale.low, scale.high)
    figure.ruler("y").ticks(prices, [f"{price:,.0f}" if whole else scale.text(price) for price in prices])
    if last > 0:
        places = sorted({round(last * n / names) for n in range(names + 1)})
        named = [place for place in places if place < len(labels)]
        figure.ruler("x").lim(0, last)
        figure.ruler("x").ticks(named, [labels[place] for place in named])


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
    """The curves' names, each with its mark and last value; without the values where those do not all fit, and with
    shortened names where those do not."""
    valued = [f"{curve.name} {curve.values[-1]:,.2f}" if curve.values else f"{curve.name} -" for curve in curves]
    names = [curve.name for curve in curves]
    longest = max(map(len, names))
    while longest > 1 and sum(min(len(name), longest) + 4 for name in names) - 2 > width:
        longest -= 1
    whole = sum(len(text) + 4 for text in valued) - 2 <= width
    texts = valued if whole else [_shortened(name, longest, "." if pen.plain else "…") for name in names]
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
