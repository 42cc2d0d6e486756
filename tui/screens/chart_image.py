"""The chart that a model was shown, beside its reading: as pixels where the terminal and textual-image can, else as a
file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui.plain_text import printable
from tui.screens.reading import ReadingScreen
from tui.widgets.agent_panes import styled_answer


class ChartImageScreen(ReadingScreen):
    """A picture and what was read from it; y copies the path of its file."""

    KEYS = "j k scroll  y copy the path  esc back"

    def __init__(self, title: str, path: Path, reading: str) -> None:
        super().__init__(title, styled_answer(printable(reading).strip() or "No answer was taken about it."))
        self._path = path

    def compose(self) -> ComposeResult:
        """Mount the picture, or the place of its file, and the reading."""
        with Horizontal() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = self.KEYS
            if find_spec("textual_image") is not None:
                from textual_image.widget import Image

                yield Image(str(self._path), id="pixels")
            with VerticalScroll(id="reading"):
                yield Static(f"The picture is {self._path}", markup=False)
                if find_spec("textual_image") is None:
                    yield Static("It is shown here where textual-image is installed.", markup=False)
                yield Static("")
                yield Static(self.text, markup=False)

    def text_to_copy(self) -> str:
        """The path of the picture."""
        return str(self._path)
