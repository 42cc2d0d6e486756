"""The key of the symbol search, on every screen."""

from __future__ import annotations

from typing import cast

from engine.errors import PaperdeskError
from tui.keys import CHART
from tui.screens.snapshot_screen import SnapshotScreen
from tui.screens.table_keys import TableKeys
from tui.twins import report_action
from tui.watchlist import present_group


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
            group = present_group(bridge.readings.groups())
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

        screen = SymbolSearchScreen(bridge.readings, group=group, add=None if app.settings.read_only else add)
        self.app.push_screen(screen, answered)

    def group_changed(self, name: str) -> None:
        """Show what is new in a group of the watchlist, on a screen that shows one."""
