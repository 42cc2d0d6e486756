"""Curves over sessions as SVG, for reports: no library, colours from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 1080, 70, 12, 10, 24
MARK = 5
"""Half the width of a mark."""
_MOST_POINTS = 900


@dataclass(frozen=True, slots=True)
class Curve:
    """A named series of a value per session, None where there is none; `style` is the class that the style sheet knows:
    `own`, `held`, `other`, `fall` (filled up to the top) or `share` (filled down to the bottom)."""

    name: str
    values: Sequence[float | None]
    style: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A triangle at a session (by its number) and a value: filled and upwards for a buy, hollow and downwards for a
    sale. `text` is read where the pointer rests."""

    number: int
    value: float
    buy: bool
    text: str


@dataclass(frozen=True, slots=True)
class Cloud:
    """Named points of one style, each with a text that is read where the pointer rests."""

    name: str
    points: Sequence[tuple[float, float, str]]
    style: str


@dataclass(frozen=True, slots=True)
class _Frame:
    """The places of sessions, by number, and of values in a chart."""

    count: int
    height: int
    levels: Sequence[float]

    @property
    def bottom(self) -> int:
        return self.height - BOTTOM

    def x(self, number: int) -> float:
        return LEFT + number / (self.count - 1) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self.levels[0], self.levels[-1]
        return self.bottom - (value - low) / (high - low) * (self.bottom - TOP)


def svg(
    curves: Sequence[Curve],
    sessions: Sequence[str],
    height: int,
    title: str,
    *,
    percent: bool = False,
    marks: Sequence[Mark] = (),
) -> str:
    """A chart of curves of equal length, the last in front, marks before them; empty with fewer than two sessions or
    without a value. `percent` labels the axis so (values are fractions)."""
    values = [value for curve in curves for value in curve.values if value is not None]
    values += [mark.value for mark in marks]
    if len(sessions) < 2 or not values:
        return ""
    frame = _Frame(len(sessions), height, ticks(min(values), max(values)))
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">']
    parts += _grid(frame, sessions, percent)
    for curve in curves:
        parts += _drawn(frame, curve)
    parts += (_triangle(frame, mark) for mark in marks)
    return "\n".join((*parts, "</svg>"))


def scatter(clouds: Sequence[Cloud], height: int, title: str) -> str:
    """A chart of points, the last cloud in front, whose axes have no unit and so no labels; empty without points."""
    points = [point for cloud in clouds for point in cloud.points]
    if not points:
        return ""
    x = _scale([point[0] for point in points], LEFT, WIDTH - LEFT)
    y = _scale([point[1] for point in points], height - BOTTOM, BOTTOM)
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">']
    for cloud in clouds:
        for across, up, text in cloud.points:
            place = f'class="{cloud.style}" cx="{x(across):.1f}" cy="{y(up):.1f}" r="{MARK}"'
            parts.append(f"<circle {place}><title>{escape(f'{cloud.name}: {text}')}</title></circle>")
    return "\n".join((*parts, "</svg>"))


def _scale(values: Sequence[float], first: int, last: int) -> Callable[[float], float]:
    """The places of values between two ends."""
    low, high = min(values), max(values)
    return lambda value: first + (value - low) / ((high - low) or 1.0) * (last - first)


def _grid(frame: _Frame, sessions: Sequence[str], percent: bool) -> Iterator[str]:
    levels = frame.levels
    for level in levels:
        label = f"{100 * level:.{_decimals(100 * (levels[1] - levels[0]))}f} %" if percent else f"{level:,.10g}"
        y = frame.y(level)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    for number in _labelled(len(sessions)):
        anchor = "start" if number == 0 else "end" if number == len(sessions) - 1 else "middle"
        place = f'x="{frame.x(number):.1f}" y="{frame.height - 6}"'
        yield f'<text {place} text-anchor="{anchor}">{escape(sessions[number])}</text>'


def _drawn(frame: _Frame, curve: Curve) -> Iterator[str]:
    """The lines of a curve, one for each stretch without a gap."""
    edges = {"fall": frame.levels[-1], "share": frame.levels[0]}
    for first, segment in _segments(curve.values):
        kept = _kept(segment)
        points = " ".join(f"{frame.x(first + n):.1f},{frame.y(segment[n]):.1f}" for n in kept)
        if curve.style in edges:
            edge, last = f"{frame.y(edges[curve.style]):.1f}", first + len(segment) - 1
            area = f"{frame.x(first):.1f},{edge} {points} {frame.x(last):.1f},{edge}"
            yield f'<polygon class="area {curve.style}" points="{area}"/>'
        yield f'<polyline class="{curve.style}" points="{points}"><title>{escape(curve.name)}</title></polyline>'


def _triangle(frame: _Frame, mark: Mark) -> str:
    x, y = frame.x(mark.number), frame.y(mark.value)
    base = y + 2 * MARK if mark.buy else y - 2 * MARK
    points = f"{x:.1f},{y:.1f} {x - MARK:.1f},{base:.1f} {x + MARK:.1f},{base:.1f}"
    kind = "buy" if mark.buy else "sell"
    return f'<polygon class="mark {kind}" points="{points}"><title>{escape(mark.text)}</title></polygon>'


def _segments(values: Sequence[float | None]) -> Iterator[tuple[int, list[float]]]:
    """The parts of a series without a gap, each with the number of its first value."""
    first, segment = 0, list[float]()
    for number, value in enumerate((*values, None)):
        if value is not None:
            first = first if segment else number
            segment.append(value)
        elif segment:
            yield first, segment
            segment = []


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round levels that enclose a range, at least two, equally far apart."""
    if high - low <= 1e-9 * max(abs(low), abs(high), 1.0):
        margin = max(abs(low) * 0.01, 0.01)
        low, high = low - margin, high + margin
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1.0, 2.0, 2.5, 5.0, 10.0) if power * m >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _decimals(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else int(step != int(step))


def _labelled(count: int) -> list[int]:
    return sorted({round((count - 1) * part / 5) for part in range(6)}) if count > 6 else sorted({0, count - 1})


def _kept(values: Sequence[float]) -> list[int]:
    """Which points to draw: of a long series the lowest and highest of each stretch, and both ends."""
    size = -(-2 * len(values) // _MOST_POINTS)
    if size <= 2:
        return list(range(len(values)))
    kept = {0, len(values) - 1}
    for start in range(0, len(values), size):
        segment = range(start, min(start + size, len(values)))
        kept |= {min(segment, key=values.__getitem__), max(segment, key=values.__getitem__)}
    return sorted(kept)
