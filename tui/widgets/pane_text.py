"""A pane of text that scrolls by key."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui.settings.keys import pane_bindings
from tui.widgets.text_lines import TextLines


class TextPane(TextLines):
    """Text without markup under a title."""

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("text")]

    def __init__(self, *, title: str, id: str, classes: str = "") -> None:
        super().__init__(id=id, classes=classes)
        self.border_title = Content(title)

    def show(self, text: Content, *, top: bool = False) -> None:
        """Show another text, from its top where that is asked for."""
        self.show_text(text)
        if top:
            self.scroll_home(animate=False)

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll by lines."""
        self.scroll_relative(y=lines, animate=False)

    def action_edge(self, end: bool) -> None:
        """Scroll to the start or the end."""
        self.scroll_to(y=self.max_scroll_y if end else 0, animate=False)
