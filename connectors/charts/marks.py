"""Axes and marks of a plot: sessions and values in pixels from the image's lower left corner; grid, candles, lines, a
shaded band, bars, markers and a boxed price."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from engine.domain.chart import Candles, Line, Marker, Series

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure


Point = tuple[float, float]

_MOST = 8
_MOST_LABELS = 11
"""Number of labels that fit side by side across a chart."""
_STEPS: tuple[Callable[[date], int], ...] = (
    lambda day: day.toordinal(),
    lambda day: (day.toordinal() - 1) // 7,
    lambda day: (day.toordinal() - 1) // 14,
    lambda day: day.year * 12 + day.month,
    lambda day: (day.year * 12 + day.month - 1) // 2,
    lambda day: (day.year * 12 + day.month - 1) // 3,
    lambda day: (day.year * 12 + day.month - 1) // 6,
    lambda day: day.year,
)
"""Periods from a day to a year; the first session of a period may carry a date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotArea:
    """A rectangle of pixels with `count` sessions across, by index and without gaps, and values from `low` up to
    `high`.

    left, right, bottom, top: pixels.
    count: sessions.
    low, high: values.
    """

    left: float
    right: float
    bottom: float
    top: float
    count: int
    low: float
    high: float

    @property
    def step(self) -> float:
        """Pixels from one session to the next."""
        return (self.right - self.left) / self.count

    def x(self, index: float) -> float:
        """Centre of a session."""
        return self.left + (index + 0.5) * self.step

    def y(self, value: float) -> float:
        """Height of a value."""
        return self.bottom + (value - self.low) / (self.high - self.low) * (self.top - self.bottom)

    def runs(self, values: Series) -> list[list[Point]]:
        """Points of a series, broken where it has no value."""
        runs: list[list[Point]] = [[]]
        for index, value in enumerate(values):
            if value is not None:
                runs[-1].append((self.x(index), self.y(value)))
            elif runs[-1]:
                runs.append([])
        return [run for run in runs if run]


def extent(*series: Sequence[float | None]) -> tuple[float, float]:
    """Smallest and largest value of all series; (0, 1) where there is none."""
    values = [value for one in series for value in one if value is not None]
    return (min(values), max(values)) if values else (0.0, 1.0)


def round_ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` round values between low and high: multiples of 1, 2, 2.5 or 5 times a power of ten."""
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / most))
    for factor in (1, 2, 2.5, 5, 10, 20):
        step = power * factor
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first + 1 <= most:
            return [index * step for index in range(first, last + 1)]
    return []


def date_ticks(sessions: Sequence[str]) -> list[tuple[int, str]]:
    """Indices of at most eight sessions with their labels.

    These are the first of each day, week, fortnight, month, two months, quarter, half-year or year, whichever is the
    finest that fits; evenly spaced over more than eight years. Sessions that are no ISO dates (a blind run masks them)
    are labelled evenly as they are.
    """
    try:
        days = [date.fromisoformat(session) for session in sessions]
    except ValueError:
        return _evenly(sessions)
    for period in _STEPS:
        starts = [index for index, day in enumerate(days) if index == 0 or period(day) != period(days[index - 1])]
        # The first session stands anywhere in its period: its label must not run into the next one.
        if len(starts) > 2 and starts[1] * _MOST_LABELS < len(days):
            starts = starts[1:]
        if len(starts) <= _MOST:
            return [(index, sessions[index]) for index in starts]
    return _evenly(sessions)


def _evenly(sessions: Sequence[str]) -> list[tuple[int, str]]:
    step = max(1, -(-len(sessions) // _MOST))
    return [(index, sessions[index]) for index in range(0, len(sessions), step)]


UP = "#0a8f6c"
DOWN = "#d6342c"
INK = "#1c2430"
FAINT = "#6b7684"
GRID = "#e3e7ec"
BAND = "#f1eaf8"
BAR_COLOURS = (_BAR_UP, _BAR_DOWN) = ("#86c8b7", "#ea9a96")
_BLUE, _ORANGE, _PURPLE, _MAGENTA = "#1769d2", "#e07b00", "#8e63b8", "#b5267f"
STROKE_COLOURS = (UP, DOWN, INK, FAINT, _BLUE, _ORANGE, _PURPLE, _MAGENTA)
_ROLES = (
    (INK, ("close",)),
    (_BLUE, ("short", "fast", "k")),
    (_ORANGE, ("long", "signal", "d")),
    (_PURPLE, ("upper", "middle", "lower")),
    (_MAGENTA, ("j",)),
    (FAINT, ("benchmark",)),
)
_ROLE_COLOURS = {role: colour for colour, roles in _ROLES for role in roles}
_OTHERS = (_BLUE, _ORANGE, _MAGENTA, _PURPLE, FAINT)
_HALF_BODY = 0.36
_DASHED = (0, (5, 3))
_DOTTED = (0, (1, 2))


def colour_of(line: Line, place: int) -> str:
    """Colour of a line: its role's, else by its place among the lines."""
    return _ROLE_COLOURS.get(line.role, _OTHERS[place % len(_OTHERS)])


def draw_grid(figure: Figure, area: PlotArea, values: Sequence[float], indices: Sequence[int]) -> None:
    """Draw the frame, and a faint line at every labelled value and session."""
    frame = [(area.left, area.bottom), (area.right, area.bottom), (area.right, area.top)]
    lines: list[list[Point]] = [[*frame, (area.left, area.top), frame[0]]]
    lines += [[(area.left, area.y(value)), (area.right, area.y(value))] for value in values]
    lines += [[(area.x(index), area.bottom), (area.x(index), area.top)] for index in indices]
    _strokes(figure, lines, GRID, 0.8, layer=1)


def draw_level(figure: Figure, area: PlotArea, value: float, colour: str = FAINT, dotted: bool = False) -> None:
    """Draw a horizontal line: a guide level, or the last price."""
    line = [(area.left, area.y(value)), (area.right, area.y(value))]
    _strokes(figure, [line], colour, 0.9, layer=2, style=_DOTTED if dotted else _DASHED)


def draw_candles(figure: Figure, area: PlotArea, candles: Candles) -> None:
    """Draw a wick from low to high and a body from open to close, green where the close is not below the open."""
    for rising, colour in ((True, UP), (False, DOWN)):
        wicks: list[list[Point]] = []
        bodies: list[list[Point]] = []
        for index, (open_, high, low, close) in enumerate(
            zip(candles.open, candles.high, candles.low, candles.close, strict=True)
        ):
            if (close >= open_) is rising:
                x = area.x(index)
                wicks.append([(x, area.y(low)), (x, area.y(high))])
                bottom, top = sorted((area.y(open_), area.y(close)))
                # A body without height would not be seen.
                bodies.append(_bar(area, index, bottom, max(top, bottom + 1.2)))
        _strokes(figure, wicks, colour, 1.2, layer=4)
        _areas(figure, bodies, colour, layer=5)


def draw_lines(figure: Figure, area: PlotArea, lines: Sequence[Line]) -> None:
    """Draw every line in its colour, broken where it has no value and cut at the frame, and shade between `upper` and
    `lower`."""
    by_role = {line.role: line for line in lines}
    if "upper" in by_role and "lower" in by_role:
        above, below = area.runs(by_role["upper"].values), area.runs(by_role["lower"].values)
        bands = [up + down[::-1] for up, down in zip(above, below, strict=False)]
        _areas(figure, bands, BAND, layer=0, within=area)
    for place, line in enumerate(lines):
        width = 1.0 if line.role in {"upper", "middle", "lower"} else 1.7
        style = _DASHED if line.role == "middle" else "solid"
        _strokes(figure, area.runs(line.values), colour_of(line, place), width, layer=6, style=style, within=area)


def draw_bars(figure: Figure, area: PlotArea, bars: Series, rising: Sequence[bool]) -> None:
    """Draw bars from zero, green where `rising`."""
    for green, colour in ((True, _BAR_UP), (False, _BAR_DOWN)):
        shapes = [
            _bar(area, index, area.y(0.0), area.y(value))
            for index, value in enumerate(bars)
            if value is not None and rising[index] is green
        ]
        _areas(figure, shapes, colour, layer=3)


def draw_markers(figure: Figure, area: PlotArea, markers: Sequence[Marker]) -> None:
    """Draw a green triangle up under every buy, and a red one down over every sell.

    They are at a distance from the price, so that the price stays visible.
    """
    for side, colour, way in (("BUY", UP, -1), ("SELL", DOWN, 1)):
        shapes = []
        for marker in markers:
            if marker.side == side:
                x, tip = area.x(marker.index), area.y(marker.price) + way * 11
                shapes.append([(x, tip), (x - 7.5, tip + way * 13), (x + 7.5, tip + way * 13)])
        _areas(figure, shapes, colour, layer=8, edge="white")


def draw_box(figure: Figure, left: float, right: float, middle: float, colour: str) -> None:
    """Draw a filled box on the scale, for the last price."""
    bottom, top = middle - 10, middle + 10
    _areas(figure, [[(left, bottom), (left, top), (right, top), (right, bottom)]], colour, layer=9)


def _bar(area: PlotArea, index: int, bottom: float, top: float) -> list[Point]:
    half = _HALF_BODY * area.step
    left, right = area.x(index) - half, area.x(index) + half
    return [(left, bottom), (left, top), (right, top), (right, bottom)]


def _strokes(
    figure: Figure,
    lines: Sequence[Sequence[Point]],
    colour: str,
    width: float,
    *,
    layer: int,
    style: str | tuple[int, tuple[int, int]] = "solid",
    within: PlotArea | None = None,
) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.transforms import IdentityTransform

    if lines:
        strokes = LineCollection(
            lines, colors=colour, linewidths=width, linestyles=[style], zorder=layer, transform=IdentityTransform()
        )
        _clip(strokes, within)
        figure.add_artist(strokes)


def _areas(
    figure: Figure,
    shapes: Sequence[Sequence[Point]],
    colour: str,
    *,
    layer: int,
    edge: str = "none",
    within: PlotArea | None = None,
) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.transforms import IdentityTransform

    if shapes:
        areas = PolyCollection(
            shapes, facecolors=colour, edgecolors=edge, linewidths=0.8, zorder=layer, transform=IdentityTransform()
        )
        _clip(areas, within)
        figure.add_artist(areas)


def _clip(artist: Artist, within: PlotArea | None) -> None:
    from matplotlib.transforms import Bbox

    if within is not None:
        artist.set_clip_box(Bbox.from_extents(within.left, within.bottom, within.right, within.top))
