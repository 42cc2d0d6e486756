"""The menu of what can be done on a screen now: each key with its meaning; the one that is chosen is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from tui.screens.dialog import Dialog
from tui.settings.keys import Key, pane_bindings
from tui.widgets.border_text import set_subtitle
from tui.widgets.clickable import clickable_keys
from tui.widgets.table import Column, Table, rows_of

ENTRIES = (
    Column("KEY", "shown", ink="strong", max_width=10),
    Column("WHAT IT DOES HERE", "meaning", stretch=True, min_width=20),
)


class MenuScreen(Dialog[str]):
    """The menu; ends with the action that was chosen, with None where it is left."""

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("menu")]

    def __init__(self, keys: Sequence[Key]) -> None:
        """`keys` are those that work, in the order in which they are wanted."""
        super().__init__()
        self._actions = {key.id: key.action for key in keys}
        self._keys = keys

    def compose(self) -> ComposeResult:
        """Mount the table."""
        table = Table(ENTRIES, title="Menu", id="menu", classes="pane")
        table.show(rows_of(ENTRIES, self._keys, lambda key: str(key.id)))
        set_subtitle(table, clickable_keys([("enter does it", "choose"), ("esc back", "leave")], 2))
        yield table

    @on(Table.Opened)
    def _opened(self, event: Table.Opened) -> None:
        self.dismiss(self._actions[event.key])

    def action_choose(self) -> None:
        """Choose the entry under the cursor."""
        self.query_one(Table).action_open()
