"""Decisions: every decision of a journal, newest first, with the change of the price since; Enter opens its trail."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType

from engine.domain.decision import Action
from engine.errors import PaperdeskError
from engine.reports.documents.closes import HORIZONS, result_of
from engine.reports.documents.decisions import FollowedDecision
from tui import amounts
from tui.keys import DECISIONS, bindings
from tui.plain_text import one_line
from tui.screens.frame import FramedScreen
from tui.snapshot import Snapshot, Source
from tui.widgets.desk_tables import ACTION_INKS, signed
from tui.widgets.table import Cell, Column, Row, Table

OWNER = Column(title="OWNER", max_width=12)
COLUMNS = (
    Column(title="SESSION"),
    Column(title="SYM", max_width=9),
    Column(title="ACTION", max_width=8),
    Column(title="SIZE%", right=True),
    *(Column(title=f"+{n}", right=True, drop_order=1) for n in HORIZONS),
    Column(title="CUT", drop_order=3, max_width=7),
    Column(title="WHY", stretch=True, min_width=12, drop_order=2),
)


def rows(decided: Iterable[FollowedDecision], *, owners: bool) -> dict[Row, FollowedDecision]:
    """The decisions by their row, with a cell for the owner where there are several."""
    return {_row(one, owners): one for one in decided}


def _row(one: FollowedDecision, owners: bool) -> Row:
    decision, key = one.decision, one.decision.key
    action = decision.action.value
    return Row(
        f"{key.run}|{key.session}|{key.cycle}|{key.symbol}|{key.owner}",
        (
            Cell(f"{key.session} {key.cycle}" if key.cycle > 1 else str(key.session)),
            Cell(key.symbol, "strong"),
            *((Cell(one_line(key.owner)),) if owners else ()),
            Cell("abstain" if decision.abstained else action, ACTION_INKS.get(action, "text")),
            Cell(amounts.size(decision.size), order=decision.size),
            *(_change(decision.action, change) for change in one.changes),
            Cell("cut" if decision.cuts else "", "warn"),
            Cell(one_line(decision.reason), "muted"),
        ),
    )


def _change(action: Action, change: float | None) -> Cell:
    """A trade's result, green and positive where it was right; the change of the price in grey without a trade."""
    result = result_of(action, change)
    return (
        Cell(amounts.percent(change, 1), "muted", change)
        if result is None
        else signed(amounts.percent(result, 1), result)
    )


class DecisionsScreen(FramedScreen):
    """The table; [ and ] go to the decisions of a backtest."""

    MODE = DECISIONS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(DECISIONS)]
    TABLE = "decisions"
    PANES = ("decisions",)

    def __init__(self) -> None:
        super().__init__()
        self._sources: Sequence[Source] = ()
        self._at = 0
        self._source: Source | None = None
        self._decided: dict[str, FollowedDecision] = {}

    def compose_body(self) -> ComposeResult:
        """Mount the table."""
        yield Table(COLUMNS, title="Decisions", empty="opening the desk", id="decisions", classes="pane")

    def on_mount(self) -> None:
        """Focus the table."""
        self.focus_pane("decisions")

    def show_body(self, view: Snapshot) -> None:
        """Read again where the journal may have grown."""
        if not view.sources:
            return
        self._sources = view.sources
        self._at = min(self._at, len(self._sources) - 1)
        if self._sources[self._at] != self._source:
            self._source = self._sources[self._at]
            self._read(self._source)

    @work(exclusive=True, exit_on_error=False)
    async def _read(self, source: Source) -> None:
        table = self.query_one(Table)
        try:
            decided = await self.desk_app.bridge.decisions(source)
            owners = len({one.decision.key.owner for one in decided}) > 1
            made = await asyncio.to_thread(rows, decided, owners=owners)
        except PaperdeskError as error:
            table.show([], str(error))
            return
        self._decided = {row.key: one for row, one in made.items()}
        table.set_columns((*COLUMNS[:2], OWNER, *COLUMNS[2:]) if owners else COLUMNS)
        table.show(tuple(made), "nothing has been decided yet:\npress r to run the first cycle")
        others = f"  {self._at + 1}/{len(self._sources)}" if len(self._sources) > 1 else ""
        table.entitle(f"Decisions of {source.name}{others}")
        silent = sum(one.decision.abstained for one in decided)
        cut = sum(bool(one.decision.cuts) for one in decided)
        table.border_subtitle = f"{len(decided):,} decisions, {cut:,} cut, {silent:,} abstained" if decided else ""

    def past_source(self) -> Source | None:
        """The record whose decisions are shown."""
        return self._source

    def action_source(self, step: int) -> None:
        """Go to the decisions of the next run, or the one before."""
        if len(self._sources) > 1:
            self._at = (self._at + step) % len(self._sources)
            self.show_view(self._view)
        else:
            self.notify("only the desk has decided so far; a finished backtest shows here too", timeout=3)

    @on(Table.Opened)
    def _opened(self, event: Table.Opened) -> None:
        one = self._decided.get(event.key)
        if one is None or self._source is None:
            return
        from tui.screens.reading import TrailScreen

        self.app.push_screen(TrailScreen(self._source, one.decision))

    def action_open(self) -> None:
        """Open the trail of the decision under the cursor."""
        self.query_one(Table).action_open()
