"""Memories on a screen: pinned, forgotten and restored by key; behind Ops all that is remembered at the moment that is
shown, by layer and importance, with the life-line of one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from engine.domain.decision import LAYERS
from engine.errors import PaperdeskError
from engine.messages.commands import MemoryChange
from engine.reports.tables import IMPORTANCE, KIND, LAYER, PINNED, RECENCY, REWARDS, SHORT_ID, SYMBOL, WRITTEN
from tui.charts.plotting import PlotData
from tui.desk.desk_app import report_action
from tui.screens.ask import AskScreen
from tui.screens.frame import FramedScreen
from tui.settings.keys import MEMORY, OPS, bindings
from tui.text.memory_lines import DONE, lifeline_lines
from tui.text.plain_text import one_line
from tui.view.snapshot import Snapshot
from tui.widgets.border_text import set_subtitle
from tui.widgets.newest_reading import newest_reading
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Column, Row, Table, rows_of
from tui.widgets.text_lines import TextPane
from tui.widgets.trail_pane import inked

Document = Mapping[str, Any]
Moment = tuple[str | None, date | None, bool]
"""A run, None for the desk's own record; a session of it, None for its end; and True for the time before that session
was decided."""


class MemoryKeys(FramedScreen):
    """A screen that shows memories, of which one is chosen."""

    def __init__(self) -> None:
        super().__init__()
        self._document: Document = {}
        """The memories that can be changed, as `paperdesk memory list` has them."""

    def chosen_memory(self) -> str:
        """The id of the chosen memory; empty, once it is said why, where none can be changed."""
        raise NotImplementedError

    def memory_changed(self) -> None:
        """Show what a change of the chosen memory has changed."""

    def action_pin(self) -> None:
        """Pin the chosen memory to its layer, or let it go on from there."""
        self._change_chosen(pins=True)

    def action_forget(self) -> None:
        """Forget the chosen memory once the reason is typed, or restore one that is forgotten."""
        self._change_chosen(pins=False)

    def _change_chosen(self, *, pins: bool) -> None:
        if not self._in_present() or not (memory_id := self.chosen_memory()):
            return
        one = listed(self._document, memory_id)
        if one is None:
            self.notify("the memory under the cursor is still loading", timeout=3)
        elif "layer" in one and pins:
            self._change(memory_id, MemoryChange.UNPIN if one["pinned"] else MemoryChange.PIN)
        elif pins:
            self.notify("forgotten: F restores it", timeout=3)
        elif "layer" not in one:
            self._change(memory_id, MemoryChange.RESTORE)
        else:
            self._forget(one)

    def _forget(self, one: Document) -> None:
        def answered(reason: str | None) -> None:
            if reason:
                self._change(one["id"], MemoryChange.FORGET, reason)

        title = f"Forget {one['symbol']} {one_line(one['kind'])} of {one['session']}: why?"
        self.app.push_screen(AskScreen(title, "another company of that name", check=_some_reason), answered)

    @work(group="change", exit_on_error=False)
    async def _change(self, memory_id: str, change: MemoryChange, reason: str = "") -> None:
        done = await asyncio.to_thread(self.desk_app.bridge.change_memory, memory_id, change, reason)
        text = DONE[change][0] if done["applied"] else f"{DONE[change][0]}, once the run that holds it has ended"
        why = ("--reason", reason) if reason else ()
        report_action(self.app, text, "memory", change.value, memory_id[:SHORT_ID], *why)
        self.memory_changed()


class MemoryScreen(MemoryKeys):
    """The memories on the left; the chosen one's importance over time, its changes and its text on the right."""

    MODE = MEMORY
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(MEMORY)]
    TABLES = ("memories",)
    PANES = ("memories", "life", "recorded")

    def __init__(self) -> None:
        super().__init__()
        self._remembered: tuple[Moment, int] | None = None
        """The moment whose memories are listed, and the version of its record."""
        self._undecided = False
        """True where the list is as it was while its session was decided."""
        self._life: Document = {}
        """The memory that is shown, with its changes up to the moment."""
        self._changed = False
        """True where a memory was changed that is not listed as it is now."""

    def compose_body(self) -> ComposeResult:
        """Mount the table, the curve and the text."""
        with Horizontal(id="remembered", classes="part"):
            yield Table(MEMORIES, title="Memories", empty="loading", id="memories", classes="pane")
            with Vertical(id="one-memory", classes="column"):
                yield CurvePlot(id="life", title="Importance", classes="pane")
                yield TextPane(title="Memory", id="recorded", classes="pane")

    def on_mount(self) -> None:
        """Focus the memories."""
        self.focus_pane("memories")

    def show_body(self, view: Snapshot) -> None:
        """Read again at another place, and after a run."""
        if view.opened is None or not view.sources:
            return
        session = None if view.place is None else view.place.session
        undecided = session is not None and view.desk.running
        moment = view.sources[0].run, session, undecided
        if (moment, view.sources[0].version) != self._remembered:
            self._remembered = moment, view.sources[0].version
            self._read_memory(*moment)

    @newest_reading
    async def _read_memory(self, run: str | None, session: date | None, undecided: bool) -> None:
        opened, table = self._view.opened, self.query_one("#memories", Table)
        assert opened is not None
        try:
            self._document = await opened.ask.memory(run, session, undecided=undecided)
        except PaperdeskError as error:
            self._document = {}
            table.show([], str(error))
            return
        self._undecided = undecided
        self._show_list()

    def _show_list(self) -> None:
        if not self._document:
            return
        table = self.query_one("#memories", Table)
        every = [*self._document["memories"], *self._document["forgotten"]]
        table.set_columns(memory_columns(every))
        table.show(memory_rows(every), "no memories yet")
        if self._changed:  # what is forgotten goes to the end of the list, and the cursor with it
            self._changed = False
            table.follow_cursor()
        layers = Counter(one.get("layer", "forgotten") for one in every)
        counts = (f"{name} {layers[name]:,}" for name in (*LAYERS, "forgotten") if layers[name])
        table.entitle("  ".join(("Memories", *counts)))
        session = self._document["session"]
        when = "while deciding on" if self._undecided else "at the end of"
        set_subtitle(table, f"{when} {session}" if session else "")
        if table.cursor_key:
            self._read_one(table.cursor_key)

    @on(Table.Moved, "#memories")
    def _memory_moved(self, event: Table.Moved) -> None:
        if event.key:  # a filter may leave no row: what is shown stays
            self._read_one(event.key)

    @work(group="one", exclusive=True, exit_on_error=False)
    async def _read_one(self, memory_id: str) -> None:
        assert self._view.opened is not None
        run = self._view.sources[0].run if self._view.sources else None
        try:
            life = await self._view.opened.ask.memory(run, one=memory_id)
        except PaperdeskError as error:
            self.notify(str(error), markup=False, timeout=4)
            return
        until = self._document.get("session") or ""
        changes = [one for one in life["changes"] if one["session"] < until or self._was(one, until)]
        values = [one for one in life["values"] if one["session"] <= until]
        self._life = {**life, "changes": changes, "values": values}
        recorded = self.query_one("#recorded", TextPane)
        recorded.show(inked(lifeline_lines(self._life, recorded.text_width)), top=True)
        if self._undecided and values and "importance" in (row := listed(self._document, memory_id) or {}):
            values[-1] = {**values[-1], "importance": row["importance"]}
        plot = self.query_one("#life", CurvePlot)
        plot.show(PlotData({"importance": [one["importance"] for one in values]}, [one["session"] for one in values]))
        set_subtitle(plot, f"paperdesk memory lifeline {memory_id[:SHORT_ID]}")

    def _was(self, change: Document, until: str) -> bool:
        """True for a change of the session that is shown; while that is undecided for those before its decision."""
        before = change["cause"] != "cited" and float(change["step"]).is_integer()
        return bool(change["session"] == until and (before or not self._undecided))

    def show_symbol(self, symbol: str) -> None:
        """Show the memories of a symbol."""
        self.query_one("#memories", Table).set_filter(f'sym:="{symbol}"')

    def contexts(self) -> dict[str, object]:
        """Those of the memory under the cursor; only the desk's own can be changed."""
        chosen = self.query_one("#memories", Table).cursor_key
        return {**super().contexts(), "decided": chosen, "row": chosen and self._document.get("run") is None}

    def action_part(self) -> None:
        """Go back to the checks and costs."""
        self.desk_app.switch_mode(OPS)

    def action_why(self) -> None:
        """Open the trail of the last decision that cited the memory, else of the one after which it was written."""
        from engine.reports.documents.memory import decided_with

        key = self.query_one("#memories", Table).cursor_key
        if not key or self._life.get("id") != key:
            self.notify(self._why_not(key), timeout=3)
            return
        run, here = self._document["run"], self._view.sources[0]
        # A desk that remembers nothing yet shows the memory of a backtest.
        source = here if run in (None, here.run) else self.desk_app.bridge.run_source(run)
        self.open_trail(partial(decided_with, memory=self._life), source)

    def chosen_memory(self) -> str:
        """The memory under the cursor, where it is the desk's."""
        key = self.query_one("#memories", Table).cursor_key
        if self._document.get("run") is not None:
            self.notify("this memory belongs to a backtest: the desk has none yet", timeout=3, markup=False)
            return ""
        if not key:
            self.notify(self._why_not(key), timeout=3)
        return key

    def memory_changed(self) -> None:
        """List the memories as they are now."""
        if self._remembered is not None:
            self._changed = True
            self._read_memory(*self._remembered[0])

    def _why_not(self, key: str) -> str:
        """The reason that a key finds no memory to act on."""
        if key:
            return "the memory under the cursor is still loading"
        return f"no memory is chosen: {one_line(self.query_one('#memories', Table).empty_text)}"


def listed(document: Document, memory_id: str) -> Document | None:
    """A memory of a list, alive or forgotten, by its id; None where it is not in it."""
    every = (*document.get("memories", ()), *document.get("forgotten", ()))
    return next((one for one in every if one["id"] == memory_id), None)


def _some_reason(text: str) -> None:
    """Raise ValueError for a reason that says nothing."""
    if not text.strip():
        raise ValueError("give a reason; it is recorded in the lifeline")


MEMORIES = (
    WRITTEN,
    SYMBOL,
    Column("OWNER", "owner", ink="muted", max_width=12),
    LAYER,
    PINNED,
    KIND,
    IMPORTANCE,
    RECENCY,
    REWARDS,
    Column("TEXT", "text", ink="muted", stretch=True, min_width=12, drop_order=5),
)


def memory_columns(memories: Sequence[Document]) -> Sequence[Column]:
    """The columns of some memories: the owner's only where there are several, who may remember the same."""
    return MEMORIES if len({one["owner"] for one in memories}) > 1 else (*MEMORIES[:2], *MEMORIES[3:])


def memory_rows(memories: Sequence[Document]) -> list[Row]:
    """A row per memory, alive or forgotten."""
    made = rows_of(memory_columns(memories), memories, lambda one: str(one["id"]))
    said = (f"{one['owner']} {one['id']} {'pinned' if one.get('pinned') else ''}" for one in memories)
    return [replace(row, more=more) for row, more in zip(made, said, strict=True)]
