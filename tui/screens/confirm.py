"""A question before something is done that a person answers for; it says PAPER, and only a key of its own does it."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

LEAVE = ("escape", "n", "q")


class ConfirmScreen(ModalScreen[str]):
    """Asks, over what was there. Ends with the key that was chosen, or with an empty text."""

    DEFAULT_CSS = """
    ConfirmScreen {
        align: center middle;
        background: $background 60%;
        & > Vertical {
            width: 92%;
            max-width: 66;
            height: auto;
            max-height: 90%;
            border: round $warning;
            border-title-color: $warning;
            border-title-style: bold;
            background: $background;
            padding: 1 2;
        }
        & Static { height: auto; width: 1fr; }
        & #choices { margin: 1 0 0 0; }
        &:ansi { background: ansi_default; & > Vertical { background: ansi_default; border: round ansi_yellow; } }
    }
    App.-plain ConfirmScreen > Vertical { border: ascii $warning; }
    """

    def __init__(self, title: str, text: str, choices: Sequence[tuple[str, str]]) -> None:
        """`choices` are keys with the word of what they do."""
        super().__init__()
        self._title = title
        self._text = text
        self._choices = tuple(choices)

    def compose(self) -> ComposeResult:
        """The question and its answers."""
        with Vertical() as box:
            box.border_title = Content(f"PAPER  {self._title}")
            yield Static(self._text, markup=False)
            parts: list[tuple[str, str]] = []
            for key, word in (*self._choices, ("esc", "leave it")):
                parts += [(f"{key} ", "bold $primary"), (f"{word}   ", "")]
            yield Static(Content.assemble(*parts), id="choices", markup=False)

    def on_key(self, event: events.Key) -> None:
        """A choice, or nothing at all: no other key does anything here."""
        event.stop()
        pressed = event.character or event.key
        if pressed in {key for key, _ in self._choices}:
            self.dismiss(pressed)
        elif event.key in LEAVE:
            self.dismiss("")
