"""Backtest: a form, progress with the time left, a live equity curve, and the results of several runs compared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import date
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from engine.messages.commands import StartBacktest, StopBacktest
from tui.backtest_form import FIELDS, deciders, filled, values_of
from tui.backtest_run import RUNNING, BacktestState
from tui.keys import BACKTEST, bindings
from tui.screens.confirm import Confirmation, ConfirmScreen
from tui.screens.frame import FramedScreen
from tui.snapshot import Snapshot
from tui.widgets.plot import CurvePlot, PlotData
from tui.widgets.run_results import RunProgress, columns_of, figures_of, rows_of
from tui.widgets.table import Table

DRAW = 0.5
"""Seconds between two drawings of a growing curve."""
NL = "\n  "
COMPARED = 3
"""Runs that are drawn together at most."""


class BacktestScreen(FramedScreen):
    """The screen to start, watch and compare backtests."""

    MODE = BACKTEST
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(BACKTEST)]
    TABLE = "results"
    PANES = ("form", "curve", "results")

    def __init__(self) -> None:
        super().__init__()
        self._chosen = ""
        self._drawn: tuple[object, ...] = ()
        self._drawn_at = 0.0
        self._proposed = False
        self._asked: set[str] = set()

    def compose_body(self) -> ComposeResult:
        """Mount the form on the left; progress, curve and results on the right."""
        with Horizontal(id="backtest"):
            with VerticalScroll(id="form", classes="pane column", can_focus=False):
                for field in FIELDS:
                    with Horizontal(classes="field"):
                        yield Static(field.label, classes="label", markup=False)
                        yield Input(placeholder=field.hint, id=f"field-{field.id}", compact=True)
                    yield Static("", classes="complaint", id=f"wrong-{field.id}", markup=False)
                with Horizontal(classes="field"):
                    yield Static("Costs", classes="label", markup=False)
                    yield Static("", id="costs", markup=False)
                yield Static("", id="deciders", markup=False)
            with Vertical(id="run", classes="column"):
                yield RunProgress(id="progress")
                yield CurvePlot(id="curve", classes="pane")
                yield Table((), title="Results", empty="no runs yet", id="results", classes="pane")

    def on_mount(self) -> None:
        """Focus the results, so that keys act at once: the form is entered with e or tab."""
        self.query_one("#form").border_title = "Backtest"
        self.query_one("#curve").border_title = "Equity"
        self._show_results(())
        self.focus_pane("results")
        self._list_deciders()

    @work(exclusive=True, exit_on_error=False)
    async def _list_deciders(self) -> None:
        presets, strategies = await asyncio.to_thread(deciders)
        self.query_one("#field-decides", Input).suggester = SuggestFromList([*presets, *strategies])
        self.query_one("#deciders", Static).update(
            f"Agents decide\n  {NL.join(presets)}\nRules decide\n  {NL.join(strategies)}"
        )

    def show_body(self, view: Snapshot) -> None:
        """Show progress and curve of the chosen run, and the table of all."""
        if view.services is not None and not self._proposed:
            self._proposed = True
            for field, text in values_of(view.services.default_backtest).items():
                box = self.query_one(f"#field-{field}", Input)
                box.value = box.value or text
            self.query_one("#costs", Static).update(view.services.default_costs)
        runs = view.backtests
        if runs and not any(self._chosen == run.name for run in runs):
            self._chosen = runs[-1].name
        run = next((one for one in runs if one.name == self._chosen), None)
        self.query_one(RunProgress).show(run)
        self._show_results(runs)
        self._draw(runs, run)
        for one in runs:
            if one.question and one.spec.run not in self._asked:
                self._asked.add(one.spec.run)
                self._ask(one)

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
        figures = figures_of(runs)
        table.set_columns(columns_of(figures))
        table.show(rows_of(runs, self._chosen, figures))

    def _draw(self, runs: Sequence[BacktestState], run: BacktestState | None) -> None:
        if run is None:
            return
        others = [one for one in runs if one.name != run.name and one.document is not None][-COMPARED + 1 :]
        drawn = (run.name, len(run.curve), run.status, len(run.baseline), len(others))
        now = time.monotonic()
        plot = self.query_one(CurvePlot)
        waits = run.status == RUNNING and (now - self._drawn_at < DRAW or plot.drawing)
        if drawn == self._drawn or waits:
            return
        self._drawn, self._drawn_at = drawn, now
        plot.show(curves(run, others))
        part = f", {run.part}" if run.part and run.status == RUNNING else ""
        plot.border_title = f"Equity {run.name}{part}"

    # Keys

    @on(Table.Moved, "#results")
    def _moved(self, event: Table.Moved) -> None:
        self._chosen = event.key.partition("/")[0]
        self.show_view(self._view)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_start()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        if event.input.id is not None:
            self._show_error(event.input.id.removeprefix("field-"), "")

    def action_pane(self, step: int) -> None:
        """Go to the next field inside the form, else to the next pane."""
        boxes = list(self.query(Input))
        if self.focused in boxes and 0 <= (place := boxes.index(self.focused) + step) < len(boxes):
            boxes[place].focus()
        else:
            super().action_pane(step)

    def action_edit(self) -> None:
        """Go to the form."""
        self.focus_pane("form")

    def action_back(self) -> None:
        """Leave a field, then stop what runs."""
        if isinstance(self.focused, Input):
            self.focus_pane("results")
        elif not self._view.trouble and any(run.status == RUNNING for run in self._view.backtests):
            self.action_stop()
        else:
            super().action_back()

    def action_start(self) -> None:
        """Start the backtest of the form, or show beside each field what is wrong with it."""
        services = self._view.services
        if services is None:
            self.notify("the desk is still opening", timeout=3)
            return
        values = {field.id: self.query_one(f"#field-{field.id}", Input).value for field in FIELDS}
        form = filled(values, services.default_backtest, services.clock.now().date(), *deciders())
        for field in FIELDS:
            self._show_error(field.id, form.complaints.get(field.id, ""))
        if form.spec is None:
            self.focus_pane("form")
            self.query_one(f"#field-{next(iter(form.complaints))}", Input).focus()
            return
        refused = self.desk_app.bridge.send(StartBacktest(form.spec))
        if refused:
            self.notify(refused, markup=False, timeout=3)
            return
        view = self.desk_app.bridge.snapshot()
        self._chosen = view.backtests[-1].name
        self.focus_pane("curve" if self.single else "results")
        self.show_view(view)

    def _show_error(self, field: str, text: str) -> None:
        line = self.query_one(f"#wrong-{field}", Static)
        line.update(text)
        line.display = bool(text)

    def action_stop(self) -> None:
        """Stop the run; what it did is kept."""
        running = next((run.spec.run for run in self._view.backtests if run.status == RUNNING), "")
        refused = self.desk_app.bridge.send(StopBacktest(running))
        self.notify(refused or "stopping: what was done is kept", markup=False, timeout=3)


def curves(run: BacktestState, others: Sequence[BacktestState]) -> PlotData:
    """A run beside its baseline and others, over the sessions of its window; during the warm-up alone."""
    own = dict(run.curve)
    if not own:
        return PlotData()
    beside: dict[str, Mapping[date, float]] = {}
    if run.part != "warm-up":
        beside = {run.baseline_name: run.baseline} | {one.name: dict(one.curve) for one in others}
    axis = sorted({*own, *beside.get(run.baseline_name, ())})
    shown = {name: values for name, values in beside.items() if any(day in values for day in axis)}
    series = {name: [values.get(day) for day in axis] for name, values in ({run.name: own} | shown).items()}
    return PlotData(series, [day.isoformat() for day in axis])
