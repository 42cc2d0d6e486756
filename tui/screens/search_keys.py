"""The key of the symbol search, on every screen."""

from __future__ import annotations

from typing import ClassVar, cast

from textual.screen import Screen

from engine.errors import PaperdeskError
from tui.desk.twins import report_action
from tui.screens.snapshot_screen import SnapshotScreen
from tui.settings.keys import CHART
from tui.view.watchlist import present_group
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


class SearchKeys(TableKeys, SnapshotScreen):
    """A screen from which a symbol is searched; it is shown here where any symbol can be, else on the Chart screen."""

    SHOWS_ANY_SYMBOL = False
    """True where `show_symbol` takes symbols that the desk does not trade."""

    def show_symbol(self, symbol: str) -> None:
        """Show a symbol, on a screen that shows one at a time."""

    def action_search(self) -> None:
        """Search a symbol, and show it."""
        from tui.screens.symbol_search import SymbolSearchScreen

        app = self.desk_app
        bridge = app.bridge
        try:
            group = present_group(bridge.groups())
        except PaperdeskError as error:
            self.notify(str(error), markup=False, severity="error", timeout=6)
            return

        def add(symbol: str) -> str:
            try:
                bridge.change_group(group, [symbol], [])
            except PaperdeskError as error:
                return str(error)
            report_action(self.app, f"watchlist {group} is changed", "watchlist", "add", group, symbol)
            self.group_changed(group)
            return ""

        async def answered(symbol: str | None) -> None:
            if not symbol:
                return
            if not self.SHOWS_ANY_SYMBOL:
                await self.app.switch_mode(CHART)
            cast("SearchKeys", self.app.screen_stack[0]).show_symbol(symbol)

        screen = SymbolSearchScreen(bridge.present, group=group, add=None if app.settings.read_only else add)
        self.app.push_screen(screen, answered)

    def group_changed(self, name: str) -> None:
        """Show what is new in a group of the watchlist, on a screen that shows one."""
