"""The characters of candles, lines and volume: quarter blocks, box lines, plain ASCII."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

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

LINE_LEVELS = "▔─▁"
"""A level line in the upper, middle and lower third of a row: characters that every terminal font has."""

VOLUME_BARS = " ▁▂▃▄▅▆▇█"
ASCII_VOLUME_BARS = " ....::||"


@dataclass(frozen=True, slots=True)
class CandleGlyphs:
    """The characters of one candle.

    `rows` maps the parts shown in the upper and lower half of a row to its text. `middle` is the column of the wick in
    dots, two to a cell. `closed_ends` closes the body of a hollow candle above and below.
    """

    rows: Mapping[tuple[int, int], str]
    middle: int
    closed_ends: bool


@lru_cache(maxsize=32)
def candle_glyphs(step: int, ascii_only: bool) -> CandleGlyphs:
    """Return the glyphs of candles that take `step` columns, the gap to the next candle included."""
    if ascii_only:
        return _ascii(step)
    if step == 1:
        hollow = {(a, b): "║" for a, b in product(range(4), repeat=2) if HOLLOW in {a, b}}
        return CandleGlyphs(_NARROW | hollow, 0, False)
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
