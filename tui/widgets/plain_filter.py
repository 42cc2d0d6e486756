"""The last step of painting on a terminal of plain characters: none but ASCII leaves, whoever drew it."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter
from textual.scrollbar import ScrollBar, ScrollBarRender

MARKS = {"…": "~", "▌": "|", "─": "-", "┃": "|", **dict(zip("▁▂▃▄▅▆▇█", "__..--''", strict=True))}
"""Characters that Textual draws by itself, the mark of a cut title and the border of a notification, and those of
sparklines."""


class PlainCharacters(LineFilter):
    """Other characters as ASCII ones that take as many cells."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments with their text replaced; the control codes among them stay."""
        return [
            segment if segment.control or segment.text.isascii() else Segment(plain(segment.text), segment.style)
            for segment in segments
        ]


def plain(text: str) -> str:
    """A text of as many cells in ASCII; what has no likeness becomes question marks."""
    return "".join(one if one.isascii() else MARKS.get(one, "?" * cell_len(one)) for one in text)


class PlainScrollBar(ScrollBarRender):
    """A scroll bar whose ends fall on whole cells."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


def use_plain_scrollbars() -> None:
    """Have every scroll bar of this process drawn so."""
    ScrollBar.renderer = PlainScrollBar
