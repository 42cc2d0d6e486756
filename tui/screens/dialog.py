"""A page over another screen, which ends once: of keys that come in one burst the second finds it gone."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

Result = TypeVar("Result")


LOW = 16
"""Rows of a terminal in which a message would lie over the answers of a dialog."""


class Dialog(ModalScreen[Result]):
    """A page over another screen."""

    def on_mount(self) -> None:
        """Remove older messages from a low terminal."""
        if self.app.size.height < LOW:
            self.app.clear_notifications()

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """End with a result; nothing happens where it has ended. Textual would end the screen below it, too."""
        return super().dismiss(result) if self in self.app.screen_stack else AwaitComplete()
