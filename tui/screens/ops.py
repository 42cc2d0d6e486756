"""Ops: checks of the desk, its schedule, its models with their cost, its runs and its log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from engine.errors import PaperdeskError
from engine.reports import amounts
from engine.reports.documents import row_json
from engine.reports.documents.operations import DeskRun, Operations, is_decided, operations_of
from engine.reports.documents.trail import latest_of_run
from engine.reports.table import Cell, Column, count, warn_ink
from tui.charts.plotting import PlotData
from tui.screens.frame import TALL, FramedScreen, Layout
from tui.screens.reading import ReadingScreen, log_text
from tui.settings.keys import MEMORY, OPS, bindings
from tui.text.run_text import halt_words
from tui.view.desk_changes import log_of
from tui.view.market_reading import last_to_decide, next_run_at
from tui.view.snapshot import OPENING, Snapshot
from tui.view.state import Line
from tui.widgets.border_text import set_subtitle
from tui.widgets.newest_reading import newest_reading
from tui.widgets.plot import BarPlot
from tui.widgets.screen_bars import model_cost
from tui.widgets.table import Row, Table, rows_of
from tui.widgets.text_lines import TextPane

NO_RUN = "no run yet"
CHECKED = ("checks", "log")
"""The panes that have no room beside the others on a narrow screen."""


class OpsScreen(FramedScreen):
    """Checks and log on the left; models, their rates, runs on the right."""

    MODE = OPS
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(OPS)]
    TABLES = ("runs",)
    PANES = (*CHECKED, "models", "rates", "runs", "durations")

    def __init__(self) -> None:
        super().__init__()
        self._checks_shown = False
        """True where a narrow screen shows checks and log in the place of the rest."""
        self._shown: tuple[object, ...] = ()
        self._operations = Operations()
        self._checked: str | None = None
        """The run after which the desk was checked; empty for the time before the first."""
        self._scheduled = ""
        self._logged: tuple[Line, ...] | None = None
        self._earlier: tuple[str, tuple[Line, ...]] = "", ()
        """The run that the desk's log begins with, and the log of the runs before it."""

    def compose_body(self) -> ComposeResult:
        """Mount the schedule and the panes."""
        yield Static("", id="schedule", markup=False)
        with Horizontal(id="ops", classes="part"):
            with Vertical(id="ops-left", classes="part half"):
                yield Table(CHECKS, title="Checks", empty="checking", id="checks", classes="pane")
                yield TextPane(title="Log", id="log", classes="pane")
            with Vertical(id="ops-right", classes="part half"):
                yield Table(MODELS, title="Models today", empty="no call yet", id="models", classes="pane")
                yield Table(
                    RATES,
                    title="Rates",
                    empty="no calls this month: this shows the last minute",
                    id="rates",
                    classes="pane",
                )
                yield Table(RUNS, title="Runs", empty=OPENING, id="runs", classes="pane")
                yield BarPlot(id="durations", title="Seconds per run", classes="pane", point="run")

    def on_mount(self) -> None:
        """Focus the runs."""
        self.focus_pane("runs")

    def has_room_for(self, pane: Widget) -> bool:
        """True for the part that is shown, but for the rates of a low screen, and the seconds of all but a large one or
        where no run took any."""
        tall = self.size.height >= TALL
        if self.form is Layout.NARROW and (pane.id in CHECKED) is not self._checks_shown:
            return False
        timed = tall and self.form is Layout.WIDE and self.has_class("-timed")
        return {"rates": tall, "durations": timed}.get(str(pane.id), True)

    def show_body(self, view: Snapshot) -> None:
        """Read again where something was written; check once, after each run, and again with R."""
        if not view.sources or view.now is None:
            return
        if view.desk.log_from != self._earlier[0]:
            self._earlier = view.desk.log_from, ()
            self._read_log(view)
        lines = (*self._earlier[1], *view.desk.lines)
        if lines != self._logged:
            self._logged = lines
            self.query_one("#log", TextPane).show(log_text(lines))
        acts = not self.desk_app.settings.read_only
        if (schedule := schedule_text(view, view.now, self._operations.runs, acts=acts)) != self._scheduled:
            self._scheduled = schedule
            self.query_one("#schedule", Static).update(schedule)
        # Checks are of this machine: they have no past.
        now = "" if view.place is None else ", as of now"
        set_subtitle(self.query_one("#checks", Table), f"paperdesk doctor{now}")
        shown = (view.sources[0], view.desk.logged, view.desk.running, view.now.date())
        if shown != self._shown:
            self._shown = shown
            self._read(view, view.now)
        present = self.desk_app.bridge.present().desk
        ran = self._checked is not None and (present.running or present.run == self._checked)
        if not ran and view.opened is not None:
            self._checked = present.run
            self._check()

    def action_part(self) -> None:
        """Show the next part: checks and log, where they have no room beside the rest, then what is remembered."""
        self._checks_shown = self.form is Layout.NARROW and not self._checks_shown
        self.focus_pane("checks" if self._checks_shown else "runs")
        if not self._checks_shown:
            self.desk_app.switch_mode(MEMORY)

    def action_refresh(self) -> None:
        """Check the desk again, and notify that it was done: what was found may be the same."""
        if self._view.opened is not None:
            self._check(notify=True)

    def contexts(self) -> dict[str, object]:
        """Those of the run under the cursor."""
        return {**super().contexts(), "decided": self.query_one("#runs", Table).cursor_key}

    def action_why(self) -> None:
        """Open the trail of the latest decision of the run under the cursor."""
        if run := self.query_one("#runs", Table).cursor_key:
            self.open_trail(partial(latest_of_run, run=run))
        else:
            self.notify(NO_RUN, timeout=3)

    @on(Table.Opened, "#runs")
    def _run_opened(self, event: Table.Opened) -> None:
        """Go back to the end of a run."""
        run = next((one for one in self._operations.runs if one.id == event.key), None)
        if run is not None and run.session is not None and (playback := self._in_past()):
            playback.jump_to(run.session)

    @on(Table.Opened, "#checks")
    def _check_opened(self, event: Table.Opened) -> None:
        """Show a finding whole."""
        row = next(row for row in event.table.rows if row.key == event.key)
        self.app.push_screen(ReadingScreen(row.cells[2].text, Content(row.cells[3].text)))

    @work(group="checks", exclusive=True, exit_on_error=False)
    async def _check(self, notify: bool = False) -> None:
        opened, table = self._view.opened, self.query_one("#checks", Table)
        assert opened is not None
        try:
            findings = await opened.ask.checks()
        except PaperdeskError as error:
            table.show([], str(error))
            return
        ranked = sorted(findings, key=lambda one: ("fail", "note", "ok").index(one.state))
        table.show(rows_of(CHECKS, ranked, lambda one: f"{one.area}|{one.name}"))
        failed = sum(one.state == "fail" for one in findings)
        table.entitle(f"Checks  {len(findings)}, {failed} failed")
        if notify:
            self.notify(f"checked: {len(findings)}, {failed} failed", timeout=3)

    @newest_reading
    async def _read(self, view: Snapshot, now: datetime) -> None:
        assert view.opened is not None
        try:
            found = await view.opened.ask.read(view.sources[0], lambda records, _: operations_of(records, now))
        except PaperdeskError as error:
            self.query_one("#runs", Table).show([], str(error))
            return
        self._show_operations(found, view)

    @work(group="log", exclusive=True, exit_on_error=False, description="log")
    async def _read_log(self, view: Snapshot) -> None:
        from engine.reports.documents.opening import earlier_events

        run, opened = view.desk.log_from, view.opened
        assert opened is not None
        try:
            events = await opened.ask.read(view.sources[0], lambda records, _: earlier_events(records, run))
        except PaperdeskError:  # what is wrong with a journal is said where its runs are read
            return
        self._earlier = run, log_of(events)

    def _show_operations(self, found: Operations, view: Snapshot) -> None:
        self._operations = found
        runs = self.query_one("#runs", Table)
        runs.show(run_rows(found), NO_RUN)
        runs.entitle(f"Runs  {last_by_cron(found)}".strip())
        self.query_one("#rates", Table).show(rows_of(RATES, found.rates, lambda one: one.model))
        took = [(str(one.session or one.started.date()), one.took) for one in found.runs[::-1] if one.took is not None]
        seconds = [length / timedelta(seconds=1) for _, length in took]
        self.query_one("#durations", BarPlot).show(PlotData({"seconds": seconds}, [label for label, _ in took]))
        if self.mark("-timed", any(seconds), "runs"):
            self.place_panes()
        models = self.query_one("#models", Table)
        shown = found.today or found.total
        models.show(rows_of(MODELS, shown, lambda one: f"{one.model}|{one.agent}"))
        models.entitle("Models today" if found.today else "Models so far")
        limit = None if view.opened is None else view.opened.usd_per_day
        spent = found.spent_today
        set_subtitle(models, budget_meter(spent, limit, model_cost(view, spent)))


def schedule_text(view: Snapshot, now: datetime, runs: Sequence[DeskRun], *, acts: bool = True) -> str:
    """The session that is to be decided, or is by the `runs` of the desk, and the app's next run or the command that
    runs the desk, with `acts` also the key that does; of a recorded history, which has no schedule, its session."""
    opened = view.opened
    if view.place is not None:
        return f"{view.place.name} as of session {view.place.session}: nothing is due in the past"
    if opened is None or view.market is None or view.market.calendar is None:
        return ""
    closed = last_to_decide(view.market.calendar, opened.symbols, now)
    at_work, decided = view.desk.running and view.desk.session == closed, is_decided(closed, runs)
    state = "is being decided" if at_work else "is decided" if decided else "is due"
    key = ("n, or " if opened.moves_on else "r, or ") if acts else ""
    next_run = f"{key}paperdesk --daily by cron"
    if opened.schedule is not None:
        coming = next_run_at(view.market.calendar, opened.schedule, now)
        next_run = f"the app runs the next cycle at {coming:%Y-%m-%d %H:%M} UTC"
    elif acts and decided and opened.moves_on:
        next_run = "n runs the next session"
    if view.controls.paused is not None:
        next_run = f"PAUSED {halt_words(row_json.halt(view.controls.paused) or {})}: press p to resume"
    return f"session {closed} {state}; {next_run}"


METER = 10
"""Cells of the day's budget."""
_STATES: Mapping[str, Cell] = {"ok": Cell("ok", "up"), "note": Cell("note", "warn"), "fail": Cell("FAIL", "down")}
CHECKS = (
    Column("", lambda one: _STATES[one.state], max_width=4),
    Column("AREA", "area", ink="muted", max_width=12, drop_order=1),
    Column("CHECK", "name", ink="strong", max_width=22),
    Column("FOUND", "detail", stretch=True, min_width=12),
)
MODELS = (
    Column("MODEL", "model", ink="strong", max_width=24),
    Column("AGENT", "agent", max_width=24),
    Column("CALLS", "calls", count),
    Column("KEPT", "recorded", count, "muted", drop_order=4),
    Column("FAILED", "failed", count, warn_ink, drop_order=2),
    Column("SILENT", "abstained", count, warn_ink, drop_order=3),
    Column("TOKENS", "tokens", count, drop_order=1),
    Column("CACHED", "cached", "{:.0%}".format, "muted", drop_order=1),
    Column("TIER", "tier", ink="muted", max_width=8, drop_order=3),
    Column("COST", lambda one: _cost(one.cost), str),
    Column("SEC", "latency", "{:.1f}".format, "muted", drop_order=2),
)
RUNS = (
    Column("STARTED", lambda one: f"{one.started:%m-%d %H:%M:%S}"),
    Column("KIND", "kind", max_width=10, drop_order=1),
    Column("SESSION", "session"),
    Column("TOOK", "took", lambda took: amounts.minutes(took.total_seconds()), "muted", drop_order=2),
    Column("ENDED", "outcome", ink=lambda outcome: "text" if outcome == "done" else "warn", max_width=12),
    Column("EXIT", "exit_code", str, "muted", drop_order=2),
    Column("COST", "cost", amounts.cost, "muted", drop_order=3),
    Column("BY", "trigger", ink="muted", max_width=8, drop_order=4),
    Column("DETAIL", "detail", ink="muted", stretch=True, min_width=10, drop_order=4),
)
RATES = (
    MODELS[0],
    Column("REQ/MIN", "requests", count),
    Column("TOK/MIN", "tokens", count),
    Column("429", "limited", count, warn_ink),
    Column("TODAY $", lambda one: _cost(one.paid), str),
    Column("MONTH $", lambda one: _cost(one.paid_month), str, stretch=True, min_width=7),
)


def _cost(dollars: Decimal | None) -> Cell:
    return Cell(amounts.cost(dollars), order=dollars)


def budget_meter(spent: Decimal | None, limit: Decimal | None, figure: str) -> str:
    """The cost of today's calls of the day's budget, `figure` in words: `$1.20, 24% of today's $5.00 ▰▰▰▱▱▱▱▱▱▱`.
    What a narrow border cuts off is the meter."""
    if not limit:
        return figure
    budget = f"${amounts.money(limit)}"
    if spent is None:
        return f"{figure} (today's budget: {budget})"
    part = min(Decimal(1), spent / limit)
    cells = math.ceil(part * METER)
    return f"{figure}, {part:.0%} of today's {budget} {'▰' * cells}{'▱' * (METER - cells)}"


def run_rows(operations: Operations) -> list[Row]:
    """A row per run, the latest first. A desk has one run at work at most, and that is its latest."""
    ends = ("no end", *["killed"] * len(operations.runs))
    ended = (replace(one, outcome=one.outcome or end) for one, end in zip(operations.runs, ends, strict=False))
    return rows_of(RUNS, ended, lambda one: one.id)


def last_by_cron(operations: Operations) -> str:
    """The latest run that cron started, as `last by cron 2026-11-25 00:00 UTC, done`; empty without one."""
    found = operations.by_cron
    return "" if found is None else f"last by cron {found.started:%Y-%m-%d %H:%M} UTC, {found.outcome or 'no end'}"
