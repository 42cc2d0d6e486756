"""Curves as text, drawn by plotext: equity, drawdown, comparisons and indicators, for screens and plain reports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from tui.widgets.chart_axes import PriceScale
from tui.widgets.chart_data import is_drawable

_COLOURS = ("blue+", "orange", "green+", "magenta+", "cyan+", "red+")
_PLAIN_MARKS = "*+xo#@"
"""Without colour a curve is known by what it is drawn with."""
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_FRAME_TO_ASCII = str.maketrans("┌┐└┘├┤┬┴┼─│", "+++++++++-|")

_figure = Lock()
"""plotext has one figure for the whole program; it is drawn by one thread at a time."""


def equity_plot(
    series: Mapping[str, Sequence[float | None]],
    labels: Sequence[str],
    width: int,
    height: int,
    *,
    colour: bool,
    ascii_only: bool = False,
) -> str:
    """Curves over a common axis as `height` lines of `width` characters, joined by line feeds.

    `series` holds a sequence of values by name (None and NaN: nothing is drawn there), `labels` a text per place,
    such as ISO dates. The first line names the curves with their last values. With `colour` the text carries
    ANSI colour codes; without, every curve has a mark of its own, as it has with `ascii_only`.
    """
    curves = {name: _points(values) for name, values in series.items()}
    values = [y for _, ys in curves.values() for y in ys]
    if width < 1 or height < 1:
        return ""
    if not values:
        return _framed(["nothing to draw"], width, height)
    legend = _legend(curves, width, colour, ascii_only)
    rows = height - 1
    if rows < 5 or width < 16:
        return _framed([legend], width, height)
    scale = PriceScale.spanning(min(values), max(values), rows - 3)
    with _figure:
        body = _drawn(curves, labels, scale, width, rows, colour, ascii_only)
    if ascii_only:
        body = body.translate(_FRAME_TO_ASCII)
    return _framed([legend, *body.rstrip("\n").split("\n")], width, height)


def _points(values: Sequence[float | None]) -> tuple[list[int], list[float]]:
    """Places and values that can be drawn."""
    points = [(place, float(value)) for place, value in enumerate(values) if value is not None and is_drawable(value)]
    return [place for place, _ in points], [value for _, value in points]


def _drawn(
    curves: Mapping[str, tuple[list[int], list[float]]],
    labels: Sequence[str],
    scale: PriceScale,
    width: int,
    rows: int,
    colour: bool,
    ascii_only: bool,
) -> str:
    """What plotext makes of it."""
    import plotext  # a third of a second: only once something is drawn

    plotext.terminal.limit(False, False)
    figure: Any = plotext.figure
    figure.clear()
    figure.theme("colorless")
    figure.canvas("default")
    figure.plot_size(width, rows)
    figure.legend(False)
    last = max(places[-1] for places, _ in curves.values() if places)
    for number, (places, ys) in reversed(list(enumerate(curves.values()))):  # the first curve in front
        pixel = plotext.pixel(_COLOURS[number % len(_COLOURS)]) if colour else plotext.pixel()
        mark = plotext.marker(_mark(number, colour, ascii_only), pixel)
        if places:
            figure.draw(figure.signal(*_thinned(places, ys, 2 * width), marker=mark).lines(True))
    prices = [price for _, price in scale.ticks() if scale.low <= price <= scale.high]
    figure.ruler("y").lim(scale.low, scale.high)
    whole = all(price == int(price) for price in prices)
    figure.ruler("y").ticks(prices, [f"{price:,.0f}" if whole else scale.text(price) for price in prices])
    if last > 0:
        figure.ruler("x").lim(0, last)
        named = [n for n in _spread(last, max(1, width // 18)) if n < len(labels)]
        figure.ruler("x").ticks(named, [labels[n] for n in named])
    text = figure.build().string(colorless=not colour)
    figure.clear()
    return text if colour else _ESCAPES.sub("", text)


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


def _spread(last: int, count: int) -> list[int]:
    return sorted({round(last * n / count) for n in range(count + 1)})


def _legend(curves: Mapping[str, tuple[list[int], list[float]]], width: int, colour: bool, ascii_only: bool) -> str:
    """The curves' names, each with its mark and last value, as many as fit."""
    entries: list[str] = []
    used = 0
    for number, (name, (_, ys)) in enumerate(curves.items()):
        words = (f"{name} {ys[-1]:,.2f}" if ys else f"{name} -")[: max(0, width - 2)]
        used += len(words) + 2 + (2 if entries else 0)
        if used > width:
            break
        mark = _mark(number, colour, ascii_only)
        sample = "▚" if mark == "hd" else mark
        entries.append(f"{_coloured(sample, number) if colour else sample} {words}")
    return "  ".join(entries)


def _mark(number: int, colour: bool, ascii_only: bool) -> str:
    """What a curve is drawn with; `hd` are plotext's quarter blocks."""
    if ascii_only:
        return _PLAIN_MARKS[number % len(_PLAIN_MARKS)]
    return "hd" if colour or number == 0 else _PLAIN_MARKS[(number - 1) % len(_PLAIN_MARKS)]


def _coloured(text: str, number: int) -> str:
    """The text in a curve's colour, with escape codes."""
    import plotext

    return str(plotext.colorize(text, _COLOURS[number % len(_COLOURS)]))


def _framed(lines: list[str], width: int, height: int) -> str:
    """Exactly `height` lines, each padded or cut to `width` visible characters."""
    lines = lines[:height] + [""] * (height - len(lines))
    visible = [_ESCAPES.sub("", line) for line in lines]
    return "\n".join(
        line + " " * (width - len(plain)) if len(plain) <= width else plain[:width]
        for line, plain in zip(lines, visible, strict=True)
    )
