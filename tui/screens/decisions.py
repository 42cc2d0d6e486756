"""Decisions: every decision of a journal, newest first, with the change of the price since, and how its owners and
agents did."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from engine.domain.decision import Action, DecisionKey
from engine.domain.text import counted
from engine.errors import PaperdeskError
from engine.reports.documents.closes import HORIZONS, result_of
from engine.reports.documents.decisions import FollowedDecision
from tui import amounts
from tui.keys import DECISIONS, bindings
from tui.plain_text import one_line
from tui.run_text import reason_words
from tui.screens.frame import FramedScreen
from tui.snapshot import Snapshot, Source
from tui.widgets import calibration_text
from tui.widgets.desk_tables import ACTION_INKS, signed
from tui.widgets.pane_text import TextPane
from tui.widgets.table import Cell, Column, Row, Table

OWNER = Column(title="OWNER", max_width=12)
COLUMNS = (
    Column(title="SESSION"),
    Column(title="SYM", max_width=9),
    Column(title="ACTION", max_width=8),
    Column(title="SIZE%", right=True),
    Column(title="P&L%", right=True, drop_order=3),
    *(Column(title=f"+{n}", right=True, drop_order=1) for n in HORIZONS),
    Column(title="DISSENT", right=True, drop_order=5),
    Column(title="CUT", drop_order=4, max_width=7),
    Column(title="WHY", stretch=True, min_width=12, drop_order=2),
)
PARTS = ("decisions", "calibration")


def rows(decided: Iterable[FollowedDecision], *, owners: bool) -> dict[Row, FollowedDecision]:
    """The decisions by their row, with a cell for the owner where there are several."""
    return {_row(one, owners): one for one in decided}


def _row(one: FollowedDecision, owners: bool) -> Row:
    decision, key = one.decision, one.decision.key
    action = decision.action.value
    return Row(
        _row_key(key),
        (
            Cell(f"{key.session} {key.cycle}" if key.cycle > 1 else str(key.session)),
            Cell(key.symbol, "strong"),
            *((Cell(one_line(key.owner)),) if owners else ()),
            Cell("abstain" if decision.abstained else action, ACTION_INKS.get(action, "text")),
            Cell(amounts.size(decision.size), order=decision.size),
            _reward(one.reward),
            *(_change(decision.action, change) for change in one.changes),
            Cell(f"{one.otherwise}/{one.voices}" if one.voices else "-", "warn" if one.otherwise else "muted"),
            Cell("cut" if decision.cuts else "", "warn"),
            Cell(reason_words(action, decision.reason), "muted"),
        ),
    )


def _row_key(key: DecisionKey) -> str:
    return f"{key.run}|{key.session}|{key.cycle}|{key.symbol}|{key.owner}"


def _reward(reward: float | None) -> Cell:
    return Cell("-", "muted") if reward is None else signed(amounts.percent(reward), reward)


def _change(action: Action, change: float | None) -> Cell:
    """A trade's result, green and positive where it was right; the change of the price in grey without a trade."""
    result = result_of(action, change)
    return (
        Cell(amounts.percent(change, 1), "muted", change)
        if result is None
        else signed(amounts.percent(result, 1), result)
    )


class DecisionsScreen(FramedScreen):
    """The table; [ and ] go to the decisions of a backtest, v to owners and agents against what followed."""

    MODE = DECISIONS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(DECISIONS)]
    TABLE = "decisions"
    PANES = ("decisions", "calibration", "bands")

    def __init__(self) -> None:
        super().__init__()
        self._sources: Sequence[Source] = ()
        self._at = 0
        self._source: Source | None = None
        self._part = PARTS[0]
        self._decided: dict[str, FollowedDecision] = {}
        self._calibrated: dict[str, Mapping[str, Any]] = {}

    def compose_body(self) -> ComposeResult:
        """Mount the tables."""
        yield Table(COLUMNS, title="Decisions", empty="opening the desk", id="decisions", classes="pane")
        with Horizontal(id="calibrated"):
            yield Table(
                calibration_text.COLUMNS, title="Calibration", empty="reading", id="calibration", classes="pane"
            )
            yield TextPane(title="Confidence", id="bands", classes="pane")

    def on_mount(self) -> None:
        """Focus the table."""
        self.focus_pane("decisions")

    def has_room_for(self, pane: Widget) -> bool:
        """True for the panes of the part that is shown, and for the confidence where any was stated."""
        if pane.id == "bands" and not any(after.get("calibration") for after in self._calibrated.values()):
            return False
        return (pane.id == "decisions") == (self._part == "decisions")

    def place_panes(self) -> None:
        """Show the panes of the part that is shown."""
        super().place_panes()
        if self._built:
            self.query_one("#calibrated").display = self._part != "decisions"

    def show_body(self, view: Snapshot) -> None:
        """Read again where the journal may have grown."""
        if not view.sources:
            return
        self._sources = view.sources
        self._at = min(self._at, len(self._sources) - 1)
        if self._sources[self._at] != self._source:
            self._source = self._sources[self._at]
            self._read_part()

    def _read_part(self) -> None:
        if self._source is not None:
            (self._read if self._part == PARTS[0] else self._read_calibration)(self._source)

    @work(exclusive=True, exit_on_error=False)
    async def _read(self, source: Source) -> None:
        table = self.query_one("#decisions", Table)
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
        table.entitle(f"Decisions of {source.name}{self._place()}")
        silent = sum(one.decision.abstained for one in decided)
        cut = sum(bool(one.decision.cuts) for one in decided)
        table.border_subtitle = (
            f"{counted(len(decided), 'decision')}, {cut:,} cut, {silent:,} abstained" if decided else ""
        )

    @work(exclusive=True, exit_on_error=False)
    async def _read_calibration(self, source: Source) -> None:
        table = self.query_one("#calibration", Table)
        try:
            found = calibration_text.rows(await self.desk_app.bridge.owners(source))
        except PaperdeskError as error:
            table.show([], str(error))
            return
        self._calibrated = {row.key: after for row, after in found.items()}
        self.place_panes()
        table.show(tuple(found), "nothing has been decided yet:\npress r to run the first cycle")
        table.entitle(f"Calibration of {source.name}{self._place()}")
        table.border_subtitle = "paperdesk decisions --owners"
        self._show_bands(table.cursor_key)

    def _place(self) -> str:
        return f"  {self._at + 1}/{len(self._sources)}" if len(self._sources) > 1 else ""

    @on(Table.Moved, "#calibration")
    def _moved(self, event: Table.Moved) -> None:
        self._show_bands(event.key)

    def _show_bands(self, key: str) -> None:
        if key in self._calibrated:
            who, plain = one_line(key.rpartition("|")[0]), self.app.has_class("-plain")
            shown = calibration_text.bands(who, self._calibrated[key], plain=plain)
            self.query_one("#bands", TextPane).show(shown, top=True)

    def past_source(self) -> Source | None:
        """The record whose decisions are shown."""
        return self._source

    def action_part(self) -> None:
        """Show the decisions, or owners and agents against what followed."""
        self._part = PARTS[(PARTS.index(self._part) + 1) % len(PARTS)]
        self.focus_pane(self._part)
        self._read_part()

    def action_source(self, step: int) -> None:
        """Go to the decisions of the next run, or the one before."""
        if len(self._sources) > 1:
            self._at = (self._at + step) % len(self._sources)
            self.show_view(self._view)
        else:
            self.notify("only the desk has decided so far; a finished backtest shows here too", timeout=3)

    @on(Table.Opened, "#decisions")
    def _opened(self, event: Table.Opened) -> None:
        one = self._decided.get(event.key)
        if one is None or self._source is None:
            return
        from tui.screens.trail import TrailScreen

        table = self.query_one("#decisions", Table)
        order = tuple(self._decided[row.key].decision for row in table.rows)
        screen = TrailScreen(
            self._source, one.decision, order=order, shown=lambda made: table.point_at(_row_key(made.key))
        )
        self.app.push_screen(screen)

    def action_open(self) -> None:
        """Open the trail of the decision under the cursor."""
        if self._part == PARTS[0]:
            self.query_one("#decisions", Table).action_open()

    def action_why(self) -> None:
        """Open the trail of the decision under the cursor."""
        self.action_open()
