"""Something to read over the screen at hand: the log, a prompt, a trail; scrolled by key, left with escape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.state import Line

_LEVELS = {"warning": "$warning", "error": "$error-lighten-1", "decision": "bold", "trade": "$primary"}


def log_text(lines: Sequence[Line]) -> Content:
    """The log, newest first."""
    if not lines:
        return Content("Nothing has happened yet: press r on the desk to run the first cycle.")
    said = [
        Content.assemble(
            (f"{line.time:%Y-%m-%d %H:%M:%S}  ", "$foreground 45%"), (line.text, _LEVELS.get(line.level, ""))
        )
        for line in reversed(lines)
    ]
    return Content("\n").join(said)


class ReadingScreen(ModalScreen[None]):
    """A page of text in a frame, over what was there."""

    DEFAULT_CSS = """
    ReadingScreen {
        align: center middle;
        background: $background 60%;
        & > VerticalScroll {
            width: 92%;
            max-width: 118;
            height: 90%;
            border: round $primary 70%;
            border-title-color: $primary;
            border-subtitle-color: $foreground 50%;
            background: $background;
            padding: 0 2;
            scrollbar-size-vertical: 1;
        }
        & Static { height: auto; width: 1fr; }
        &:ansi { background: ansi_default; & > VerticalScroll { background: ansi_default; } }
    }
    App.-plain ReadingScreen > VerticalScroll { border: ascii $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Close", show=False),
        Binding("j,down", "scroll_lines(2)", "Down", show=False),
        Binding("k,up", "scroll_lines(-2)", "Up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("g,home", "edge(False)", "Top", show=False),
        Binding("G,upper_g,end", "edge(True)", "End", show=False),
        Binding("y", "copy", "Copy", show=False),
        Binding("f8", "screenshot", "Screenshot", show=False),
    ]
    KEYS: ClassVar[str] = "j k scroll  y copy  esc back"

    def __init__(self, title: str, text: Content) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """The page."""
        with VerticalScroll() as page:
            page.border_title = Content(self._title)
            page.border_subtitle = self.KEYS
            yield Static(self._text, markup=False)

    def write(self, text: Content) -> None:
        """Another text on the same page."""
        self._text = text
        self.query_one(Static).update(text)

    def action_close(self) -> None:
        """Back to what was there."""
        self.dismiss(None)

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll a little."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll a page."""
        page = self.query_one(VerticalScroll)
        page.scroll_relative(y=pages * max(1, page.size.height - 2), animate=False)

    def action_edge(self, end: bool) -> None:
        """The top or the end."""
        page = self.query_one(VerticalScroll)
        if end:
            page.scroll_end(animate=False)
        else:
            page.scroll_home(animate=False)

    def action_copy(self) -> None:
        """Copy the page."""
        self.app.copy_to_clipboard(self._text.plain)
        self.notify("copied", timeout=2)

    def action_screenshot(self) -> None:
        """Save a picture of the screen."""
        from tui.app import PaperdeskApp

        if isinstance(self.app, PaperdeskApp):
            self.app.save_picture()
