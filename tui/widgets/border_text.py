"""The texts in a widget's border: as many of their parts as fit, none is cut in its words. Set only where they change:
Textual draws the widget anew whenever one is set."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from textual.content import Content
from textual.widget import Widget

CORNERS = 6
"""Columns of a border that its text cannot have."""
_PARTS = re.compile(r"  |, ")
"""The end of a part."""
_WHOLE: WeakKeyDictionary[Widget, dict[str, Content]] = WeakKeyDictionary()
"""The texts of each widget by attribute, before parts are left out."""


def set_title(widget: Widget, text: str) -> None:
    """Set the text of the upper border, which is never read as markup."""
    _set(widget, "border_title", Content(text))


def set_subtitle(widget: Widget, text: str | Content) -> None:
    """Set the text of the lower border, which is never read as markup; its parts may be clickable."""
    _set(widget, "border_subtitle", Content(text) if isinstance(text, str) else text)


def fit_borders(widget: Widget) -> None:
    """Show as much of the texts as fits now."""
    for border, text in _WHOLE.get(widget, {}).items():
        _set(widget, border, text)


def _set(widget: Widget, border: str, text: Content) -> None:
    _WHOLE.setdefault(widget, {})[border] = text
    shown = _fitted(text, widget.outer_size.width - CORNERS) if widget.outer_size else text
    if (getattr(widget, border) or "") != shown.markup:
        setattr(widget, border, shown)


def _fitted(text: Content, cells: int) -> Content:
    """The first parts that fit; of a text whose first part does not, nothing."""
    if text.cell_length <= cells:
        return text
    ends = [found.start() for found in _PARTS.finditer(text.plain) if text[: found.start()].cell_length <= cells]
    return text[: max(ends, default=0)]
