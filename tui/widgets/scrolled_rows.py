"""The number of rows of a view that scrolls, given without a layout of the screen."""

from __future__ import annotations

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.widget import Widget


def set_rows(view: ScrollView, rows: int) -> None:
    """Give a view whose height is fixed, and whose vertical scrollbar is always there, its number of rows.

    Textual lays out the whole screen with each change of it, milliseconds in which no key is answered.
    """
    size = Size(0, rows)
    if not view.container_size or view.styles.auto_dimensions:
        view.virtual_size = size
    elif size != view.virtual_size:
        view.set_reactive(Widget.virtual_size, size)
        view.vertical_scrollbar.window_virtual_size = rows
        view.scroll_y = view.validate_scroll_y(view.scroll_y)
