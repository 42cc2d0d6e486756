"""A page over another screen, which ends once: of keys that come in one burst the second finds it gone."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

Result = TypeVar("Result")


def facts_width(columns: int) -> int:
    """The columns of facts in a dialog over a terminal of so many: the style sheet's, less border and margins."""
    return min(56, columns * 92 // 100 - 6)


class Dialog(ModalScreen[Result]):
    """A page over another screen. What it names as keys can be clicked, too."""

    def on_mount(self) -> None:
        """Remove older messages, which would lie over the answers."""
        self.app.clear_notifications()

    def action_leave(self) -> None:
        """End without a result."""
        self.dismiss(None)

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """End with a result; nothing happens where it has ended. Textual would end the screen below it, too."""
        return super().dismiss(result) if self in self.app.screen_stack else AwaitComplete()
