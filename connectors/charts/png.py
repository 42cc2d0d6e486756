"""Encoding of a figure as a small PNG, with the same colours in every chart."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from connectors.charts.marks import BAND, BAR_COLOURS, GRID, INK, STROKE_COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

Colour = tuple[int, int, int]


def encode_png(figure: Figure) -> bytes:
    """Render a figure on its canvas as a PNG of at most 64 colours; equal figures give equal bytes."""
    from PIL import Image

    canvas: Any = figure.canvas  # the Agg canvas is published without types
    canvas.draw()
    size = canvas.get_width_height()
    image = Image.frombytes("RGBA", size, bytes(canvas.buffer_rgba())).convert("RGB")
    small = image.quantize(palette=_palette(), dither=Image.Dither.NONE)
    out = io.BytesIO()
    small.save(out, format="PNG", compress_level=9)
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
