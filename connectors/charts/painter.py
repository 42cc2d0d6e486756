"""A ChartPainter that renders a chart as a PNG for a vision model, a report or a person."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from connectors.charts import marks
from connectors.charts.marks import (
    BAND,
    BAR_COLOURS,
    DOWN,
    FAINT,
    GRID,
    INK,
    STROKE_COLOURS,
    UP,
    PlotArea,
    date_ticks,
    extent,
    round_ticks,
)
from engine.domain.chart import ChartSpec, Line, Panel, Series
from engine.errors import InvariantBroken, MissingData

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

Colour = tuple[int, int, int]

_WIDTH, _HEIGHT, _DPI = 1000, 800, 100
_LEFT, _RIGHT, _TOP, _BOTTOM = 12, 918, 728, 32
_PANELS, _PANEL, _GAP = 384, 150, 7
"""Most pixels of all panels together, of one panel, and of the gap above it."""
_APART = 8
"""Fewest pixels between two labels of sessions."""
_REMEMBERED = 64
"""Charts whose pictures a painter keeps, some 40 kB each: agents and rounds of one session are shown the same ones."""


class MatplotlibPainter:
    """A ChartPainter over matplotlib's Agg canvas. Equal charts give equal bytes; rendering runs in a thread."""

    version = "3"

    def __init__(self) -> None:
        # Matplotlib's caches of fonts and glyphs are not made for several threads.
        self._lock = threading.Lock()
        self._render = lru_cache(maxsize=_REMEMBERED)(lambda spec: encode_png(_Drawing(spec).figure))

    async def paint(self, spec: ChartSpec) -> bytes:
        """A PNG of 1000 x 800 pixels in 64 colours.

        Raises MissingData for a chart without sessions and InvariantBroken for one whose parts differ in length.
        """
        _check(spec)
        return await asyncio.to_thread(self._paint, spec)

    def _paint(self, spec: ChartSpec) -> bytes:
        with self._lock:
            return self._render(spec)


def _check(spec: ChartSpec) -> None:
    count = len(spec.sessions)
    if not count:
        raise MissingData(f"the chart {spec.title!r} has no sessions; choose a window with sessions")
    lines = [*spec.lines, *(line for panel in spec.panels for line in panel.lines)]
    sizes = [(line.name, len(line.values)) for line in lines]
    sizes += [(panel.name, len(panel.bars)) for panel in spec.panels if panel.bars]
    if (bars := spec.candles) is not None:
        sizes += [(name, len(getattr(bars, name))) for name in ("open", "high", "low", "close")]
    sizes += [(f"a marker at {one.index}", -1) for one in spec.markers if not 0 <= one.index < count]
    for name, size in sizes:
        if size != count:
            raise InvariantBroken(f"the chart {spec.title!r} has {count} sessions and {name} does not fit them")


class _Drawing:
    """A chart on its way to a figure: prices above, panels below, labelled sessions under both."""

    def __init__(self, spec: ChartSpec) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(_WIDTH / _DPI, _HEIGHT / _DPI), dpi=_DPI, facecolor="white")
        FigureCanvasAgg(self.figure)
        self._text = TextLayout(self.figure)
        self._spec = spec
        ticks = date_ticks(spec.sessions)
        self._indices = [index for index, _ in ticks]
        self._panel_height = min(_PANEL, _PANELS / len(spec.panels)) if spec.panels else 0
        price = self._draw_price()
        self._write_heading()
        for place, panel in enumerate(spec.panels):
            self._draw_panel(panel, top=price.bottom - place * self._panel_height - _GAP)
        self._write_sessions(price, ticks)

    def _write_sessions(self, area: PlotArea, ticks: Sequence[tuple[int, str]]) -> None:
        """Label the sessions from the last one on: one that would run into the label after it is left out."""
        until = float(_WIDTH)
        for index, label in reversed(ticks):
            half = self._text.width(label, 9) / 2
            x = max(area.x(index), _LEFT + half)
            if x + half + _APART <= until:
                self._text.write(x, 16, label, align="center")
                until = x - half

    def _area(self, bottom: float, top: float, low: float, high: float) -> PlotArea:
        count = len(self._spec.sessions)
        return PlotArea(left=_LEFT, right=_RIGHT, bottom=bottom, top=top, count=count, low=low, high=high)

    def _draw_price(self) -> PlotArea:
        spec, candles = self._spec, self._spec.candles
        # Candles fill the panel: a line that is far from them would press them flat, and is cut at the frame instead.
        shown: list[Series] = [line.values for line in spec.lines]
        if candles is not None:
            shown = [candles.high, candles.low]
        low, high = extent(*shown, [marker.price for marker in spec.markers])
        span = (high - low) or abs(high) * 0.02 or 1.0
        low, high = low - span * 0.06, high + span * 0.06
        area = self._area(_BOTTOM + self._panel_height * len(spec.panels), _TOP, low, high)
        values = round_ticks(low, high, 10)
        marks.draw_grid(self.figure, area, values, self._indices)
        if candles is not None:
            marks.draw_candles(self.figure, area, candles)
        marks.draw_lines(self.figure, area, spec.lines)
        marks.draw_markers(self.figure, area, spec.markers)
        boxed = self._box_last_price(area)
        for value in values:
            # A figure half hidden by the box could be misread.
            if boxed is None or abs(area.y(value) - boxed) > 18:
                self._text.write(_RIGHT + 6, area.y(value), scale_text(value))
        return area

    def _box_last_price(self, area: PlotArea) -> float | None:
        """Box the last close on the scale, red where it is below the previous one; return the box's height."""
        spec = self._spec
        closes = next((line.values for line in spec.lines if line.role == "close"), ())
        known = [value for value in (spec.candles.close if spec.candles else closes) if value is not None]
        if not known:
            return None
        colour = DOWN if len(known) > 1 and known[-1] < known[-2] else UP
        height = area.y(known[-1])
        marks.draw_level(self.figure, area, known[-1], colour, dotted=True)
        marks.draw_box(self.figure, _RIGHT + 1, _WIDTH - 3, height, colour)
        self._text.write(_RIGHT + 6, height, price_text(known[-1]), "white", size=10, bold=True)
        return height

    def _draw_panel(self, panel: Panel, top: float) -> None:
        low, high = extent(panel.bars, panel.levels, *(line.values for line in panel.lines))
        if panel.bars:
            low, high = min(low, 0.0), max(high, 0.0)
        if len(panel.levels) == 2 and sum(panel.levels) == 100:
            # An oscillator from 0 to 100 keeps its scale, so that charts compare.
            low, high = min(low, 0.0), max(high, 100.0)
        span = (high - low) or 1.0
        # Room above for the panel's figures, and below for all but bars that stand on the frame.
        low, high = (low if low == 0.0 else low - span * 0.05), high + span * 0.28
        area = self._area(top - self._panel_height + _GAP, top, low, high)
        values = list(panel.levels) if len(panel.levels) > 1 else round_ticks(low, high - span * 0.2, 3)
        marks.draw_grid(self.figure, area, values, self._indices)
        for level in panel.levels:
            marks.draw_level(self.figure, area, level)
        marks.draw_bars(self.figure, area, panel.bars, _rising(panel, self._spec))
        marks.draw_lines(self.figure, area, panel.lines)
        for value in values:
            self._text.write(_RIGHT + 6, area.y(value), scale_text(value))
        self._text.write_row(_LEFT + 6, _RIGHT, top - 10, _panel_legend(panel))

    def _write_heading(self) -> None:
        spec, text = self._spec, self._text
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


def _rising(panel: Panel, spec: ChartSpec) -> list[bool]:
    """Green bars: of volume by their candle, of a difference and of own trades by their sign."""
    if not panel.lines and not panel.levels and spec.candles is not None:
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


def encode_png(figure: Figure) -> bytes:
    """Render a figure on its canvas as a PNG of at most 64 colours; equal figures give equal bytes."""
    from PIL import Image

    canvas: Any = figure.canvas  # the Agg canvas is published without types
    canvas.draw()
    size = canvas.get_width_height()
    image = Image.frombytes("RGBA", size, bytes(canvas.buffer_rgba())).convert("RGB")
    small = image.quantize(palette=_palette(), dither=Image.Dither.NONE)
    out = io.BytesIO()
    # Level 9 would save a sixth of the bytes and take as long as all of the drawing.
    small.save(out, format="PNG", compress_level=6)
    return out.getvalue()


@lru_cache(maxsize=1)
def _palette() -> Image:
    """All colours in use with the steps of their edges to white.

    A palette of each image's own would distort rare colours, such as that of the only sell marker.
    """
    from PIL import Image

    colours = [_rgb("#ffffff"), _rgb(GRID), _rgb(BAND), _mixed(GRID, BAND, 0.5)]
    colours += [_mixed(GRID, "#ffffff", part) for part in (0.7, 0.4)]
    for colour in BAR_COLOURS:
        colours += [_rgb(colour), _mixed(colour, "#ffffff", 0.5)]
    for colour in STROKE_COLOURS:
        colours += [_mixed(colour, "#ffffff", part) for part in (1.0, 0.78, 0.55, 0.32, 0.14)]
    colours += [_mixed(INK, "#ffffff", part) for part in (0.9, 0.66, 0.44, 0.22)]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in colours for part in colour])
    return palette


def _rgb(colour: str) -> Colour:
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def _mixed(colour: str, ground: str, part: float) -> Colour:
    red, green, blue = (
        round(over * part + under * (1 - part)) for over, under in zip(_rgb(colour), _rgb(ground), strict=True)
    )
    return red, green, blue


_SIZE = 9.0
_ROW_SIZES = (9.0, 8.5, 8.0, 7.5, 7.0, 6.5)
_SPACE = 1.3
"""Pixels between two texts of a row, per point of their size."""


class TextLayout:
    """Writer of text on one figure, in the font that matplotlib includes."""

    def __init__(self, figure: Figure) -> None:
        from matplotlib.backends.backend_agg import RendererAgg

        self._figure = figure
        self._pixels = (figure.get_figwidth() * figure.dpi, figure.get_figheight() * figure.dpi)
        renderer: Any = RendererAgg  # published without types
        self._measure = renderer(1, 1, figure.dpi)

    def write(
        self,
        x: float,
        y: float,
        text: str,
        colour: str = INK,
        *,
        size: float = _SIZE,
        bold: bool = False,
        align: Literal["left", "center", "right"] = "left",
    ) -> None:
        """Write one text, its middle at height `y`."""
        self._figure.text(
            x / self._pixels[0],
            y / self._pixels[1],
            text,
            color=colour,
            fontfamily="DejaVu Sans",
            fontsize=size,
            fontweight="bold" if bold else "normal",
            horizontalalignment=align,
            verticalalignment="center",
            parse_math=False,
            zorder=10,
        )

    def write_row(self, left: float, right: float, y: float, parts: Sequence[tuple[str, str]]) -> None:
        """Write texts side by side, each in its colour, as small as necessary to fit between left and right."""
        # Glyphs snap to whole pixels, so that a size has to be tried: widths do not shrink in proportion.
        for size in _ROW_SIZES:
            widths = [self.width(text, size) + size * _SPACE for text, _ in parts]
            if sum(widths) <= right - left + size * _SPACE:
                break
        for (text, colour), width in zip(parts, widths, strict=True):
            self.write(left, y, text, colour, size=size)
            left += width

    def width(self, text: str, size: float) -> float:
        """Width of a text in pixels."""
        from matplotlib.font_manager import FontProperties

        font = FontProperties(family="DejaVu Sans", size=size)
        width, _, _ = self._measure.get_text_width_height_descent(text, font, ismath=False)
        return float(width)


def price_text(value: float | None) -> str:
    """An exact value: two decimals, one from 10,000 on, four significant digits below 1."""
    if value is None:
        return "-"
    if 0 < abs(value) < 1:
        return f"{value:.4g}"
    return f"{value:,.1f}" if abs(value) >= 10_000 else f"{value:,.2f}"


def scale_text(value: float | None) -> str:
    """A value of a scale: 1.2M, 45, 0.35."""
    if value is None:
        return "-"
    for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
