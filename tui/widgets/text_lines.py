"""Text of any length, wrapped and drawn by lines.

Textual's own widgets of text lay out all of their screen whenever the text changes; this one wraps the lines that
changed, some with each refresh, and draws those of them that are in sight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual

from tui.settings.keys import pane_bindings
from tui.widgets.border_text import set_title

PAD = 1
"""Blank columns on the left and on the right; a scrollbar takes the one on the right."""
CHARACTERS = 1500
"""Characters that are wrapped at once, and up to a line more: few enough that no key waits long."""


class _Row(NamedTuple):
    """A row of the widget: its text, and where that begins in the whole text."""

    text: Content
    character: int
    line: int


class TextLines(ScrollView, can_focus=True):
    """Text without markup that scrolls, given in blocks. A block that is the same object as before costs nothing."""

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__(id=id, classes=classes)
        self.blocks: list[Content] = []
        self._block_lines: list[list[Content]] = []
        self._lines: list[Content] = []
        self._rows: list[_Row] = []
        """The rows of all lines that are wrapped, from the first line on."""
        self._starts: list[int] = []
        """The first row of each of these lines."""
        self._width = 0
        self._rows_noted = 0
        """The rows that Textual knows of: not each part's while the rest is wrapped, for it paints the scrollbar anew
        each time, which takes longer than to wrap it."""

    # Content

    def show_blocks(self, blocks: Sequence[Content]) -> None:
        """Show these blocks one under another."""
        known = {id(block): lines for block, lines in zip(self.blocks, self._block_lines, strict=True)}
        block_lines = [known.get(id(block)) or block.split("\n", allow_blank=True) for block in blocks]
        self.blocks, self._block_lines = list(blocks), block_lines
        before, lines = self._lines, [line for of_block in block_lines for line in of_block]
        shorter = min(len(before), len(lines))
        same = next((n for n in range(shorter) if not before[n].is_same(lines[n])), shorter)
        if same < max(len(before), len(lines)):
            # Only then: what is still to be wrapped is known by the list of all lines.
            self._lines = lines
            self._wrap_again(same)

    def first_row(self, block: int) -> int:
        """The first row of a block, by its number; of one that is not there, or not wrapped yet, that behind the
        last."""
        line = sum(len(lines) for lines in self._block_lines[:block])
        return self._starts[line] if line < len(self._starts) else len(self._rows)

    def as_text(self) -> str:
        """The text, to be copied."""
        return "\n".join(line.plain for line in self._lines)

    @property
    def wrapped(self) -> bool:
        """True once all of the text is wrapped."""
        return len(self._starts) == len(self._lines)

    @property
    def text_width(self) -> int:
        """The columns of a row of text, as the widget is laid out; 0 before that."""
        return max(0, self.container_size.width - 2 * PAD)

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """The text that is selected with the mouse, and what stands behind it where more is selected."""
        return selection.extract(self.as_text()), "\n"

    # Wrapping

    def on_resize(self) -> None:
        """Wrap all lines again where the width has changed."""
        self._fit(self.container_size.width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The rows of the text, as far as it is wrapped."""
        self._fit(width)
        return len(self._rows)

    def _fit(self, width: int) -> None:
        if (width := max(1, width - 2 * PAD)) != self._width:
            self._width = width
            self._wrap_again(0)

    def _wrap_again(self, line: int) -> None:
        """Wrap all lines from one on, and draw the rows that have changed."""
        if not self._width:
            return
        before, self._rows = self._rows, self._rows[: self._starts[line]] if line < len(self._starts) else self._rows[:]
        del self._starts[line:]
        self._wrap_some()
        self._note_rows()
        top = self.scroll_offset.y
        self._draw(row for row in range(top, top + self.size.height) if not _same(before, self._rows, row))
        self._wrap_rest(self._lines)

    def _wrap_rest(self, lines: list[Content], *, now: bool = False) -> None:
        """Wrap some of the rest with each refresh, unless there is another text by then."""
        if lines is not self._lines:
            return
        if now:
            before = len(self._rows)
            self._wrap_some()
            self._draw(range(before, len(self._rows)))
        if self.wrapped or len(self._rows) > 2 * self._rows_noted:
            self._note_rows()
        if not self.wrapped:
            self.call_after_refresh(self._wrap_rest, lines, now=True)

    def _wrap_some(self) -> None:
        characters = 0
        while len(self._starts) < len(self._lines) and characters < CHARACTERS:
            number = len(self._starts)
            line = self._lines[number]
            self._starts.append(len(self._rows))
            begins = 0
            for text in line.wrap(self._width):
                begins = max(begins, line.plain.find(text.plain, begins))  # blanks at a break are in no row
                self._rows.append(_Row(text, begins, number))
                begins += len(text)
            characters += len(line)

    def _note_rows(self) -> None:
        self._rows_noted = len(self._rows)
        self._set_rows(self._rows_noted)

    def _set_rows(self, rows: int) -> None:
        """Note the number of rows, with a layout of the screen."""
        self.virtual_size = Size(0, rows)

    # Drawing

    def _draw(self, rows: Iterable[int]) -> None:
        """Draw those of some rows that are in sight."""
        top, (width, height) = self.scroll_offset.y, self.size
        if regions := [Region(0, row - top, width, 1) for row in rows if top <= row < top + height]:
            self.refresh(*regions)

    def selection_updated(self, selection: Selection | None) -> None:
        """Draw what is selected."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """A row of text, or a blank one behind the last."""
        width, style = self.scrollable_content_region.width, self.visual_style
        if (number := y + self.scroll_offset.y) >= len(self._rows):
            return Strip.blank(width, style.rich_style)
        row = self._rows[number]
        text = row.text
        if (selection := self.text_selection) is not None and (span := selection.get_span(row.line)) is not None:
            start, end = (max(0, at - row.character) if at >= 0 else len(text) for at in span)
            text = text.stylize(Style.from_styles(self.screen.get_component_styles("screen--selection")), start, end)
        # A row that is too wide all the same, as one of a wide character in a column, is cut.
        shown = Visual.to_strips(self, text, self._width, 1, style, apply_selection=False)
        pad = Strip.blank(PAD, style.rich_style)
        strip = Strip.join([pad, *(one.apply_offsets(row.character, row.line) for one in shown)])
        return strip.adjust_cell_length(width, style.rich_style)


def _same(one: Sequence[_Row], other: Sequence[_Row], number: int) -> bool:
    """True where both have the same row, or none, at a place."""
    if number >= len(one) or number >= len(other):
        return number >= len(one) and number >= len(other)
    return one[number].text.is_same(other[number].text)


class TextPane(TextLines):
    """Text without markup under a title."""

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("text")]

    def __init__(self, *, title: str, id: str, classes: str = "") -> None:
        super().__init__(id=id, classes=classes)
        set_title(self, title)

    def show(self, text: Content, *, top: bool = False) -> None:
        """Show another text, from its top where that is asked for; nothing else happens where it is shown already."""
        if len(self.blocks) != 1 or not self.blocks[0].is_same(text):
            self.show_blocks([text])
        if top:
            self.scroll_home(animate=False)

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll by lines."""
        self.scroll_relative(y=lines, animate=False)

    def action_edge(self, end: bool) -> None:
        """Scroll to the start or the end."""
        self.scroll_to(y=self.max_scroll_y if end else 0, animate=False)
