"""A grid of cells to draw a chart on, and the palette of its inks; returned as strips of text.

An ink is the name of a style: the theme decides its colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

MUTED_INKS = frozenset({"grid", "muted", "volume_up", "volume_down"})
STRONG_INKS = frozenset({"title", "buy", "sell", "decision"})


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by ink, in the notation of rich (`#4ebf71`, `green`); `background` is behind everything.

    Inks: up, down, volume_up, volume_down, text, title, muted, grid, buy, sell, decision, line0 ... lineN, band, fill
    (the tint between the bands) and paper (text on a coloured box).
    """

    inks: Mapping[str, str]
    background: str | None = None

    def style(self, ink: str, behind: str = "") -> Style:
        """Return the style of an ink on the background, or on another ink."""
        back = self.inks.get(behind) or self.background
        return _style(self.inks.get(ink), back, ink in STRONG_INKS, False)


@dataclass(frozen=True, slots=True)
class NoColours:
    """The palette without colour: weight alone shows importance."""

    def style(self, ink: str, behind: str = "") -> Style:
        """Return a bold or dim style, never a colour."""
        return _style(None, None, ink in STRONG_INKS, ink in MUTED_INKS)


@lru_cache(maxsize=1024)
def _style(fore: str | None, back: str | None, bold: bool, dim: bool) -> Style:
    return Style(color=fore, bgcolor=back, bold=bold or None, dim=dim or None)


class Canvas:
    """Cells of one character, its ink and the ink behind it. Drawing outside is ignored."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.chars = [[" "] * width for _ in range(height)]
        self.inks = [[""] * width for _ in range(height)]
        self.behind = [[""] * width for _ in range(height)]

    def put(self, x: int, y: int, char: str, ink: str) -> None:
        """Put a character of one cell; the ink behind it remains."""
        if 0 <= x < self.width and 0 <= y < self.height:
            self.chars[y][x] = char
            self.inks[y][x] = ink

    def write(self, x: int, y: int, text: str, ink: str, behind: str = "") -> None:
        """Write a text of narrow characters from a cell on, cut at the right edge."""
        if not 0 <= y < self.height or x < 0:
            return
        stop = min(x + len(text), self.width)
        if stop > x:
            self.chars[y][x:stop] = text[: stop - x]
            self.inks[y][x:stop] = [ink] * (stop - x)
            self.behind[y][x:stop] = [behind] * (stop - x)

    def strips(self, palette: Palette | NoColours) -> list[Strip]:
        """Return the rows, each exactly as wide as the canvas, with neighbours of one style joined."""
        styles: dict[tuple[str, str], Style] = {}
        strips = []
        for chars, inks, behind in zip(self.chars, self.inks, self.behind, strict=True):
            segments = []
            start = 0
            for stop in range(1, self.width + 1):
                if stop < self.width and inks[stop] == inks[start] and behind[stop] == behind[start]:
                    continue
                pair = inks[start], behind[start]
                style = styles.get(pair) or styles.setdefault(pair, palette.style(*pair))
                segments.append(Segment("".join(chars[start:stop]), style))
                start = stop
            strips.append(Strip(segments, self.width))
        return strips
