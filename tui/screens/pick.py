"""A line to type over a list of what fits it, over another screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from tui.desk.desk_app import ShowsFailures
from tui.screens.dialog import Dialog, Result
from tui.widgets.table import Column, Table


class PickScreen(ShowsFailures, Dialog[Result]):
    """Ends with None on escape. A subclass sets `COLUMNS` and `EMPTY`, fills the list and says what its keys do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("up", "move(-1)", "Up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
    ]
    COLUMNS: ClassVar[tuple[Column, ...]]
    EMPTY: ClassVar[str]

    def compose(self) -> ComposeResult:
        """Mount the line, the list and the keys."""
        with Vertical():
            yield Input(compact=True)
            table = Table(self.COLUMNS, empty=self.EMPTY, id="found", classes="")
            table.can_focus = False
            yield table
            yield Static("", id="complaint", markup=False)

    def action_move(self, rows: int) -> None:
        """Move the cursor down or up."""
        self.query_one(Table).action_move(rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by a page."""
        self.query_one(Table).action_page(pages)
