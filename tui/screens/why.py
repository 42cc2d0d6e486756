"""Decisions on the Why screen, newest first, with the change of the price since; of the one under the cursor its trail,
the work of its agents, live while they are at it, and its memories; and how owners and agents did."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

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
from engine.reports.tables import KIND, LAYER, WRITTEN
from tui.charts.chart_data import NO_CHART
from tui.screens.frame import TALL, Layout
from tui.screens.memory import MemoryKeys
from tui.screens.reading import ReadingScreen
from tui.settings.keys import WHY, bindings
from tui.text.memory_lines import lifeline_lines
from tui.text.owners_text import owner_lines
from tui.text.plain_text import one_line
from tui.text.run_text import COMBINED, reason_words
from tui.view.desk_port import DeskPort, Source
from tui.view.snapshot import OPENING, Snapshot, first_cycle_hint
from tui.view.state import DeskState, Progress
from tui.widgets.agent_panes import AgentPanes
from tui.widgets.border_text import set_subtitle
from tui.widgets.candle_chart import CandleChart
from tui.widgets.clickable import clickable_keys
from tui.widgets.newest_reading import newest_reading
from tui.widgets.table import Cell, Column, Row, Table, rows_of
from tui.widgets.text_lines import TextPane
from tui.widgets.trail_pane import TrailPane, inked, trail_of

OWNER = Column("OWNER", max_width=12)
COLUMNS = (
    Column("SESSION"),
    Column("SYM", max_width=9),
    Column("ACTION", max_width=8),
    Column("SIZE%", form=str),
    Column("P&L%", form=str, drop_order=3),
    *(Column(f"+{n}", form=str, drop_order=n + 1) for n in HORIZONS),
    Column("DISSENT", form=str, drop_order=4),
    Column("CUT", drop_order=5, max_width=7),
    Column("WHY", stretch=True, min_width=17, drop_order=1),
)
RECALLED = (
    Column("CITED", lambda one: "cited" if one["cited"] else "", ink="mark", max_width=5),
    LAYER,
    Column("RANK", "rank", str, "muted", drop_order=4),
    Column("SCORE", "score", "{:.3f}".format, "strong"),
    Column("REC", "recency", "{:.3f}".format),
    Column("RELEV", "relevancy", "{:.3f}".format),
    Column("IMP", "importance", "{:.1f}".format),
    replace(WRITTEN, drop_order=6),
    replace(KIND, drop_order=5),
    Column("TEXT", lambda one: one_line(one["text"]), ink="muted", stretch=True, min_width=12),
)
"""The memories that a decision was given, with the parts of their score."""
AGENTS, MEMORIES, PROMPTS, CALIBRATION = "agents", "memories", "prompts", "calibration"
OPEN = {"why": (), AGENTS: ("Answers", "Debate"), MEMORIES: (), PROMPTS: ("Prompts",), CALIBRATION: ()}
"""The parts of this screen, with those of a trail that are open in them."""
PARTS = tuple(OPEN)
SUBTITLE = clickable_keys((("enter shows all", "why"), ("v next part", "part")), 2)


def rows(decided: Iterable[FollowedDecision], *, owners: bool) -> dict[Row, FollowedDecision]:
    """The decisions by their row, with a cell for the owner where there are several."""
    return {_row(one, owners): one for one in decided}


def _row(one: FollowedDecision, owners: bool) -> Row:
    decision, key = one.decision, one.decision.key
    action, brief = decision.action.value, decision.proposal.rule or ""
    if COMBINED.match(decision.reason):
        brief = f"{one.voices - one.otherwise} of {one.voices}: {decision.proposal.action.lower()}"
    return Row(
        _row_key(key),
        (
            Cell(f"{key.session} {key.cycle}" if key.cycle > 1 else str(key.session)),
            Cell(key.symbol, "strong"),
            *((Cell(one_line(key.owner)),) if owners else ()),
            Cell("abstain" if decision.abstained else action, action_ink(action)),
            Cell(amounts.size(decision.size), order=decision.size),
            Cell("-", "muted") if one.reward is None else signed(amounts.percent(one.reward), one.reward),
            *(_change(decision.action, change) for change in one.changes),
            Cell(f"{one.otherwise}/{one.voices}" if one.voices else "-", "warn" if one.otherwise else "muted"),
            Cell("cut" if decision.cuts else "", "warn"),
            Cell(reason_words(action, decision.reason.partition("\n")[0]), "muted", brief=brief),
        ),
        more=decision.reason,
    )


def _row_key(key: DecisionKey) -> str:
    return f"{key.run}|{key.session}|{key.cycle}|{key.symbol}|{key.owner}"


def _change(action: Action, change: float | None) -> Cell:
    """A trade's result, green and positive where it was right; the change of the price in grey without a trade."""
    if (result := result_of(action, change)) is None:
        return Cell(amounts.percent(change, 1), "muted", change)
    return signed(amounts.percent(result, 1), result)


def live_rows(desk: DeskState, *, owners: bool) -> list[Row]:
    """A row for each symbol of the running cycle, that at work first: its decision is written at the end of all."""
    if not desk.running or desk.session is None:
        return []
    symbols = sorted(desk.symbols, key=lambda one: one != desk.at)
    return [_live_row(desk, symbol, owners) for symbol in symbols]


def _live_row(desk: DeskState, symbol: str, owners: bool) -> Row:
    panes = desk.panes_of(symbol)
    thinking = next((pane.name for pane in panes if pane.progress is Progress.THINKING), "")
    made = next((one for one in desk.decisions.get(symbol, {}).values() if one.key.session == desk.session), None)
    state = made.action.value if made else "at work" if thinking else "waits"
    ink = action_ink(state) if made else "mark" if thinking else "muted"
    blanks = (Cell("-", "muted"),) * (len(COLUMNS) - 4)
    owner = (Cell(""),) if owners else ()
    first = (Cell(str(desk.session)), Cell(symbol, "strong"), *owner, Cell(state, ink))
    return Row(f"{LIVE}{symbol}", (*first, *blanks, Cell(thinking, "muted")))


LIVE = "live|"
"""The beginning of the key of a row of the running cycle."""


class WhyScreen(MemoryKeys):
    """The table; [ and ] go to the decisions of a backtest, v to the agents of the decision under the cursor, to its
    memories, its prompts, and to owners and agents against what followed."""

    MODE = WHY
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(WHY)]
    TABLES = ("decisions",)
    PANES = ("decisions", "summary", "recalled", "prices", CALIBRATION)

    def __init__(self) -> None:
        super().__init__()
        self._sources: Sequence[Source] = ()
        self._at = 0
        self._source: Source | None = None
        self._part = PARTS[0]
        self._wanted = ""
        """A symbol whose newest decision is to be shown once the decisions are read."""
        self._live: list[Row] = []
        self._read_rows: tuple[Row, ...] = ()
        self._read_from: Source | None = None
        """The record whose decisions were read."""
        self._decided: dict[str, FollowedDecision] = {}
        self._summarized: tuple[Source, str] | None = None
        """The decision whose trail was read last, by its row; None while agents are at work on one."""
        self._unread = ""
        """The reason why the decisions could not be read."""

    def compose_body(self) -> ComposeResult:
        """Mount the tables."""
        yield Table(COLUMNS, title="Decisions", empty=OPENING, id="decisions", classes="pane")
        with Horizontal(id="decided-so", classes="part"):
            yield AgentPanes(id="summary", classes="pane")
            yield Table(RECALLED, title="Memories", empty="no memory was recalled", id="recalled", classes="pane")
            yield CandleChart(id="prices", classes="pane")
        yield TextPane(title="Calibration", id=CALIBRATION, classes="pane")

    def on_mount(self) -> None:
        """Focus the table."""
        for name in ("summary", "recalled"):
            set_subtitle(self.query_one(f"#{name}"), SUBTITLE)
        self.focus_pane("decisions")

    def has_room_for(self, pane: Widget) -> bool:
        """True for the panes of the part that is shown: of a decision its trail and beside it its memories, one of both
        on a small screen, and on a wide one the symbol's chart; else the calibration."""
        if self._part == CALIBRATION:
            return pane.id == CALIBRATION
        remembers = self._part == MEMORIES and self._chosen is not None
        roomy = self.form in (Layout.USUAL, Layout.WIDE)
        # The chart ends with the desk's last close, which is not that of a backtest.
        of_desk = self._source in self._sources[:1] and self.form is Layout.WIDE and self.size.height >= TALL
        return {
            "decisions": True,
            "summary": bool(self._live_symbol) or (self._chosen is not None and (roomy or not remembers)),
            "recalled": remembers,
            "prices": of_desk and not remembers and bool(self._live_symbol or self._chosen),
        }.get(str(pane.id), False)

    @property
    def _chosen(self) -> FollowedDecision | None:
        """The decision under the cursor; None on a row of the running cycle."""
        return self._decided.get(self.query_one("#decisions", Table).cursor_key)

    @property
    def _live_symbol(self) -> str:
        """The symbol of the running cycle under the cursor; empty for none."""
        key = self.query_one("#decisions", Table).cursor_key
        return key.removeprefix(LIVE) if key.startswith(LIVE) else ""

    def contexts(self) -> dict[str, object]:
        """Those of the decision and of the desk's own memory under the cursor, and records to go to."""
        shown, recalled = super().contexts(), self.query_one("#recalled", Table)
        own = self._source in self._sources[:1]
        return {
            "record": shown.pop("record") or (self._source is not None and self._source.run),
            "decided": self._part != CALIBRATION and self._chosen,
            "row": own and recalled.display and recalled.cursor_key and self._document,
            "runs": len(self._sources) > 1,
            **shown,
        }

    def place_panes(self) -> None:
        """Show the panes of the part that is shown."""
        super().place_panes()
        if self._built:
            self.mark("-summary", self.query_one("#decided-so").display and not self.single, "decisions")
            self._show_chosen()

    def show_body(self, view: Snapshot) -> None:
        """Read again where the journal may have grown."""
        if not view.sources:
            return
        self._sources = view.sources
        self._at = min(self._at, len(self._sources) - 1)
        if self._sources[self._at] != self._source:
            self._source = self._sources[self._at]
            self._read_part()
        live = [] if self._at else live_rows(view.desk, owners=OWNER in self.query_one("#decisions", Table).columns)
        if live != self._live or not self._read_rows:
            self._live = live
            self._show_rows()
        self._show_chosen()

    def _show_rows(self) -> None:
        """Show the symbols of the running cycle over the decisions that were read; the cursor stays at the top."""
        table = self.query_one("#decisions", Table)
        at_top = not table.rows or table.rows[0].key == table.cursor_key
        nothing = self._nothing() if self._read_from is not None else "reading the journal"
        table.show((*self._live, *self._read_rows), self._unread or nothing)
        if self._live and at_top:
            table.point_at(self._live[0].key)
        self.place_panes()

    def _show_chosen(self) -> None:
        """Show what is under the cursor: a decision, read where it is not shown yet, or the agents at work on one."""
        pane, live, one = self.query_one("#summary", AgentPanes), self._live_symbol, self._chosen
        if live:
            self._summarized = None
            pane.show_steps(self._view.desk, live)
        elif one is not None and self._read_from is not None and (pane.display or self.query_one("#recalled").display):
            wanted = self._read_from, _row_key(one.decision.key)
            if wanted != self._summarized:
                self._summarized = wanted
                pane.read(self._read_from, partial(trail_of, decisions=[one.decision]))
        symbol = live or (one.decision.key.symbol if one is not None else "")
        if symbol and self._view.market is not None:
            self.query_one(CandleChart).show(self._view.market.charts.get(symbol, NO_CHART))

    @on(TrailPane.Shown)
    def _trail_shown(self) -> None:
        if (trail := self.query_one("#summary", AgentPanes).trail) is not None:
            recalled = trail["decisions"][0]["recollections"]
            self.query_one("#recalled", Table).show(
                rows_of(RECALLED, recalled, lambda one: f"{one['owner']}|{one['id']}")
            )

    @property
    def _ask(self) -> DeskPort:
        assert self._view.opened is not None  # its records are shown
        return self._view.opened.ask

    def _read_part(self) -> None:
        if self._source is not None:
            (self._read_calibration if self._part == CALIBRATION else self._read)(self._source)

    @newest_reading
    async def _read(self, source: Source) -> None:
        table = self.query_one("#decisions", Table)
        self._unread = ""
        try:
            decided = await self._ask.read(source, followed_decisions)
            owners = len({one.decision.key.owner for one in decided}) > 1
            made = await asyncio.to_thread(rows, decided, owners=owners)
        except PaperdeskError as error:
            self._read_rows, self._unread = (), str(error)
            self._show_rows()
            return
        self._decided, self._read_from = {row.key: one for row, one in made.items()}, source
        table.set_columns((*COLUMNS[:2], OWNER, *COLUMNS[2:]) if owners else COLUMNS)
        self._read_rows = tuple(made)
        self._show_rows()
        table.entitle(f"Decisions of {source.name}{self._place()}")
        silent = sum(one.decision.abstained for one in decided)
        cut = sum(bool(one.decision.cuts) for one in decided)
        sums = f"{counted(len(decided), 'decision')}, {cut:,} cut, {silent:,} abstained"
        set_subtitle(table, sums if decided else "")
        self.show_symbol(self._wanted)
        if self._part == MEMORIES:
            self.memory_changed()

    @on(Table.Moved, "#decisions")
    def _pointed(self) -> None:
        self.place_panes()

    def show_symbol(self, symbol: str) -> None:
        """Show the newest decision about a symbol, once the decisions are read."""
        table, read = self.query_one("#decisions", Table), self._decided if self._source == self._read_from else {}
        found = next((key for key, one in read.items() if one.decision.key.symbol == symbol), "")
        self._wanted = "" if found else symbol
        if found:
            table.point_at(found)
            self.place_panes()

    @newest_reading
    async def _read_calibration(self, source: Source) -> None:
        pane = self.query_one(f"#{CALIBRATION}", TextPane)
        try:
            document = await self._ask.read(source, owners_document)
        except PaperdeskError as error:
            pane.show(Content(str(error)), top=True)
            return
        lines = owner_lines(document, f"{source.name}{self._place()}", pane.text_width)
        pane.show(inked(lines if document["per_owner"] else [(self._nothing(), "")]), top=True)
        set_subtitle(pane, "paperdesk decisions --owners")

    def _nothing(self) -> str:
        """The text where nothing has been decided: decisions are kept once all of a run's are there."""
        if self._view.busy:
            return "no decision yet:\nthe cycle is running"
        if self._view.desk.run and self._at == 0:
            return "no decision yet:\nr resumes the interrupted run"
        return f"no decision yet{first_cycle_hint(self._view)}"

    def _place(self) -> str:
        return f"  {self._at + 1}/{len(self._sources)}" if len(self._sources) > 1 else ""

    def past_source(self) -> Source | None:
        """The record whose decisions are shown."""
        return self._source

    def action_part(self) -> None:
        """Show the next part: the agents of the decision, its memories, its prompts, calibration, what counts."""
        self._part = PARTS[(PARTS.index(self._part) + 1) % len(PARTS)]
        if self.single or self._part == CALIBRATION:
            names = {"why": "decisions", MEMORIES: "recalled", CALIBRATION: CALIBRATION}
            self.focus_pane(names.get(self._part, "summary"))
        else:
            self.focus_pane("decisions")
        self.query_one("#summary", AgentPanes).open_only(*OPEN[self._part])
        if self._part in ("why", CALIBRATION):
            self._read_part()
        elif self._part == MEMORIES:
            self.memory_changed()

    def chosen_memory(self) -> str:
        """The memory under the cursor, where it is the desk's."""
        recalled = self.query_one("#recalled", Table)
        if not recalled.display or not recalled.cursor_key:
            self.notify("no memory is chosen: v shows those of the decision", timeout=3)
        elif self._source not in self._sources[:1]:
            self.notify("this memory belongs to a backtest", timeout=3)
        else:
            return recalled.cursor_key.rpartition("|")[2]
        return ""

    @newest_reading
    async def memory_changed(self) -> None:
        """Read which memories the desk has, that one may be changed; of a backtest none."""
        of_desk = self._source in self._sources[:1]
        try:
            self._document = await self._ask.memory(None) if of_desk else {}
        except PaperdeskError:  # without memory there is none to change
            self._document = {}
        self.place_panes()

    @on(Table.Opened, "#recalled")
    def _memory_opened(self, event: Table.Opened) -> None:
        """Show a memory whole."""
        self._read_memory(event.key.rpartition("|")[2])

    @work(group="memory", exclusive=True, exit_on_error=False)
    async def _read_memory(self, memory_id: str) -> None:
        life = await self._ask.memory(self._source.run if self._source else None, one=memory_id)
        text = inked(lifeline_lines(life, self.query_one("#recalled").size.width))
        self.app.push_screen(ReadingScreen("Memory", text))

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
        if one is None or self._read_from is None:
            self.notify("it is being decided: the trail stands at the end of the cycle", timeout=3)
            return
        from tui.screens.trail import TrailScreen

        table = self.query_one("#decisions", Table)
        order = tuple(self._decided[row.key].decision for row in table.rows if row.key in self._decided)
        screen = TrailScreen(
            self._read_from, one.decision, order=order, shown=lambda made: table.point_at(_row_key(made.key))
        )
        self.app.push_screen(screen)

    def action_open(self) -> None:
        """Open the trail of the decision under the cursor."""
        if self._part != CALIBRATION:
            self.query_one("#decisions", Table).action_open()

    action_why = action_open
