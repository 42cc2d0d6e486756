"""Jump mode: a letter over every pane of a screen, which focuses it; so does a click."""

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
    """Letters over another screen. Ends with the name of the pane that was chosen, with an empty text by any other key
    or a click beside the panes."""

    AUTO_FOCUS: ClassVar[str] = ""

    def __init__(self, panes: Mapping[str, Region]) -> None:
        """`panes` are places on the screen by the names of panes: one row each, which the label covers."""
        super().__init__()
        self._panes = dict(zip(LETTERS, panes.items(), strict=False))

    def compose(self) -> ComposeResult:
        """Mount a label in the corner of every pane."""
        for letter, (name, place) in self._panes.items():
            label = Static(f" {letter} {name} ", name=name, classes="jump", markup=False)
            label.styles.offset = place.offset
            label.styles.width = max(len(name) + 4, place.width)
            yield label

    def on_click(self, event: events.Click) -> None:
        """Choose the pane whose label is clicked, or that is clicked itself; leave by a click beside them."""
        label, _ = self.get_widget_at(*event.screen_offset)
        under, _ = self.app.screen_stack[-2].get_widget_at(*event.screen_offset)
        clicked = {node.id for node in under.ancestors_with_self}
        self.dismiss(label.name or next((name for name, _ in self._panes.values() if name in clicked), ""))

    def on_key(self, event: events.Key) -> None:
        """Choose a pane, or leave."""
        event.stop()
        name, _ = self._panes.get(event.character or "", ("", None))
        self.dismiss(name)
