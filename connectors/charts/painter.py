"""A ChartPainter that renders a chart as a PNG for a vision model, a report or a person."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from connectors.charts import marks
from connectors.charts.date_ticks import date_ticks
from connectors.charts.marks import DOWN, FAINT, INK, UP
from connectors.charts.plot_area import PlotArea, extent, round_ticks
from connectors.charts.png import encode_png
from connectors.charts.text_layout import TextLayout, price_text, scale_text
from engine.domain.chart import ChartSpec, Line, Panel, Series
from engine.errors import InvariantBroken, MissingData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT, _DPI = 1000, 800, 100
_LEFT, _RIGHT, _TOP, _BOTTOM = 12, 918, 728, 32
_PANELS, _PANEL, _GAP = 384, 150, 7
"""Most pixels of all panels together, of one panel, and of the gap above it."""


class MatplotlibPainter:
    """A ChartPainter over matplotlib's Agg canvas. Equal charts give equal bytes; rendering runs in a thread."""

    version = "1"

    def __init__(self) -> None:
        # Matplotlib's caches of fonts and glyphs are not made for several threads.
        self._lock = threading.Lock()

    async def paint(self, spec: ChartSpec) -> bytes:
        """A PNG of 1000 x 800 pixels in 64 colours.

        Raises MissingData for a chart without sessions and InvariantBroken for one whose parts differ in length.
        """
        _check(spec)
        return await asyncio.to_thread(self._paint, spec)

    def _paint(self, spec: ChartSpec) -> bytes:
        with self._lock:
            return encode_png(_drawn(spec))


def _check(spec: ChartSpec) -> None:
    count = len(spec.sessions)
    if not count:
        raise MissingData(f"the chart {spec.title!r} has no sessions; name a window that has some")
    sizes = [(line.name, len(line.values)) for line in _all_lines(spec)]
    sizes += [(panel.name, len(panel.bars)) for panel in spec.panels if panel.bars]
    if (bars := spec.candles) is not None:
        sizes += [(name, len(getattr(bars, name))) for name in ("open", "high", "low", "close")]
    sizes += [(f"a marker at {one.index}", -1) for one in spec.markers if not 0 <= one.index < count]
    for name, size in sizes:
        if size != count:
            raise InvariantBroken(f"the chart {spec.title!r} has {count} sessions and {name} does not fit them")


def _all_lines(spec: ChartSpec) -> list[Line]:
    return [*spec.lines, *(line for panel in spec.panels for line in panel.lines)]


def _drawn(spec: ChartSpec) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH / _DPI, _HEIGHT / _DPI), dpi=_DPI, facecolor="white")
    FigureCanvasAgg(figure)
    text = TextLayout(figure)
    ticks = date_ticks(spec.sessions)
    indices = [index for index, _ in ticks]
    price = _draw_price(figure, text, spec, indices)
    _write_heading(text, spec)
    for place, panel in enumerate(spec.panels):
        height = _panel_height(spec)
        top = price.bottom - place * height - _GAP
        _draw_panel(figure, text, panel, spec, edges=(top - height + _GAP, top), indices=indices)
    for index, label in ticks:
        text.write(max(price.x(index), _LEFT + text.width(label, 9) / 2), 16, label, align="center")
    return figure


def _panel_height(spec: ChartSpec) -> float:
    return min(_PANEL, _PANELS / len(spec.panels)) if spec.panels else 0


def _draw_price(figure: Figure, text: TextLayout, spec: ChartSpec, indices: list[int]) -> PlotArea:
    candles = spec.candles
    shown: list[Series] = [line.values for line in spec.lines]
    if candles is not None:
        shown += [candles.high, candles.low]
    low, high = extent(*shown, [marker.price for marker in spec.markers])
    span = (high - low) or abs(high) * 0.02 or 1.0
    bottom = _BOTTOM + _panel_height(spec) * len(spec.panels)
    low, high = low - span * 0.06, high + span * 0.06
    area = PlotArea(left=_LEFT, right=_RIGHT, bottom=bottom, top=_TOP, count=len(spec.sessions), low=low, high=high)
    values = round_ticks(low, high, 10)
    marks.draw_grid(figure, area, values, indices)
    if candles is not None:
        marks.draw_candles(figure, area, candles)
    marks.draw_lines(figure, area, spec.lines)
    marks.draw_markers(figure, area, spec.markers)
    boxed = _box_last_price(figure, text, area, spec)
    for value in values:
        # A figure half hidden by the box could be misread.
        if boxed is None or abs(area.y(value) - boxed) > 18:
            text.write(_RIGHT + 6, area.y(value), scale_text(value))
    return area


def _box_last_price(figure: Figure, text: TextLayout, area: PlotArea, spec: ChartSpec) -> float | None:
    """Box the last close on the scale, red where it is below the previous one; return the box's height."""
    closes = next((line.values for line in spec.lines if line.role == "close"), ())
    known = [value for value in (spec.candles.close if spec.candles else closes) if value is not None]
    if not known:
        return None
    colour = DOWN if len(known) > 1 and known[-1] < known[-2] else UP
    height = area.y(known[-1])
    marks.draw_level(figure, area, known[-1], colour, dotted=True)
    marks.draw_box(figure, _RIGHT + 1, _WIDTH - 3, height, colour)
    text.write(_RIGHT + 6, height, price_text(known[-1]), "white", size=10, bold=True)
    return height


def _draw_panel(
    figure: Figure,
    text: TextLayout,
    panel: Panel,
    spec: ChartSpec,
    *,
    edges: tuple[float, float],
    indices: list[int],
) -> None:
    bottom, top = edges
    low, high = extent(panel.bars, panel.levels, *(line.values for line in panel.lines))
    if panel.bars:
        low, high = min(low, 0.0), max(high, 0.0)
    if len(panel.levels) == 2 and sum(panel.levels) == 100:
        # An oscillator from 0 to 100 keeps its scale, so that charts compare.
        low, high = min(low, 0.0), max(high, 100.0)
    span = (high - low) or 1.0
    # Room above for the panel's figures, and below for all but bars that stand on the frame.
    low, high = (low if low == 0.0 else low - span * 0.05), high + span * 0.28
    area = PlotArea(left=_LEFT, right=_RIGHT, bottom=bottom, top=top, count=len(spec.sessions), low=low, high=high)
    values = list(panel.levels) if len(panel.levels) > 1 else round_ticks(low, high - span * 0.2, 3)
    marks.draw_grid(figure, area, values, indices)
    for level in panel.levels:
        marks.draw_level(figure, area, level)
    marks.draw_bars(figure, area, panel.bars, _rising(panel, spec))
    marks.draw_lines(figure, area, panel.lines)
    for value in values:
        text.write(_RIGHT + 6, area.y(value), scale_text(value))
    text.write_row(_LEFT + 6, _RIGHT, top - 10, _panel_legend(panel))


def _rising(panel: Panel, spec: ChartSpec) -> list[bool]:
    """Green bars: of volume by their candle, of a difference by their sign."""
    if not panel.lines and spec.candles is not None:
        return [close >= open_ for open_, close in zip(spec.candles.open, spec.candles.close, strict=True)]
    return [(value or 0.0) >= 0 for value in panel.bars]


def _panel_legend(panel: Panel) -> list[tuple[str, str]]:
    """The panel's name and the last value of everything in it, each in its colour."""
    if not panel.lines:
        return [(f"{panel.name} {scale_text(panel.bars[-1]) if panel.bars else ''}", INK)]
    parts = [(_line_legend(line), marks.colour_of(line, place)) for place, line in enumerate(panel.lines)]
    if panel.name not in {line.name for line in panel.lines}:
        parts.insert(0, (panel.name, INK))
    if panel.bars:
        parts.append((f"■ histogram {price_text(panel.bars[-1])}", FAINT))
    return parts


def _line_legend(line: Line) -> str:
    return f"━ {line.name} {price_text(line.values[-1])}"


def _write_heading(text: TextLayout, spec: ChartSpec) -> None:
    text.write(_LEFT, 776, spec.title, size=14, bold=True)
    text.write(_RIGHT, 776, f"{spec.sessions[0]} to {spec.sessions[-1]}", size=11, align="right")
    parts: list[tuple[str, str]] = []
    if (bars := spec.candles) is not None:
        last = zip("OHLC", (bars.open[-1], bars.high[-1], bars.low[-1], bars.close[-1]), strict=True)
        parts.append(("last " + " ".join(f"{name} {price_text(value)}" for name, value in last), INK))
    parts += [(_line_legend(line), marks.colour_of(line, place)) for place, line in enumerate(spec.lines)]
    if spec.markers or spec.kind == "signals":
        for side, sign, colour in (("BUY", "▲", UP), ("SELL", "▼", DOWN)):
            parts.append((f"{sign} {side} ({sum(one.side == side for one in spec.markers)})", colour))
    text.write_row(_LEFT, _WIDTH - 6, 746, parts)
