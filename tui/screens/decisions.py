"""Decisions: every decision of a journal, newest first, with the change of the price since; what counts of the one
under the cursor, where there is room; and how owners and agents did."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget

from engine.domain.decision import Action, DecisionKey
from engine.domain.text import counted
from engine.errors import PaperdeskError
from engine.reports import amounts
from engine.reports.documents.closes import HORIZONS, result_of
from engine.reports.documents.decisions import FollowedDecision, followed_decisions
from engine.reports.documents.owners import owners_document
from engine.reports.table import action_ink, signed
from tui.charts.chart_data import NO_CHART
from tui.screens.frame import TALL, FramedScreen, Layout
from tui.screens.newest_reading import READING, newest_reading
from tui.settings.keys import DECISIONS, bindings
from tui.text.owners_text import JUDGED, MEANINGS, judged
from tui.text.plain_text import one_line
from tui.text.run_text import reason_words
from tui.view.desk_port import DeskPort, Source
from tui.view.snapshot import OPENING, Snapshot, first_cycle_hint
from tui.widgets.agent_panes import MUTED
from tui.widgets.candle_chart import CandleChart
from tui.widgets.table import Cell, Column, Row, Table, rows_of
from tui.widgets.text_lines import TextPane
from tui.widgets.trail_pane import TrailPane, trail_of

OWNER = Column("OWNER", max_width=12)
COLUMNS = (
    Column("SESSION"),
    Column("SYM", max_width=9),
    Column("ACTION", max_width=8),
    Column("SIZE%", form=str),
    Column("P&L%", form=str, drop_order=3),
    *(Column(f"+{n}", form=str, drop_order=1) for n in HORIZONS),
    Column("DISSENT", form=str, drop_order=5),
    Column("CUT", drop_order=4, max_width=7),
    Column("WHY", stretch=True, min_width=12, drop_order=2),
)
PARTS = ("decisions", "calibration")
FRAME = 6
"""Rows of the bars, and of the border and heading of a table."""
BANDS = 9
"""Rows of the confidence below a table."""
MEANING, FEWEST = 13, 5
"""Rows of the meaning of the columns, all of it and at least."""


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
            Cell("abstain" if decision.abstained else action, action_ink(action)),
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
    PANES = ("decisions", "summary", "prices", "calibration", "bands", "columns")

    def __init__(self) -> None:
        super().__init__()
        self._sources: Sequence[Source] = ()
        self._at = 0
        self._source: Source | None = None
        self._part = PARTS[0]
        self._decided: dict[str, FollowedDecision] = {}
        self._calibrated: dict[str, Mapping[str, Any]] = {}
        self._summarized: tuple[Source, str] | None = None
        """The decision whose trail was read last, by its row."""

    def compose_body(self) -> ComposeResult:
        """Mount the tables."""
        yield Table(COLUMNS, title="Decisions", empty=OPENING, id="decisions", classes="pane")
        with Horizontal(id="decided-so"):
            yield TrailPane(id="summary", classes="pane")
            yield CandleChart(id="prices", classes="pane")
        with Horizontal(id="calibrated"):
            yield Table(JUDGED, title="Calibration", empty="reading", id="calibration", classes="pane")
            yield TextPane(title="Confidence", id="bands", classes="pane")
        yield TextPane(title="Columns", id="columns", classes="pane")

    def on_mount(self) -> None:
        """Focus the table, and explain the columns of the other."""
        self.query_one("#columns", TextPane).show(EXPLAINED)
        self.focus_pane("decisions")

    def has_room_for(self, pane: Widget) -> bool:
        """True for the panes of the part that is shown: of a decision what counts where a screen is high enough, beside
        the symbol's chart on a wide one; the confidence where any was stated, and the meaning of the columns in the
        rows that the table leaves."""
        listed, high = self._part == PARTS[0], self.size.height >= TALL
        tall = high and bool(self._decided)
        # The chart ends with the desk's last close, which is not that of a backtest.
        of_desk = self._source in self._sources[:1]
        return {
            "decisions": listed,
            "summary": listed and tall,
            "prices": listed and tall and of_desk and self.form is Layout.WIDE,
            "bands": not listed and self._states_confidence(),
            "columns": not listed and self._room_for_columns() >= FEWEST,
        }.get(str(pane.id), not listed)

    def own_contexts(self) -> frozenset[str]:
        """Those of the decision under the cursor, and records to go to."""
        return super().own_contexts() | ({"runs"} if len(self._sources) > 1 else set())

    def has_record(self) -> bool:
        """True where the record whose decisions are shown is the desk's that has run, or a backtest's."""
        return super().has_record() or (self._source is not None and bool(self._source.run))

    def has_decision(self) -> bool:
        """True where a decision is chosen."""
        return self._part == PARTS[0] and self.query_one("#decisions", Table).cursor_key in self._decided

    def _states_confidence(self) -> bool:
        return any(after.get("calibration") for after in self._calibrated.values())

    def _room_for_columns(self) -> int:
        """The rows for the meaning of the columns: all of it on a high screen, else as many as the table leaves."""
        if self.size.height >= TALL:
            return MEANING
        taken = FRAME + len(self._calibrated) + (2 if self._view.place is not None else 0)
        below = BANDS if self.form is Layout.NARROW and self._states_confidence() else 0
        return min(MEANING, self.size.height - taken - below)

    def place_panes(self) -> None:
        """Show the panes of the part that is shown."""
        super().place_panes()
        if self._built:
            listed = self._part == PARTS[0]
            summary, prices = self.query_one("#summary"), self.query_one("#prices")
            self.set_display(self.query_one("#calibrated"), not listed)
            self.set_display(self.query_one("#decided-so"), listed and (summary.display or prices.display))
            self.set_class(listed and summary.display and not self.single, "-summary")
            columns = self.query_one("#columns")
            columns.styles.height = None if self.single else self._room_for_columns()
            self._summarize()

    def show_body(self, view: Snapshot) -> None:
        """Read again where the journal may have grown."""
        if not view.sources:
            return
        self._show_prices(view)
        self._sources = view.sources
        self._at = min(self._at, len(self._sources) - 1)
        if self._sources[self._at] != self._source:
            self._source = self._sources[self._at]
            self._read_part()

    @property
    def _ask(self) -> DeskPort:
        assert self._view.opened is not None  # its records are shown
        return self._view.opened.ask

    def _read_part(self) -> None:
        if self._source is not None:
            (self._read if self._part == PARTS[0] else self._read_calibration)(self._source)

    @newest_reading
    async def _read(self, source: Source) -> None:
        table = self.query_one("#decisions", Table)
        try:
            decided = await self._ask.read(source, followed_decisions)
            owners = len({one.decision.key.owner for one in decided}) > 1
            made = await asyncio.to_thread(rows, decided, owners=owners)
        except PaperdeskError as error:
            table.show([], str(error))
            return
        self._decided = {row.key: one for row, one in made.items()}
        table.set_columns((*COLUMNS[:2], OWNER, *COLUMNS[2:]) if owners else COLUMNS)
        table.show(tuple(made), self._nothing())
        table.entitle(f"Decisions of {source.name}{self._place()}")
        silent = sum(one.decision.abstained for one in decided)
        cut = sum(bool(one.decision.cuts) for one in decided)
        table.border_subtitle = (
            f"{counted(len(decided), 'decision')}, {cut:,} cut, {silent:,} abstained" if decided else ""
        )
        self.place_panes()

    @on(Table.Moved, "#decisions")
    def _pointed(self) -> None:
        self._summarize()

    def _summarize(self) -> None:
        """Have the decision under the cursor read, where there is room for what counts of it and it is not shown."""
        key = self.query_one("#decisions", Table).cursor_key
        if key not in self._decided or self._source is None or not self.query_one("#summary").display:
            return
        if self._summarized != (self._source, key):
            self._summarized = self._source, key
            self._read_trail(self._source, self._decided[key])

    @work(group=f"{READING} summary", exclusive=True, exit_on_error=False, description="summary of a decision")
    async def _read_trail(self, source: Source, one: FollowedDecision) -> None:
        pane = self.query_one("#summary", TrailPane)
        try:
            pane.show_trail(await self._ask.read(source, partial(trail_of, decision=one.decision)))
        except PaperdeskError as error:
            self._summarized = None
            pane.show_error(str(error))
        self._show_prices(self._view)

    def _show_prices(self, view: Snapshot) -> None:
        """Show the chart of the symbol whose decision is shown beside it."""
        trail = self.query_one("#summary", TrailPane).trail
        if trail is not None and view.market is not None:
            (shown,) = trail["decisions"]
            self.query_one(CandleChart).show(view.market.charts.get(shown["symbol"], NO_CHART))

    @newest_reading
    async def _read_calibration(self, source: Source) -> None:
        table = self.query_one("#calibration", Table)
        try:
            found = judged_rows(await self._ask.read(source, owners_document))
        except PaperdeskError as error:
            table.show([], str(error))
            return
        self._calibrated = {row.key: after for row, after in found.items()}
        self.place_panes()
        table.show(tuple(found), self._nothing())
        table.entitle(f"Calibration of {source.name}{self._place()}")
        table.border_subtitle = "paperdesk decisions --owners"
        self._show_bands(table.cursor_key)

    def _nothing(self) -> str:
        """The text where nothing has been decided: decisions are kept once all of a run's are there."""
        if self._view.busy:
            return "no decision yet:\nthe cycle is running"
        if self._view.desk.run and self._at == 0:
            return "no decision yet:\nr resumes the interrupted run"
        return f"no decision yet{first_cycle_hint(self._view)}"

    def _place(self) -> str:
        return f"  {self._at + 1}/{len(self._sources)}" if len(self._sources) > 1 else ""

    @on(Table.Moved, "#calibration")
    def _moved(self, event: Table.Moved) -> None:
        self._show_bands(event.key)

    def _show_bands(self, key: str) -> None:
        if key in self._calibrated:
            who, plain = one_line(key.rpartition("|")[0]), self.app.has_class("-plain")
            shown = bands_content(who, self._calibrated[key], plain=plain)
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
            self.notify("only the desk has decisions so far; finished backtests appear here too", timeout=3)

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


Document = Mapping[str, Any]
Part = str | tuple[str, str]
BAR = 20
"""Columns of a bar that stands for certainty."""

EXPLAINED = Content("\n").join(Content.assemble((f"{name:<11}", MUTED), meaning) for name, meaning in MEANINGS.items())
"""The columns, a line each."""


def judged_rows(document: Document) -> dict[Row, Document]:
    """A row for each owner and agent after each horizon, with what the document has of it."""
    found = judged(document)
    return dict(zip(rows_of(JUDGED, found, lambda one: f"{one['who']}|{one['sessions']}"), found, strict=True))


def bands_content(who: str, after: Document, *, plain: bool) -> Content:
    """The stated confidence of one owner against what happened, a bar of each in every band."""
    stated = after.get("calibration")
    if not stated:
        why = "states no confidence" if "calibration" in after else "reports a side, and no confidence"
        return Content.styled(f"{who} {why}: its hit rate is in the row.", MUTED)
    return Content.assemble(*_bands(who, after["sessions"], stated, "#" if plain else "█"))


def _bands(who: str, sessions: int, stated: Document, mark: str) -> Iterator[Part]:
    yield f"{who}, {stated['n']} judged after {counted(sessions, 'session')}\n", "bold"
    for band in stated["bands"]:
        yield f"\n{band['low']:.1f} to {band['high']:.1f}  {band['n']} judged\n"
        for name, share, ink in (("stated", band["confidence"], MUTED), ("right", band["hit_rate"], "$primary")):
            yield f"  {name:<7}{share * 100:>4.0f} %  "
            yield f"{mark * round(share * BAR)}\n", ink
