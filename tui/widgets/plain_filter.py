"""The last step of painting on a terminal of plain characters: none but ASCII leaves, whoever drew it."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

MARKS = dict(zip("…▌─│┃┌┐└┘├┤┬┴┼›▾▴▸▼○●✓✗–▰▱░▁▂▃▄▅▆▇█", "~|-||+++++++++>v^>vo*vx-#.-__..--'#", strict=True))
"""The plain ones for characters that Textual or a widget draws; charts draw in plain ones by themselves."""


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
