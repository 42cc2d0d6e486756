"""Text on an image, placed by pixels and measured so that no text runs into the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from connectors.charts.marks import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
