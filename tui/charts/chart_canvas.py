"""A grid of cells to draw a chart on, the palette of its inks, and the characters of candles, lines and volume.

An ink is the name of a style: the theme decides its colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style

if TYPE_CHECKING:
    from textual.strip import Strip

MUTED_INKS = frozenset({"grid", "muted", "volume_up", "volume_down"})
STRONG_INKS = frozenset({"title", "buy", "sell", "decision"})

EMPTY, WICK, BODY, HOLLOW = range(4)
"""Parts of a candle in half a row. HOLLOW is the inside of a body that is drawn as an outline."""

_QUARTERS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"
"""Quarter blocks by bits: upper left 1, upper right 2, lower left 4, lower right 8."""

_NARROW = {
    (EMPTY, EMPTY): " ",
    (WICK, WICK): "│",
    (EMPTY, WICK): "╷",
    (WICK, EMPTY): "╵",
    (BODY, BODY): "┃",
    (EMPTY, BODY): "╻",
    (BODY, EMPTY): "╹",
    (WICK, BODY): "╽",
    (BODY, WICK): "╿",
}

_DOTTED = {WICK: (0x03, 0x44), HOLLOW: (0x1B, 0xE4), EMPTY: (0, 0)}
"""The dots of a Braille cell in its upper and its lower half: one column of two for a wick, both for a body."""

LINE_LEVELS = "▔─▁"
"""A level line in the upper, middle and lower third of a row: characters that every terminal font has."""

VOLUME_BARS = " ▁▂▃▄▅▆▇█"
ASCII_VOLUME_BARS = " ....::||"


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by ink, in the notation of rich (`#4ebf71`, `green`); `background` is behind everything. Without colours
    weight alone shows importance.

    Inks: up, down, volume_up, volume_down, text, title, muted, grid, buy, sell, decision, line0 ... lineN, band, fill
    (the tint between the bands) and paper (text on a coloured box).
    """

    inks: Mapping[str, str]
    background: str | None = None

    def style(self, ink: str, behind: str = "") -> Style:
        """Return the style of an ink on the background, or on another ink."""
        back = self.inks.get(behind) or self.background
        return _style(self.inks.get(ink), back, ink in STRONG_INKS, not self.inks and ink in MUTED_INKS)


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

    def strips(self, palette: Palette) -> list[Strip]:
        """Return the rows, each exactly as wide as the canvas."""
        from textual.strip import Strip  # a shell, which has no need of it, draws curves too

        return [Strip(row, self.width) for row in self.segments(palette)]

    def segments(self, palette: Palette) -> list[list[Segment]]:
        """Return the rows with neighbours that look alike joined: of a blank only what is behind it is seen."""
        style = cache(palette.style)
        rows = []
        for chars, inks, behind in zip(self.chars, self.inks, self.behind, strict=True):
            segments = []
            start = 0
            ink: str | None = None
            for at, (char, own) in enumerate(zip(chars, inks, strict=True)):
                seen = None if char == " " else own
                if behind[at] != behind[start] or (seen is not None and ink not in (None, seen)):
                    segments.append(Segment("".join(chars[start:at]), style(ink or "", behind[start])))
                    start, ink = at, None
                ink = ink if seen is None else seen
            segments.append(Segment("".join(chars[start:]), style(ink or "", behind[start])))
            rows.append(segments)
        return rows


@dataclass(frozen=True, slots=True)
class CandleGlyphs:
    """The characters of one candle.

    `rows` maps the parts shown in the upper and lower half of a row to its text. `middle` is the column of the wick in
    dots, two to a cell. `closed_ends` closes the body of a hollow candle above and below.
    """

    rows: Mapping[tuple[int, int], str]
    middle: int
    closed_ends: bool

    def drawn(self, wick: tuple[int, int], body: tuple[int, int], *, hollow: bool) -> Iterator[tuple[int, str]]:
        """Yield rows with their text for a candle; the ends of its wick and body are counted in half rows."""
        top, end = body
        closed = self.closed_ends and end - top >= 2

        def part(half: int) -> int:
            if not top <= half <= end:
                return WICK if wick[0] <= half <= wick[1] else EMPTY
            return HOLLOW if hollow and not (closed and half in body) else BODY

        for row in range(wick[0] // 2, wick[1] // 2 + 1):
            yield row, self.rows[part(2 * row), part(2 * row + 1)]


@lru_cache(maxsize=32)
def candle_glyphs(step: int, ascii_only: bool) -> CandleGlyphs:
    """Return the glyphs of candles that take `step` columns, the gap to the next candle included."""
    if ascii_only:
        return _ascii(step)
    if step == 1:
        # One column has no room for an outline: a rising body is dotted, which is exact to half a row too.
        dotted = {
            (a, b): chr(0x2800 + _DOTTED[a][0] + _DOTTED[b][1])
            for a, b in product(_DOTTED, repeat=2)
            if HOLLOW in {a, b}
        }
        return CandleGlyphs(_NARROW | dotted, 0, False)
    return _quarter_blocks(step)


def _quarter_blocks(step: int) -> CandleGlyphs:
    """Build bodies of an odd number of dots with the wick in the middle, exact to half a row."""
    body = 2 * step - (1 if step < 4 else 3)
    middle = body // 2
    dots = {
        EMPTY: set[int](),
        WICK: {middle},
        BODY: set(range(body)),
        HOLLOW: {0, body - 1},
    }
    rows = {}
    for upper, lower in product(range(4), repeat=2):
        bits = [0] * step
        for shown, weight in ((upper, 1), (lower, 4)):
            for dot in dots[shown]:
                bits[dot // 2] |= weight << (dot % 2)
        rows[upper, lower] = "".join(_QUARTERS[b] for b in bits)
    return CandleGlyphs(rows, middle, True)


def _ascii(step: int) -> CandleGlyphs:
    """Build falling bodies of `#`, rising ones of `O` or, from four columns on, `[ ]`; exact to a row."""
    wide = step >= 4
    inner = step - 3 if wide else 0
    texts = {
        EMPTY: " " * step,
        WICK: f"{' ' * (inner // 2 + 1)}|".ljust(step) if wide else "|".ljust(step),
        BODY: ("#" * (inner + 2) if wide else "#").ljust(step),
        HOLLOW: (f"[{' ' * inner}]" if wide else "O").ljust(step),
    }
    rows = {(a, b): texts[max(a, b)] for a, b in product(range(4), repeat=2)}
    return CandleGlyphs(rows, 2 * (inner // 2 + 1) if wide else 0, False)
