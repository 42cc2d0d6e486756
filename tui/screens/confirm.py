"""A question before something is done that a person answers for; it says PAPER, and only a key of its own does it."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.confirmations import Confirmation

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

    def __init__(self, confirmation: Confirmation) -> None:
        super().__init__()
        self._confirmation = confirmation

    def compose(self) -> ComposeResult:
        """The question and its answers."""
        with Vertical() as box:
            box.border_title = Content(f"PAPER  {self._confirmation.title}")
            yield Static(self._confirmation.text, markup=False)
            parts: list[tuple[str, str]] = []
            for key, action in (*self._confirmation.choices, ("esc", "leave it")):
                parts += [(f"{key} ", "bold $primary"), (f"{action}   ", "")]
            yield Static(Content.assemble(*parts), id="choices", markup=False)

    def on_key(self, event: events.Key) -> None:
        """A choice, or nothing at all: no other key does anything here."""
        event.stop()
        pressed = event.character or event.key
        if pressed in {key for key, _ in self._confirmation.choices}:
            self.dismiss(pressed)
        elif event.key in LEAVE:
            self.dismiss("")
