"""The keys of a screen's tables: sort, and filter."""

from __future__ import annotations

from typing import ClassVar

from textual.screen import Screen

from tui.widgets.table import Table


class TableKeys(Screen[None]):
    """A screen with tables; the keys are for the one that has the focus, else for the screen's main table."""

    TABLE: ClassVar[str] = ""
    """Id of the main table; empty where there is none."""

    def _table(self) -> Table | None:
        """The table that the keys are for; where there is none the user is told."""
        table = self.focused if isinstance(self.focused, Table) else None
        if table is None and self.TABLE:
            table = self.query_one(f"#{self.TABLE}", Table)
        if table is None:
            self.notify("there is no table here", timeout=2)
        return table

    def action_sort(self) -> None:
        """Sort by the next column."""
        if table := self._table():
            self.notify(f"sorted {table.sort_next()}", markup=False, timeout=2)

    def action_filter(self) -> None:
        """Ask for a filter; an empty one shows all rows again."""
        table = self._table()
        if table is None:
            return
        from tui.screens.ask import AskScreen

        def answered(text: str | None) -> None:
            if text is not None:
                table.set_filter(text)

        hint = table.filter_example
        fields = f"words and {', '.join(table.fields)}; a minus negates, an empty line shows all"
        self.app.push_screen(
            AskScreen(
                f"Filter {table.title}", hint, text=table.filter_text, check=table.filter_of, note=lambda text: fields
            ),
            answered,
        )

    def unfilter(self) -> bool:
        """Show all rows of the table that has the focus, else of the main one; False where all are shown."""
        here = [self.focused, *(self.query(f"#{self.TABLE}") if self.TABLE else ())]
        table = next((one for one in here if isinstance(one, Table) and one.filter_text), None)
        if table is not None:
            table.set_filter("")
        return table is not None
