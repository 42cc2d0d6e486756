"""A table that draws only the visible rows: aligned figures, a cursor, sorting, and columns that are dropped on a
narrow screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from engine.reports.table import Cell, Column
from tui.settings.keys import pane_bindings
from tui.text.plain_text import wrapped
from tui.view.table_filter import Field, TableFilter, parse
from tui.widgets.border_text import set_title

__all__ = ["Cell", "Column", "Row", "Table", "rows_of"]

NO_FILTER = TableFilter("", ())
_MEASURED = 500
"""Rows that the column widths are computed from; longer text in later rows is cut."""
_INKS = ("text", "up", "down", "muted", "head", "strong", "warn", "mark")


@dataclass(frozen=True, slots=True)
class Row:
    """A row; `key` identifies it across updates, `more` is text that a filter's words look at and no column shows."""

    key: str
    cells: tuple[Cell, ...] = ()
    more: str = ""


def rows_of(columns: Sequence[Column], items: Iterable[Any], key: Callable[[Any], str] | None = None) -> list[Row]:
    """A row per item, by its key or its place."""
    return [
        Row(str(place) if key is None else key(item), tuple(column.cell(item) for column in columns))
        for place, item in enumerate(items)
    ]


class Table(ScrollView, can_focus=True):
    """Rows under a fixed heading. The cursor follows its row, by key, when rows change. Only rows are drawn again whose
    cells changed, unless a column becomes wider."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"table--{ink}" for ink in (*_INKS, "cursor")}
    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("table")]

    class RowMessage(Message):
        """A message about a row, by its key."""

        def __init__(self, table: Table, key: str) -> None:
            super().__init__()
            self.table, self.key = table, key

        @property
        def control(self) -> Table:
            """The table that sent the message."""
            return self.table

    class Moved(RowMessage):
        """A move of the cursor to another row."""

    class Opened(RowMessage):
        """The choice of a row."""

    def __init__(self, columns: Sequence[Column], *, title: str = "", empty: str = "", id: str, classes: str) -> None:
        super().__init__(id=id, classes=classes)
        self.cursor_key = ""
        self.rows: tuple[Row, ...] = ()
        self._columns = tuple(columns)
        self._given: tuple[Row, ...] = ()
        self._empty = empty
        self._sorted_by: int | None = None
        self._downward = False
        self._filter = NO_FILTER
        self._keeps = True
        self._natural: list[int] = []
        self._fitted: tuple[int, list[int]] | None = None
        # What Textual finds out anew for every line: kept until the styles change.
        self._styles: dict[tuple[str, bool], Style] = {}
        self._inner: tuple[object, int] = (None, 0)
        self._measure()
        self.entitle(title)

    # Content

    def show(self, rows: Sequence[Row], empty: str | None = None) -> None:
        """Show these rows; nothing is drawn without a change."""
        given = tuple(rows)
        if empty is not None:
            self.say_empty(empty)
        if given == self._given and (given or not self.cursor_key):
            return
        same = [row.key for row in given] == [row.key for row in self._given]
        self._given = given
        self._measure(keep=same and self._keeps)
        self._arrange()

    def keep_widths(self, keep: bool) -> None:
        """Set whether columns of figures keep their width while only figures change, as those do that tick. Without,
        the widths are of the rows alone, whatever was shown before."""
        if keep != self._keeps:
            self._keeps = keep
            self._measure()
            if self._fitted is None:
                self.refresh()

    def say_empty(self, text: str) -> None:
        """Set the text of the table while it has no row."""
        if text != self._empty:
            self._empty = text
            self.refresh()

    @property
    def empty_text(self) -> str:
        """The text of the table while it shows no row."""
        return f"no row matches /{self.filter_text}:\nesc clears it" if self._given else self._empty

    @property
    def columns(self) -> Sequence[Column]:
        """The columns, also those that are dropped on a narrow screen."""
        return self._columns

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Set other columns, and remove the rows."""
        if [column.title for column in columns] != [column.title for column in self._columns]:
            self._columns, self._sorted_by = tuple(columns), None
            self._given = self.rows = ()
            try:
                self._filter = self.filter_of(self._filter.text)
            except ValueError:  # it names a column that is gone
                self._filter = NO_FILTER
            self._measure()
            self.refresh()

    def point_at(self, key: str) -> None:
        """Put the cursor on a row by its key, without a message."""
        if key != self.cursor_key and any(row.key == key for row in self.rows):
            self._point(key)
            self.follow_cursor()

    def sort_next(self) -> str:
        """Sort by the next column, rising first, then falling, then as given; return a description."""
        if self._sorted_by is not None and not self._downward:
            self._downward = True
        else:
            column = 0 if self._sorted_by is None else self._sorted_by + 1
            self._sorted_by, self._downward = column if column < len(self._columns) else None, False
        self._arrange()
        self.refresh()  # the arrow in the heading, too
        if self._sorted_by is None:
            return "as they come"
        return f"by {self._columns[self._sorted_by].title.lower()}, {'falling' if self._downward else 'rising'}"

    def entitle(self, title: str) -> None:
        """Set the title; the filter in force stands behind it."""
        self.title = title
        found = f"  /{self._filter.text}  {len(self.rows):,} of {len(self._given):,}" if self.filter_text else ""
        set_title(self, title + found)

    @property
    def filter_text(self) -> str:
        """The filter in force, as it was typed; empty for none."""
        return self._filter.text

    @property
    def fields(self) -> list[str]:
        """The names of the columns in a filter."""
        return [field.name for field in self._fields() if field.name]

    def _fields(self) -> list[Field]:
        return [Field(column.title, column.right) for column in self._columns]

    @property
    def filter_example(self) -> str:
        """A filter by this table's own columns, and a text of its first row."""
        named = [(n, field) for n, field in enumerate(self._fields()) if field.name]
        texts = ((field.name, self.rows[0].cells[n].text) for n, field in named if not field.figures and self.rows)
        words = [f"{name}:{text}" for name, text in texts if text and text.replace("-", "").isalnum()]
        return "  ".join((*words[:1], *[f"{field.name}:>1" for _, field in named if field.figures][:1]))

    def filter_of(self, text: str) -> TableFilter:
        """The filter that a text means for these columns. Raises ValueError with one line for the user."""
        return parse(text, self._fields())

    def set_filter(self, text: str) -> None:
        """Show only the rows that fit, all with an empty text. Raises as `filter_of`; then nothing changes."""
        self._filter = self.filter_of(text)
        before = self.cursor_key
        self._arrange()
        self.refresh()  # what is said where no row fits, too
        self.follow_cursor()
        if self.cursor_key != before:
            self.post_message(self.Moved(self, self.cursor_key))

    def as_text(self) -> str:
        """Return the table as tab-separated lines."""
        lines = ["\t".join(column.title for column in self._columns)]
        return "\n".join([*lines, *("\t".join(cell.text for cell in row.cells) for row in self.rows)])

    # Keys

    def action_move(self, rows: int) -> None:
        """Move the cursor down or up."""
        self._go(self._place() + rows)

    def action_edge(self, row: int) -> None:
        """Move the cursor to the first or the last row."""
        self._go(row if row >= 0 else len(self.rows) - 1)

    def action_page(self, pages: int) -> None:
        """Move the cursor by a page."""
        self._go(self._place() + pages * max(1, self.size.height - 2))

    def action_open(self) -> None:
        """Choose the row under the cursor."""
        if self.cursor_key:
            self.post_message(self.Opened(self, self.cursor_key))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked row; a click on the row under the cursor chooses it."""
        point = event.get_content_offset(self)
        # The heading stays while the rows under it scroll: a click on it is none on the row behind it.
        row = -1 if point is None or point.y < 1 else point.y - 1 + self.scroll_offset.y
        if 0 <= row < len(self.rows):
            if self.rows[row].key == self.cursor_key:
                self.action_open()
            self._go(row)

    # Layout and drawing

    def _place(self) -> int:
        return next((n for n, row in enumerate(self.rows) if row.key == self.cursor_key), 0)

    def _go(self, row: int) -> None:
        if not self.rows:
            return
        key = self.rows[max(0, min(len(self.rows) - 1, row))].key
        if key != self.cursor_key:
            self._point(key)
            self.post_message(self.Moved(self, key))
        self.follow_cursor()

    def _point(self, key: str) -> None:
        """Move the cursor, and draw the two rows again."""
        before, self.cursor_key = self.cursor_key, key
        self._draw([n for n, row in enumerate(self.rows) if row.key in (before, key)])

    def _draw(self, rows: Sequence[int]) -> None:
        """Draw some rows again, by their numbers: those in sight, or all where nothing is laid out yet."""
        top, (width, height) = self.scroll_offset.y - 1, self.size
        if not height:
            self.refresh()
        elif lines := [Region(0, row - top, width, 1) for row in rows if 0 < row - top < height]:
            self.refresh(*lines)

    def follow_cursor(self) -> None:
        """Scroll to the row under the cursor, wherever it has gone."""
        place, shown = self._place(), max(1, self.size.height - 1)
        top = self.scroll_offset.y
        # With force: the scrollbar may come with the next layout.
        if place < top:
            self.scroll_to(y=place, animate=False, force=True)
        elif place >= top + shown:
            self.scroll_to(y=place - shown + 1, animate=False, force=True)

    def _measure(self, *, keep: bool = False) -> None:
        """Measure the columns; with `keep` none of figures becomes narrower, as one that ticks would have all drawn
        anew."""
        natural = [
            max(len(column.title), *(cell_len(row.cells[n].text) for row in self._given[:_MEASURED]), 0) + column.right
            for n, column in enumerate(self._columns)
        ]
        if keep:
            natural = [
                max(now, before) if column.right else now
                for column, now, before in zip(self._columns, natural, self._natural, strict=True)
            ]
        if natural != self._natural:
            self._natural, self._fitted = natural, None

    def _arrange(self) -> None:
        fits, column = self._filter.fits, self._sorted_by
        rows = tuple(row for row in self._given if fits((*(cell.text for cell in row.cells), row.more)))
        if column is not None:
            known = [row for row in rows if row.cells[column].value is not None]
            rest = [row for row in rows if row.cells[column].value is None]
            rows = (*sorted(known, key=lambda row: row.cells[column].value, reverse=self._downward), *rest)
        before, self.rows = self.rows, rows
        if not any(row.key == self.cursor_key for row in rows):
            self.cursor_key = rows[0].key if rows else ""
        self.entitle(self.title)
        self.virtual_size = Size(0, len(rows) + 1)
        if len(before) != len(rows) or self._fitted is None:
            self.refresh()
        else:
            self._draw([n for n, (old, new) in enumerate(zip(before, rows, strict=True)) if old != new])

    def on_resize(self) -> None:
        """Fit the columns again, and keep the cursor visible."""
        self._fitted = None
        self.call_after_refresh(self.follow_cursor)

    def _widths(self, width: int) -> list[int]:
        """Return a width per column, 0 for dropped ones; one blank precedes each."""
        if self._fitted is not None and self._fitted[0] == width:
            return self._fitted[1]
        widths = column_widths(self._columns, self._natural, width)
        self._fitted = (width, widths)
        return widths

    def notify_style_update(self) -> None:
        """Take the styles again after a change of theme, class or focus."""
        self._styles.clear()
        self._inner = (None, 0)
        super().notify_style_update()

    def _inner_width(self) -> int:
        """The width without border and scrollbar."""
        form = (self.outer_size, self.show_vertical_scrollbar)
        if self._inner[0] != form:
            self._inner = (form, self.scrollable_content_region.width)
        return self._inner[1]

    def render_line(self, y: int) -> Strip:
        """Return the heading, a row, or the text of an empty table."""
        width, base = self._inner_width(), self._style()
        if width < 1:
            return Strip.blank(0, base)
        if y == 0:
            return self._heading(width)
        row = y - 1 + self.scroll_offset.y
        if row < len(self.rows):
            return self._row_strip(self.rows[row], width)
        if not self.rows and self.empty_text:
            lines = wrapped(self.empty_text, width - 1)
            first = max(1, (self.size.height - len(lines)) // 2)
            if first <= y < first + len(lines):
                text = set_cell_size(f" {lines[y - first]}", width)
                return Strip([Segment(text, self._style("muted"))], width)
        return Strip.blank(width, base)

    def _heading(self, width: int) -> Strip:
        arrow = "▾▴"[not self._downward]
        parts: list[str] = []
        for n, (column, cells) in enumerate(zip(self._columns, self._widths(width), strict=True)):
            if cells:
                title = column.title + (arrow if n == self._sorted_by else "")
                parts.append(fitted_text(title, cells, column.right))
        return Strip([Segment(set_cell_size(f" {' '.join(parts)}", width), self._style("head"))], width)

    def _row_strip(self, row: Row, width: int) -> Strip:
        here = row.key == self.cursor_key
        style = self._style(here=here)
        segments = [Segment("›" if here else " ", self._style("mark", here=here))]
        for n, (column, cells) in enumerate(zip(self._columns, self._widths(width), strict=True)):
            if not cells:
                continue
            if len(segments) > 1:
                segments.append(Segment(" ", style))
            cell = row.cells[n]
            whole = cell_len(cell.text) <= cells or not cell.brief
            text = fitted_text(cell.text if whole else cell.brief, cells, column.right)
            segments.append(Segment(text, self._style(cell.ink, here=here)))
        return Strip(segments).adjust_cell_length(width, style)

    def _style(self, ink: str = "", *, here: bool = False) -> Style:
        """The style of an ink, on the row under the cursor with `here`; without an ink the one behind all of them."""
        found = self._styles.get((ink, here))
        if found is None:
            found = self.rich_style
            if here:
                under = self.get_component_rich_style("table--cursor")
                found += Style(bgcolor=under.bgcolor, bold=under.bold, reverse=under.reverse)
            if ink:
                own = self.get_component_rich_style(f"table--{ink}")
                # Each ink of a reversed row would be another background.
                found += Style(color=None if found.reverse else own.color, bold=own.bold)
            self._styles[ink, here] = found
        return found


LEAST = 6
"""Cells that remain of the longest text where a table has too little room even without what can be dropped."""


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


def fitted_text(text: str, cells: int, right: bool) -> str:
    """Pad or cut a text to exactly so many cells, between words where that leaves half of it."""
    length = cell_len(text)
    if length > cells:
        kept = set_cell_size(text, cells - 1)
        words = kept if text[len(kept)] == " " else kept.rpartition(" ")[0]
        return set_cell_size((words if 2 * cell_len(words) >= cells else kept) + "…", cells)
    return " " * (cells - length) + text if right else text + " " * (cells - length)
