"""Pages of text over a screen, scrolled by key and left with escape: the log, a finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from tui.desk.desk_app import ShowsFailures
from tui.screens.dialog import Dialog
from tui.settings.keys import pane_bindings
from tui.view.state import Line
from tui.widgets.clickable import clickable_keys
from tui.widgets.screen_bars import LEVEL_INKS
from tui.widgets.text_lines import TextPane


def log_text(lines: Sequence[Line]) -> Content:
    """The log, newest first."""
    if not lines:
        return Content("Nothing has happened yet.")
    texts = (
        Content.assemble(
            (f"{line.time:%m-%d %H:%M:%S}  ", "$foreground 45%"), (line.text, LEVEL_INKS.get(line.level, ""))
        )
        for line in reversed(lines)
    )
    return Content("\n").join(texts)


def page_width(columns: int) -> int:
    """The columns of text on a page over a terminal of so many: the style sheet's, less border and margins."""
    return min(118, columns * 92 // 100) - 6


class ReadingScreen(ShowsFailures, Dialog[None]):
    """A page of text in a frame, over another screen."""

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("page")]
    # It has one layout for any number of rows; see FramedScreen.
    VERTICAL_BREAKPOINTS = []
    KEYS: ClassVar[Sequence[tuple[str, str]]] = (
        ("j down", "focused.scroll_lines(2)"),
        ("k up", "focused.scroll_lines(-2)"),
        ("y copy", "copy"),
        ("esc back", "leave"),
    )
    """Keys that the border names, and their actions."""

    def __init__(self, title: str, text: Content) -> None:
        super().__init__()
        self._title = title
        self.text = text

    def compose(self) -> ComposeResult:
        """Mount the page."""
        page = TextPane(title=self._title, id="page")
        page.border_subtitle = clickable_keys(self.KEYS, 2)
        page.show(self.text)
        yield page

    def text_to_copy(self) -> str:
        """The text of the page."""
        return self.text.plain

    def action_copy(self) -> None:
        """Copy the page."""
        self.app.copy_to_clipboard(self.text_to_copy())
        self.notify("copied", timeout=2)
