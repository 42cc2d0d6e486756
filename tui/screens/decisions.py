"""Decisions: every one that was taken, newest first, with what came of it; Enter opens its trail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType

from engine.errors import PaperdeskError
from engine.reports.documents.decisions import FollowedDecision
from tui.bridge import Snapshot, Source
from tui.decision_list import COLUMNS, row_key, rows
from tui.keys import DECISIONS, bindings
from tui.screens.frame import FramedScreen
from tui.widgets.table import Table


class DecisionsScreen(FramedScreen):
    """The table; [ and ] go to the decisions of a backtest."""

    MODE = DECISIONS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(DECISIONS)]
    PANES = ("decisions",)

    def __init__(self) -> None:
        super().__init__()
        self._sources: Sequence[Source] = ()
        self._at = 0
        self._read_from: Source | None = None
        self._decided: dict[str, FollowedDecision] = {}

    def compose_body(self) -> ComposeResult:
        """The table."""
        yield Table(COLUMNS, empty="opening the desk", ascii_only=self.desk_app.plain, id="decisions", classes="pane")

    def on_mount(self) -> None:
        """The table has the focus."""
        self.query_one(Table).border_title = "Decisions"
        self.focus_pane("decisions")

    def main_table(self) -> Table | None:
        """The table of decisions."""
        return self.query_one(Table)

    def show_body(self, view: Snapshot) -> None:
        """Read again where the journal may have grown."""
        if not view.sources:
            return
        self._sources = view.sources
        self._at = min(self._at, len(self._sources) - 1)
        if self._sources[self._at] != self._read_from:
            self._read_from = self._sources[self._at]
            self._read(self._read_from)

    @work(exclusive=True, exit_on_error=False)
    async def _read(self, source: Source) -> None:
        table = self.query_one(Table)
        try:
            found = await self.desk_app.bridge.decisions(source)
            shown = await asyncio.to_thread(rows, found)
        except PaperdeskError as error:
            table.show([], str(error))
            return
        self._decided = {row_key(one): one for one in found}
        table.show(shown, "nothing has been decided yet:\npress r to run the first cycle")
        others = f"  {self._at + 1}/{len(self._sources)}" if len(self._sources) > 1 else ""
        table.border_title = f"Decisions of {source.name}{others}"
        silent = sum(1 for one in found if one.decision.abstained)
        cut = sum(1 for one in found if one.decision.cuts)
        table.border_subtitle = f"{len(found):,} decisions, {cut:,} cut, {silent:,} abstained" if found else ""

    def action_source(self, step: int) -> None:
        """The decisions of the next run, or the one before."""
        if len(self._sources) > 1:
            self._at = (self._at + step) % len(self._sources)
            self.show_view(self._view)
        else:
            self.notify("only the desk has decided so far; a finished backtest shows here too", timeout=3)

    @on(Table.Opened)
    def _opened(self, event: Table.Opened) -> None:
        one = self._decided.get(event.key)
        if one is None or self._read_from is None:
            return
        from tui.screens.trail import TrailScreen

        self.app.push_screen(TrailScreen(self._read_from, one.decision))

    def action_open(self) -> None:
        """The trail of the decision under the cursor."""
        self.query_one(Table).action_open()
