"""The number of rows of a view that scrolls, given without a layout of the screen where that would change nothing."""

from __future__ import annotations

from textual.css.scalar import Unit
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.widget import Widget


def set_rows(view: ScrollView, rows: int) -> None:
    """Give a view its number of rows, which the scrollbar and the last place to scroll to follow from.

    Textual lays out the whole screen with each change, milliseconds in which no key is answered; that is needed only
    where the view is as high as its rows, or where its scrollbar comes or goes.
    """
    before, size = view.virtual_size, Size(0, rows)
    if size == before:
        return
    has_bar = view.styles.overflow_y == "scroll" or rows > view.container_size.height
    grows = view.styles.auto_dimensions and max(rows, before.height) > _least_rows(view)
    if grows or has_bar is not view.show_vertical_scrollbar:
        view.virtual_size = size
        return
    view.set_reactive(Widget.virtual_size, size)
    if has_bar:
        view.vertical_scrollbar.window_virtual_size = rows
        view.scroll_y = view.validate_scroll_y(view.scroll_y)


def _least_rows(view: ScrollView) -> int:
    """The rows that a view has room for even where it has fewer."""
    least = view.styles.min_height
    return int(least.value) - view.styles.gutter.height if least is not None and least.unit is Unit.CELLS else 0
