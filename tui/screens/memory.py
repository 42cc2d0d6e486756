"""Memory: what is remembered at the moment that is shown, by layer and importance, and the life-line of one memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from engine.errors import PaperdeskError
from tui.keys import MEMORY, bindings
from tui.screens.ask import AskScreen
from tui.screens.frame import FramedScreen
from tui.snapshot import Snapshot
from tui.widgets import memory_text
from tui.widgets.pane_text import TextPane
from tui.widgets.plot import CurvePlot, PlotData
from tui.widgets.table import Table

Document = Mapping[str, Any]


class MemoryScreen(FramedScreen):
    """The memories on the left; the chosen one's importance over time, its changes and its text on the right."""

    MODE = MEMORY
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(MEMORY)]
    TABLE = "memories"
    PANES = ("memories", "life", "recorded")

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[object, ...] = ()
        self._document: Document = {}
        self._words = ""

    def compose_body(self) -> ComposeResult:
        """Mount the table, the curve and the text."""
        with Horizontal(id="remembered"):
            yield Table(memory_text.MEMORIES, title="Memories", empty="reading", id="memories", classes="pane")
            with Vertical(id="one-memory", classes="column"):
                yield CurvePlot(id="life", classes="pane")
                yield TextPane(title="Memory", id="recorded", classes="pane")

    def on_mount(self) -> None:
        """Focus the memories."""
        self.query_one("#life").border_title = "Importance"
        self.focus_pane("memories")

    def show_body(self, view: Snapshot) -> None:
        """Read again at another place, and after a run."""
        if view.services is None or not view.sources:
            return
        session = None if view.place is None else view.place.session
        shown = (view.sources[0].run, session, view.sources[0].version)
        if shown != self._shown:
            self._shown = shown
            self._read(view.sources[0].run, session)

    @work(exclusive=True, exit_on_error=False)
    async def _read(self, run: str | None, session: date | None) -> None:
        services, table = self._view.services, self.query_one("#memories", Table)
        assert services is not None
        try:
            self._document = await asyncio.to_thread(services.memories, run, session)
        except PaperdeskError as error:
            self._document = {}
            table.show([], str(error))
            return
        self._show_list()

    def _show_list(self) -> None:
        if not self._document:
            return
        table = self.query_one("#memories", Table)
        every = self._document["memories"]
        words = self._words.casefold().split()
        fitting = [one for one in every if all(word in memory_text.searched(one) for word in words)]
        table.show(memory_text.rows(fitting), "nothing fits" if words else "nothing is remembered yet")
        layers = Counter(one["layer"] for one in every)
        searched = (f"/{self._words}",) if words else ()
        counts = (f"{name} {count:,}" for name, count in layers.items())
        table.border_title = "  ".join(("Memories", *counts, *searched))
        table.border_subtitle = f"{len(fitting):,} of {len(every):,}, at the end of {self._document['session']}"
        if table.cursor_key:
            self._read_one(table.cursor_key)

    @on(Table.Moved, "#memories")
    def _moved(self, event: Table.Moved) -> None:
        self._read_one(event.key)

    @work(group="one", exclusive=True, exit_on_error=False)
    async def _read_one(self, memory_id: str) -> None:
        services = self._view.services
        assert services is not None
        run = self._view.sources[0].run if self._view.sources else None
        try:
            life = await asyncio.to_thread(services.lifeline, run, memory_id)
        except PaperdeskError as error:
            self.notify(str(error), markup=False, timeout=4)
            return
        until = self._document.get("session") or ""
        changes = [change for change in life["changes"] if change["session"] <= until]
        self.query_one("#recorded", TextPane).show(memory_text.memory(life, changes), top=True)
        curve = [change["importance"] for change in changes]
        plot = self.query_one("#life", CurvePlot)
        plot.show(PlotData({"importance": curve}, [change["session"] for change in changes]))
        plot.border_subtitle = f"paperdesk memory lifeline {memory_id[:8]}"

    def action_search(self) -> None:
        """Ask for words, and show the memories that have all of them in symbol, layer, kind or text."""

        def answered(text: str | None) -> None:
            if text is not None:
                self._words = text.strip()
                self._show_list()

        self.app.push_screen(AskScreen("Words to look for", "ORVL deep revenue", text=self._words), answered)
