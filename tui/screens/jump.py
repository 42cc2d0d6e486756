"""Jump mode: a letter over every pane of a screen, which focuses it."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.geometry import Region
from textual.widgets import Static

from tui.screens.dialog import Dialog

LETTERS = ascii_lowercase


class JumpScreen(Dialog[str]):
    """Letters over another screen. Ends with the name of the pane that was chosen, with an empty text by any other
    key."""

    AUTO_FOCUS: ClassVar[str] = ""

    def __init__(self, panes: Mapping[str, Region]) -> None:
        """`panes` are places on the screen by the names of panes: one row each, which the label covers."""
        super().__init__()
        self._panes = dict(zip(LETTERS, panes.items(), strict=False))

    def compose(self) -> ComposeResult:
        """Mount a label in the corner of every pane."""
        for letter, (name, place) in self._panes.items():
            label = Static(f" {letter} {name} ", classes="jump", markup=False)
            label.styles.offset = place.offset
            label.styles.width = max(len(name) + 4, place.width)
            yield label

    def on_key(self, event: events.Key) -> None:
        """Choose a pane, or leave."""
        event.stop()
        name, _ = self._panes.get(event.character or "", ("", None))
        self.dismiss(name)
