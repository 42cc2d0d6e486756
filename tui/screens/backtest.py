"""Backtest: a form, progress with the time left, and the runs of any day: curves, drawdowns, trades and reports."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input

from engine.errors import PaperdeskError
from engine.reports.documents.runs import StoredKind
from engine.reports.tables import TRADES
from tui.desk.twins import report_action
from tui.screens.confirm import Confirmation, ConfirmScreen
from tui.screens.frame import TALL, Layout
from tui.screens.run_keys import COMPARED, RunKeys
from tui.settings.keys import BACKTEST, bindings
from tui.view.backtest_form import arguments_of
from tui.view.backtest_run import RUNNING, BacktestState, StartBacktest, StopBacktest
from tui.view.recorded_run import curves, recorded, report, up_to, with_document
from tui.view.snapshot import Snapshot
from tui.widgets.form_pane import FormPane
from tui.widgets.pane_text import TextPane
from tui.widgets.plot import CurvePlot
from tui.widgets.run_results import RunProgress, columns_of, result_rows
from tui.widgets.table import Table, rows_of

DRAW = 0.5
"""Seconds between two drawings of a growing curve."""
PARTS = ("curve", "fall", "trades", "report")
"""Panes that take turns over the results."""


class BacktestScreen(RunKeys):
    """The screen to start, watch, resume, compare and export backtests."""

    MODE = BACKTEST
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(BACKTEST)]
    TABLE = "results"
    PANES = ("form", "run-fall", *PARTS, "results")

    def __init__(self) -> None:
        super().__init__()
        self._part = PARTS[0]
        self._drawn: tuple[object, ...] = ()
        self._drawn_at = 0.0
        self._proposed = False
        self._asked: set[str] = set()
        self._recorded: dict[str, BacktestState] = {}
        """Runs of earlier days by their id, the oldest first; the chosen ones with their documents."""
        self._listed: object = None
        """The session's runs that had ended when the recorded ones were read."""

    def compose_body(self) -> ComposeResult:
        """Mount the form on the left; progress, the part that is shown and the results on the right."""
        with Horizontal(id="backtest"):
            with Vertical(id="setting", classes="column"):
                yield FormPane(id="form", classes="pane")
                yield CurvePlot(id="run-fall", classes="pane")
            with Vertical(id="run", classes="column"):
                yield RunProgress(id="progress")
                yield CurvePlot(id="curve", classes="pane")
                yield CurvePlot(id="fall", classes="pane")
                yield Table(TRADES, title="Trades", empty="no trades", id="trades", classes="pane")
                yield TextPane(title="Report", id="report", classes="pane")
                yield Table((), title="Results", empty="no runs yet", id="results", classes="pane")

    def on_mount(self) -> None:
        """Focus the results, so that keys act at once: the form is entered with e or tab."""
        for part, name in zip(PARTS, ("Equity", "Drawdown", "Trades", "Report"), strict=True):
            self.query_one(f"#{part}").border_title = name
        self.query_one("#run-fall").border_title = "Drawdown"
        self._show_results(())
        self.focus_pane("results")

    def has_room_for(self, pane: Widget) -> bool:
        """True for the form, the results and the part that is chosen, and for the drawdown on a large screen."""
        if pane.id == "run-fall":
            return self.form is Layout.WIDE and self.size.height >= TALL and bool(self._chosen)
        return pane.id not in PARTS or pane.id == self._part

    # What is shown

    @property
    def _runs(self) -> list[BacktestState]:
        """All runs, the oldest first: those of this session as they are now."""
        own = {run.spec.run for run in self._view.backtests}
        return [*(run for name, run in self._recorded.items() if name not in own), *self._view.backtests]

    def show_body(self, view: Snapshot) -> None:
        """Show progress and curve of the chosen run, and the table of all."""
        if view.opened is not None and not self._proposed:
            self._proposed = True
            self.query_one(FormPane).propose(view.opened.default_backtest, view.opened.default_costs)
        ended = tuple(run.spec.run for run in view.backtests if run.status != RUNNING)
        if view.opened is not None and self._listed != ended:
            self._listed = ended
            self._list()
        runs = self._runs
        if runs and not any(self._chosen == run.name for run in runs):
            self._choose(runs[-1].name)
        run = self._run
        until = None if run is None else self._place_in(run)
        came_to = run if run is None or until is None else up_to(run, until, self._view.sources[0].decisions)
        self.query_one(RunProgress).show(came_to)
        self._show_results(runs)
        self._draw(runs, run, until)
        for one in view.backtests:
            if not one.question:
                self._asked.discard(one.spec.run)  # it may be resumed, and ask again
            elif one.spec.run not in self._asked:
                self._asked.add(one.spec.run)
                self._ask(one)

    @work(group="list", exclusive=True, exit_on_error=False)
    async def _list(self) -> None:
        """Read which runs lie on this machine."""
        assert self._view.opened is not None
        try:
            stored = await self._view.opened.ask.runs(StoredKind.BACKTEST)
        except PaperdeskError as error:
            self.notify(str(error), markup=False, severity="error", timeout=5)
            return
        self._stored = {run.id: run for run in reversed(stored)}
        shown = recorded(self._stored.values())
        self._recorded = {name: self._recorded.get(name, run) for name, run in shown.items()}
        unread = sum(bool(run.problem) for run in stored)
        results = self.query_one("#results", Table)
        results.border_subtitle = f"{unread} cannot be read: paperdesk runs list" if unread else ""
        self.show_view(self._view)

    @work(group="document", exclusive=True, exit_on_error=False)
    async def _read(self, run: str) -> None:
        """Read the document of a recorded run."""
        assert self._view.opened is not None
        try:
            document = await self._view.opened.ask.run(run)
        except PaperdeskError as error:
            self._recorded[run] = replace(self._recorded[run], error=str(error))
        else:
            self._recorded[run] = with_document(self._recorded[run], document)
        self._drawn = ()
        self.show_view(self._view)

    def _choose(self, name: str) -> None:
        """Make a run the chosen one, and read what is not known of it yet."""
        first = not self._chosen
        self._chosen = name
        if first:
            self.place_panes()
        run = self._run
        unread = run is not None and run.document is None and not run.error
        if run is not None and unread and run == self._recorded.get(run.spec.run) and self._view.opened is not None:
            self._read(run.spec.run)

    def _ask(self, run: BacktestState) -> None:
        """Ask before a run whose models may cost much."""

        def answered(key: str | None) -> None:
            if key:
                self.desk_app.bridge.go_on(run.spec.run)
            else:
                self.desk_app.bridge.send(StopBacktest(run.spec.run))

        question = Confirmation(f"Run {run.name}?", run.question, (("y", "run"),))
        self.app.push_screen(ConfirmScreen(question), answered)

    def _show_results(self, runs: Sequence[BacktestState]) -> None:
        table = self.query_one("#results", Table)
        table.entitle(f"Results{self._beyond('runs')}")
        columns = columns_of(runs)
        table.set_columns(columns)
        table.show(result_rows(runs, self._chosen, columns, self._marked))

    def _draw(self, runs: Sequence[BacktestState], run: BacktestState | None, until: date | None) -> None:
        if run is None:
            return
        others = self._beside(runs, run)
        known = len(run.curve), run.status, len(run.baseline), until
        drawn = self._part, run.name, known, self._beyond("run"), tuple(one.name for one in others)
        now = time.monotonic()
        plot = self.query_one("#fall" if self._part == "fall" else "#curve", CurvePlot)
        waits = run.running and (now - self._drawn_at < DRAW or plot.drawing)
        if drawn == self._drawn or waits:
            return
        self._drawn, self._drawn_at = drawn, now
        self._draw_part(run, others, plot, until)

    def _place_in(self, run: BacktestState) -> date | None:
        """The session that is shown of a run whose history is gone through; None at its end, and for another run."""
        place, sources = self._view.place, self._view.sources
        within = place is not None and place.number < place.count and bool(sources) and sources[0].run == run.spec.run
        return place.session if place is not None and within else None

    def _draw_part(
        self, run: BacktestState, others: Sequence[BacktestState], plot: CurvePlot, until: date | None
    ) -> None:
        part = f", {run.part}" if run.part and run.running else f" to {until}" if until else ""
        # Drawn once there is room for it.
        self.query_one("#run-fall", CurvePlot).show(curves(run, (), falls=True, until=until))
        if self._part in ("curve", "fall"):
            plot.show(curves(run, others, falls=self._part == "fall", until=until))
            what = "% below the highest" if self._part == "fall" else "Equity"
            plot.border_title = Content(f"{what}  {run.name}{part}")
        elif self._part == "trades":
            trades = self.query_one("#trades", Table)
            none = "no trades" if run.document else "known at the end of the run"
            made = [one for one in (run.document or {"trades": ()})["trades"] if one["session"] <= str(until or "9999")]
            trades.show(rows_of(TRADES, made[::-1]), none)
            trades.border_title = Content(f"Trades  {run.name}{part}")
        else:
            pane = self.query_one("#report", TextPane)
            stored = self._stored.get(run.spec.run)
            plain = self.app.has_class("-plain")
            pane.show(report(run, stored, pane.text_width, plain=plain), top=True)
            pane.border_title = Content(f"Report  {run.name}{self._beyond('run')}")

    def _beside(self, runs: Sequence[BacktestState], run: BacktestState) -> Sequence[BacktestState]:
        """The runs that are drawn with one: those that are marked, else the latest of this session."""
        pool = [one for one in runs if one.name in self._marked] if self._marked else self._view.backtests
        return [one for one in pool if one.name != run.name and one.curve][-COMPARED + 1 :]

    # Keys

    @on(Table.Moved, "#results")
    def _moved(self, event: Table.Moved) -> None:
        self._choose(event.key.partition("/")[0])
        self.show_view(self._view)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_start()

    def action_pane(self, step: int) -> None:
        """Go to the next field inside the form, else to the next pane."""
        if not self.query_one(FormPane).step(step):
            super().action_pane(step)

    def action_part(self) -> None:
        """Show the next part over the results: equity, drawdown, trades, report."""
        self._part, self._drawn = PARTS[(PARTS.index(self._part) + 1) % len(PARTS)], ()
        if self.single:
            self.focus_pane(self._part)
        self.place_panes()
        self.call_after_refresh(lambda: self.show_view(self._view))

    def action_edit(self) -> None:
        """Go to the form."""
        self.focus_pane("form")

    def action_back(self) -> None:
        """Leave a field."""
        if isinstance(self.focused, Input):
            self.focus_pane("results")
        else:
            super().action_back()

    def action_start(self) -> None:
        """Start the backtest of the form, or show beside each field what is wrong with it."""
        present = self.desk_app.bridge.present()
        if present.opened is None or present.now is None:
            self.notify("the desk is still opening", timeout=3)
            return
        spec = self.query_one(FormPane).read(present.opened.default_backtest, present.now.date())
        if spec is None:
            self.place_panes()
        elif self._send(StartBacktest(spec)):
            self._show_begun()
            report_action(self.app, "a backtest is asked for", *arguments_of(spec))

    def _show_begun(self) -> None:
        view = self.desk_app.snapshot()
        self._chosen = view.backtests[-1].name
        self.focus_pane("curve" if self.single else "results")
        self.show_view(view)
        self.query_one("#results", Table).point_at(self._chosen)
