"""The widths of a table's columns on a screen of some width, and texts that fill them exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

LEAST = 6
"""Cells that remain of the longest text where a table has too little room even without what can be dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    title: the heading
    right: align the text to the right
    drop_order: the higher, the earlier the column is dropped for lack of space; 0 for never
    stretch: take the remaining width
    min_width: least width in cells of a column that stretches
    max_width: largest width in cells of any other column
    """

    title: str
    right: bool = False
    drop_order: int = 0
    stretch: bool = False
    min_width: int = 3
    max_width: int = 40


def column_widths(columns: Sequence[Column], natural: Sequence[int], width: int) -> list[int]:
    """A width per column, 0 for dropped ones, from the widths of their texts; one blank precedes each."""
    room = width - 1  # the cursor's mark
    widths = [
        min(natural, column.max_width) if not column.stretch else max(column.min_width, 1)
        for natural, column in zip(natural, columns, strict=True)
    ]
    for n in sorted(range(len(widths)), key=lambda n: -columns[n].drop_order):
        if sum(w + 1 for w in widths if w) - 1 <= room or not columns[n].drop_order:
            break
        widths[n] = 0
    spare = room - (sum(w + 1 for w in widths if w) - 1)
    texts = [n for n, column in enumerate(columns) if widths[n] and not column.right]
    while spare < 0 and texts and widths[widest := max(texts, key=widths.__getitem__)] > LEAST:
        widths[widest] -= 1  # a text can be cut and still be told, a figure cannot
        spare += 1
    spare -= 1  # a blank at the end, where there is room for it
    filling = [n for n, column in enumerate(columns) if column.stretch and widths[n]]
    if spare > 0 and filling:
        widths[filling[0]] += spare
    elif spare > 0:
        shown = [n for n in range(1, len(widths)) if widths[n]]
        for n in shown:  # a little air between the columns, never so much that the eye loses the row
            widths[n] += min(3, spare // len(shown))
    return widths


def fitted_text(text: str, cells: int, right: bool, more: str) -> str:
    """Pad or cut a text to exactly so many cells; `more` marks a cut."""
    length = cell_len(text)
    if length > cells:
        return set_cell_size(text, cells - 1) + more
    return " " * (cells - length) + text if right else text + " " * (cells - length)
