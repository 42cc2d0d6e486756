"""The texts in a widget's border, set only where they change: Textual draws the widget anew whenever one is set."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget


def set_title(widget: Widget, text: str) -> None:
    """Set the text of the upper border, which is never read as markup."""
    if widget.border_title != (title := Content(text)).markup:
        widget.border_title = title


def set_subtitle(widget: Widget, text: str | Content) -> None:
    """Set the text of the lower border, which is never read as markup; its parts may be clickable."""
    if (widget.border_subtitle or "") != (subtitle := Content(text) if isinstance(text, str) else text).markup:
        widget.border_subtitle = subtitle
