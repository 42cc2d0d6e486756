"""A text of any length: its first lines at once, the rest some with each refresh."""

from __future__ import annotations

from itertools import accumulate, pairwise

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

FIRST, LINES = 20, 50
"""Lines of the first slice, which is painted with all of its screen, and of each other one: few enough that no key
waits long while they are wrapped."""
CHARACTERS = 1000
"""Characters of the first slice at most, unless its first line is longer."""


class LongText(Vertical):
    """Text without markup, in a widget for each slice of it: Textual wraps and draws a widget as a whole, also the part
    that is out of sight."""

    def __init__(self, text: Content, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.styles.height = "auto"
        self._slices = _slices(text)

    def compose(self) -> ComposeResult:
        """Mount the first lines."""
        yield Static(self._slices[0], markup=False)

    def on_mount(self) -> None:
        """Show the rest once these are painted."""
        self.call_after_refresh(self._show, 1, self._slices)

    def show(self, text: Content) -> None:
        """Show another text."""
        self._slices = _slices(text)
        self._show(0, self._slices)

    def _show(self, number: int, slices: list[Content]) -> None:
        """Show a slice, and the next one once it is painted; of a text that was replaced nothing more."""
        if slices is not self._slices or not self.is_attached:
            return
        shown = list(self.query(Static))
        if number >= len(slices):
            for surplus in shown[number:]:
                surplus.remove()
            return
        if number < len(shown):
            shown[number].update(slices[number])
        else:
            self.mount(Static(slices[number], markup=False))
        self.call_after_refresh(self._show, number + 1, slices)


def _slices(text: Content) -> list[Content]:
    lines = text.split("\n", allow_blank=True)
    first = max(1, sum(end <= CHARACTERS for end in accumulate(len(line) for line in lines[:FIRST])))
    cuts = [0, *range(first, len(lines), LINES), len(lines)]
    return [Content("\n").join(lines[start:end]) for start, end in pairwise(cuts)] or [text]
