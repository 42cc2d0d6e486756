"""The chart that a model was shown, beside its reading: as pixels where the terminal and textual-image can, else as a
file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.keys import pane_bindings
from tui.plain_text import printable
from tui.widgets.agent_panes import styled_answer


class ChartImageScreen(ModalScreen[None]):
    """A picture and what was read from it."""

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("page")]

    def __init__(self, title: str, path: Path, reading: str) -> None:
        super().__init__()
        self._title, self._path, self._reading = title, path, printable(reading).strip()

    def compose(self) -> ComposeResult:
        """Mount the picture, or the place of its file, and the reading."""
        with Horizontal() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = "esc back"
            if find_spec("textual_image") is not None:
                from textual_image.widget import Image

                yield Image(str(self._path), id="pixels")
            with VerticalScroll(id="reading"):
                yield Static(f"The picture is {self._path}", markup=False)
                if find_spec("textual_image") is None:
                    yield Static("It is shown here where textual-image is installed.", markup=False)
                yield Static("")
                yield Static(styled_answer(self._reading or "No answer was taken about it."), markup=False)

    def action_close(self) -> None:
        """Go back."""
        self.dismiss()

    def action_copy(self) -> None:
        """Copy the path."""
        self.app.copy_to_clipboard(str(self._path))
        self.notify("copied", timeout=2)

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll the reading by lines."""
        self.query_one("#reading", VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll the reading by pages."""
        reading = self.query_one("#reading", VerticalScroll)
        reading.scroll_relative(y=pages * reading.size.height, animate=False)

    def action_edge(self, end: bool) -> None:
        """Scroll to the start or the end of the reading."""
        reading = self.query_one("#reading", VerticalScroll)
        reading.scroll_to(y=reading.max_scroll_y if end else 0, animate=False)
