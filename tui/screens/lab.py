"""Lab: backtests with a form, progress with the time left, and the runs of any day: curves, drawdowns, trades, reports
and comparisons; studies, and the books of a desk whose owners have some."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from engine.domain.text import counted
from engine.errors import PaperdeskError
from engine.reports import amounts
from engine.reports.documents.runs import StoredKind, StoredRun
from engine.reports.table import Cell, Column, count, sign_ink
from engine.reports.tables import TRADES
from tui.desk.desk_app import report_action
from tui.screens.ask import AskScreen
from tui.screens.confirm import Confirmation, ConfirmScreen
from tui.screens.frame import TALL, FramedScreen, Layout
from tui.screens.reading import ReadingScreen, page_width
from tui.settings.keys import LAB, bindings
from tui.view.backtest_form import arguments_of
from tui.view.backtest_run import (
    DONE,
    FAILED,
    RUNNING,
    STOPPED,
    BacktestState,
    ResumeBacktest,
    StartBacktest,
    StopBacktest,
)
from tui.view.desk_port import Source
from tui.view.recorded_run import comparison, curves, recorded, report, up_to, with_document
from tui.view.snapshot import Snapshot
from tui.widgets.border_text import set_subtitle, set_title
from tui.widgets.form_pane import FormPane
from tui.widgets.plot import CurvePlot
from tui.widgets.table import Row, Table, rows_of

COMPARED = 3
"""Runs that are drawn together at most."""


DRAW = 0.5
"""Seconds between two drawings of a growing curve."""
PARTS = ("curve", "fall", "trades")
"""Panes that take turns over the results."""

STUDY, BOOKS = "study ", "books of the desk"
"""Rows below the runs, the first before a name."""


class LabScreen(FramedScreen):
    """The screen to start, watch, resume, compare and export backtests."""

    MODE = LAB
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(LAB)]
    TABLES = ("results",)
    PANES = ("form", "run-fall", *PARTS, "results")

    def __init__(self) -> None:
        super().__init__()
        self._chosen = ""
        self._part = PARTS[0]
        self._stored: dict[str, StoredRun] = {}
        self._marked: list[str] = []
        self._drawn: tuple[object, ...] = ()
        self._drawn_at = 0.0
        self._proposed = False
        self._asked: set[str] = set()
        self._recorded: dict[str, BacktestState] = {}
        """Runs of earlier days by their id, the oldest first; the chosen ones with their documents."""
        self._listed: object = None
        """The session's runs that had ended when the recorded ones were read."""
        self._studies: Sequence[Mapping[str, Any]] = ()

    def compose_body(self) -> ComposeResult:
        """Mount the form on the left; progress, the part that is shown and the results on the right."""
        with Horizontal(id="backtest", classes="part"):
            with Vertical(id="setting", classes="column"):
                yield FormPane(id="form", classes="pane")
                yield CurvePlot(id="run-fall", title="Drawdown", classes="pane")
            with Vertical(id="run", classes="column"):
                yield RunProgress(id="progress")
                yield CurvePlot(id="curve", title="Equity", classes="pane", empty="no run is chosen")
                yield CurvePlot(id="fall", title="Drawdown", classes="pane")
                yield Table(TRADES, title="Trades", id="trades", classes="pane")
                yield Table(columns_of(()), title="Results", empty="no runs yet", id="results", classes="pane")

    def on_mount(self) -> None:
        """Focus the results, so that keys act at once: the form is entered with e or tab."""
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

    @property
    def _run(self) -> BacktestState | None:
        return next((one for one in self._runs if one.name == self._chosen), None)

    def _beyond(self, what: str) -> str:
        """The end of a title whose figures go on beyond the place in the past that is shown."""
        place = self._view.place
        return f", the whole {what}" if place is not None and place.number < place.count else ""

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
            elif one.spec.run not in self._asked and self.is_active:  # over a dialog its keys would answer
                self._asked.add(one.spec.run)
                self._ask(one)

    @work(group="list", exclusive=True, exit_on_error=False)
    async def _list(self) -> None:
        """Read which runs lie on this machine."""
        assert self._view.opened is not None
        stored = await self._view.opened.ask.runs(StoredKind.BACKTEST)
        try:
            self._studies = await asyncio.to_thread(self.desk_app.bridge.studies)
        except PaperdeskError as error:  # its runs stand by themselves
            self.notify(str(error), markup=False, severity="error", timeout=6)
        within = {run for one in self._studies for run in one["runs"]}
        self._stored = {run.id: run for run in reversed(stored) if run.id not in within}
        shown = recorded(self._stored.values())
        self._recorded = {name: self._recorded.get(name, run) for name, run in shown.items()}
        unread = sum(bool(run.problem) for run in stored)
        results = self.query_one("#results", Table)
        set_subtitle(results, f"{unread} cannot be read: paperdesk runs list" if unread else "")
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
        table.show(result_rows(runs, self._chosen, columns, self._marked, self._pages()))

    def _pages(self) -> Mapping[str, str]:
        """The rows below the runs, by name, with how far each is: the books of owners where they keep some, studies."""
        owners = max(map(len, self._view.desk.decisions.values()), default=0)
        books = {BOOKS: f"{owners} owners"} if owners > 1 else {}
        return {**books, **{name: _how_far(study) for name, study in self._named().items()}}

    def _named(self) -> Mapping[str, Mapping[str, Any]]:
        """The studies by the names of their rows; of several files of one name by their paths."""
        names = [one["study"] for one in self._studies]
        return {f"{STUDY}{one['study' if names.count(one['study']) == 1 else 'file']}": one for one in self._studies}

    @work(group="background", exit_on_error=False)
    async def _open_page(self, name: str, width: int) -> None:
        text = await asyncio.to_thread(self._page, name, width)
        self.app.push_screen(ReadingScreen(f"{name[0].upper()}{name[1:]}", Content(text)))

    def _page(self, name: str, width: int) -> str:
        """The text of one of them in so many columns. Raises as the use cases do."""
        from tui.text.runs_text import comparison_lines
        from tui.text.study_text import study_lines

        bridge = self.desk_app.bridge
        if name == BOOKS:
            return "\n".join(comparison_lines(bridge.books(self._view.sources[0]), width))
        return "\n".join(study_lines(bridge.study(self._named()[name]["record"]), width))

    def _draw(self, runs: Sequence[BacktestState], run: BacktestState | None, until: date | None) -> None:
        if run is None:
            return
        others = self._beside(runs, run)
        known = len(run.curve), run.status, run.document is not None, len(run.baseline), until
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
            set_title(plot, f"{what}  {run.name}{part}")
        else:
            trades = self.query_one("#trades", Table)
            none = "no trades" if run.document else "known at the end of the run"
            made = [one for one in (run.document or {"trades": ()})["trades"] if one["session"] <= str(until or "9999")]
            trades.show(rows_of(TRADES, made)[::-1], none)
            set_title(trades, f"Trades  {run.name}{part}")

    def _beside(self, runs: Sequence[BacktestState], run: BacktestState) -> Sequence[BacktestState]:
        """The runs that are drawn with one: those that are marked, else the latest of this session."""
        pool = [one for one in runs if one.name in self._marked] if self._marked else self._view.backtests
        return [one for one in pool if one.name != run.name and one.curve][-COMPARED + 1 :]

    def contexts(self) -> dict[str, object]:
        """Those of the chosen run, and runs that can be compared; a finished one can be gone through."""
        shown, run, source = super().contexts(), self._run, self.past_source()
        return {
            "record": shown.pop("record") or source,
            "decided": source and run is not None and run.document and run.document.get("decisions"),
            "row": run,
            "report": run or self._pages(),
            "runs": self._compared(),
            "stopped": run is not None and run.status == STOPPED,
            **shown,
        }

    def past_source(self) -> Source | None:
        """The record of the chosen run, once it is finished."""
        view, run = self.desk_app.bridge.present(), self._run
        if run is None:
            return None
        stored = self._stored.get(run.spec.run)
        own = next((source for source in view.sources if source.run == run.spec.run), None)
        return own or (None if stored is None or run.running else Source(run.name, stored.path, stored.id))

    def action_why(self) -> None:
        """Open the trail of the decision that led to the trade under the cursor; without one of the run's latest."""
        from engine.reports.documents.trail import decided_trade, latest_of_run

        run, source = self._run, self.past_source()
        if run is None or source is None:
            self.notify("no run is chosen" if run is None else "known at the end of the run", timeout=3)
            return
        source = next((one for one in self._view.sources if one.run == source.run), source)
        row = self.query_one("#trades", Table).cursor_key if self._part == "trades" else ""
        trade = run.document["trades"][int(row)] if row and run.document else None
        if trade is not None:
            self.open_trail(partial(decided_trade, trade=trade), source)
        else:
            self.open_trail(partial(latest_of_run, run=run.spec.run), source)

    def action_stop(self) -> None:
        """Stop the run; what it did is kept."""
        running = next((run.spec.run for run in self._view.backtests if run.running), "")
        if self._send(StopBacktest(running)):
            self.notify("stopping: finished work is kept", timeout=3)

    def action_resume(self) -> None:
        """Go on with the chosen run, which was stopped."""
        run = self._run
        if run is None or run.status != STOPPED:
            self.notify("only a stopped run can be resumed", timeout=3)
        elif self._send(ResumeBacktest(run.spec.run, run.name)):
            self._show_begun()
            report_action(self.app, "the backtest resumes", "backtest", "--resume", run.spec.run)

    def action_mark(self) -> None:
        """Mark the chosen run to be drawn and compared with others, or take the mark away."""
        if not self._chosen:
            return
        if self._chosen in self._marked:
            self._marked.remove(self._chosen)
        else:
            self._marked = [*self._marked, self._chosen][-COMPARED:]
        self.show_view(self._view)

    def _compared(self) -> list[str]:
        """The names of the runs to compare, the chosen one last; none where there is nothing beside it."""
        names = [run.name for run in self._runs]
        if self._chosen not in names:
            return []
        before = names[: names.index(self._chosen)][-1:]
        beside = [name for name in self._marked if name != self._chosen] or before
        return [*beside, self._chosen] if beside else []

    def action_compare(self) -> None:
        """Open the comparison of the chosen run with those that are marked, else with the run before it."""
        compared = self._compared()
        if not compared:
            self.notify("choose a run, and mark another with space", timeout=3)
            return
        ids = {run.name: run.spec.run for run in self._runs}
        self._compare({ids[name]: name for name in compared})

    @work(group="background", exit_on_error=False)
    async def _compare(self, names: Mapping[str, str]) -> None:
        assert self._view.opened is not None  # its runs are listed
        short = {run: name.partition(" ")[0] for run, name in names.items()}  # as many as can be beside each other
        names = short if len(set(short.values())) == len(short) else names
        text = comparison(await self._view.opened.ask.run(*names), names, page_width(self.app.size.width))
        self.app.push_screen(ReadingScreen(f"Comparison{self._beyond('runs')}", text))

    def action_export(self) -> None:
        """Ask for a new folder, and write the chosen run there."""
        run = self._run
        if run is None:
            return

        def answered(text: str | None) -> None:
            if text:
                self._export(run.spec.run, Path(text).expanduser().absolute())

        self.app.push_screen(AskScreen("Export into a new folder", "DIR", text=f"~/{run.spec.run}"), answered)

    @work(group="background", exit_on_error=False)
    async def _export(self, run: str, folder: Path) -> None:
        files = await asyncio.to_thread(self.desk_app.bridge.export, run, folder)
        report_action(self.app, f"{len(files)} files in {folder}", "runs", "export", run, "--to", str(folder))

    @on(Table.Opened, "#results")
    def action_report(self) -> None:
        """Open the report of the run under the cursor, the rows of a study, or the desk's books beside each other."""
        key, room = self.query_one("#results", Table).cursor_key, page_width(self.app.size.width)
        if key in self._pages():
            self._open_page(key, room)
        elif run := self._run:
            text = report(run, self._stored.get(run.spec.run), room, plain=self.app.has_class("-plain"))
            self.app.push_screen(ReadingScreen(f"Report  {run.name}{self._beyond('run')}", text))

    # Keys

    @on(Table.Moved, "#results")
    def _moved(self, event: Table.Moved) -> None:
        if event.key not in self._pages():
            self._choose(event.key.partition("\n")[0])
            self.show_view(self._view)

    def action_pane(self, step: int) -> None:
        """Go to the next field inside the form, else to the next pane."""
        if not self.query_one(FormPane).step(step):
            super().action_pane(step)

    def action_part(self) -> None:
        """Show the next part over the results: equity, drawdown, trades."""
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

    @on(Input.Submitted)
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
            report_action(self.app, "backtest requested", *arguments_of(spec))

    def _show_begun(self) -> None:
        view = self.desk_app.snapshot()
        self._chosen = view.backtests[-1].name
        self.focus_pane("curve" if self.single else "results")
        self.show_view(view)
        self.query_one("#results", Table).point_at(self._chosen)


_STATUS_INKS = {RUNNING: "$primary", DONE: "$success", STOPPED: "$foreground 60%", FAILED: "$error-lighten-1"}


def _metric(name: str, form: Callable[[float], str], ink: Any = "text", title: str = "", order: int = 0) -> Column:
    return Column(title or name.upper(), lambda run: run["metrics"].get(name), form, ink, drop_order=order)


def excess_per_year(run: Mapping[str, Any]) -> float | None:
    """Logarithmic growth a year over buy and hold of the same exposure."""
    excess = (run.get("luck") or {}).get("excess_per_year")
    return None if excess is None else excess["value"]


_FIGURES: tuple[Column, ...] = (
    _metric("total_return", partial(amounts.percent, digits=1), sign_ink, "RETURN", 1),
    _metric("sharpe", amounts.ratio, sign_ink, "SHARPE", 2),
    _metric("max_drawdown", lambda fall: amounts.percent(-fall, 1), "text", "MAX DD", 3),
    _metric("volatility", "{:.1%}".format, "text", "VOL", 4),
    _metric("sortino", amounts.ratio, sign_ink, "SORTINO", 5),
    _metric("win_rate", "{:.1%}".format, "text", "WIN", 6),
    Column("EXCESS/Y", excess_per_year, partial(amounts.percent, digits=1), ink=sign_ink, drop_order=7),
)
"""Figures of the house convention, the most important first."""

GAP = "   "
"""The blanks between two figures of a run's progress."""


def progress_text(run: BacktestState | None, width: int) -> Content:
    """Describe a run in two lines, as much as fits into the second, or the keys that start one."""
    if run is None:
        return Content.assemble(
            ("ctrl+r", "bold $primary"),
            " starts the backtest   ",
            ("e", "bold $primary"),
            " to the form",
            ("\nit runs in parallel with the desk", "$foreground 50%"),
        )
    if run.status == FAILED:
        return Content.assemble((f"{run.name} failed\n", "bold $error-lighten-1"), (run.error, "$warning"))
    left = run.seconds_left
    state = f"{amounts.minutes(left)} left" if left is not None else "" if run.running else run.status
    name, count = f"{run.name}  ", f"  {_done(run)}  "
    cells = max(4, min(40, width - 44, width - len(name) - len(count) - len(state)))
    full = round(run.fraction * cells)
    second = [f"equity {run.curve[-1][1]:,.0f}"] if run.curve else []
    second += [f"trades {run.trades}", "  ".join(f"{name} {count}" for name, count in sorted(run.actions.items()))]
    second += [f"{run.part} {run.session}" if run.session else run.label, run.costs]
    second = [part for part in second if part]
    ends = accumulate(len(part) + len(GAP) for part in second)
    fitting = [part for part, end in zip(second, ends, strict=True) if end - len(GAP) <= width]
    return Content.assemble(
        (name, "bold"),
        ("█" * full, _STATUS_INKS[run.status]),
        ("░" * (cells - full), "$foreground 25%"),
        count,
        (state, _STATUS_INKS[run.status]),
        ("\n" + GAP.join(fitting), "$foreground 60%"),
    )


def _done(run: BacktestState) -> str:
    if run.total:
        return f"{run.fraction:4.0%}  {run.done}/{run.total}"
    # Of a run that was killed nobody knows how many sessions it would have had.
    return "starting" if run.running else counted(len(run.curve), "session") if run.curve else ""


class RunProgress(Static):
    """Two lines over the curve; an error has as many as it takes."""

    def __init__(self, *, id: str) -> None:
        super().__init__("", markup=False, id=id)
        self._run: BacktestState | None = None
        self._shown = ""

    def show(self, run: BacktestState | None) -> None:
        """Show the progress of a run."""
        self._run = run
        self.on_resize()

    def on_resize(self) -> None:
        """Write what fits into the width."""
        text = progress_text(self._run, self.size.width)
        if text.plain != self._shown:
            self._shown = text.plain
            self.update(text)


def columns_of(runs: Sequence[BacktestState]) -> tuple[Column, ...]:
    """The columns: of the latest result the house's choice of figures, or all of a paper's convention; the last are
    dropped first on a narrow screen."""
    documents = [run.document for run in runs if run.document is not None]
    figures = _FIGURES
    if documents and "total_return" not in documents[-1]["metrics"]:
        figures = tuple(_metric(name, amounts.ratio, order=1 + n) for n, name in enumerate(documents[-1]["metrics"]))
    return (
        Column("NAME", "name", max_width=26),
        *figures,
        Column("TRADES", "trades", count, drop_order=5),
        Column("FINAL", "final_value", partial(amounts.money, digits=0), drop_order=3),
        Column("STATE", "state", drop_order=4),
    )


def result_rows(
    runs: Sequence[BacktestState],
    chosen: str,
    columns: Sequence[Column],
    marked: Collection[str],
    pages: Mapping[str, str],
) -> list[Row]:
    """Build the rows, the newest run first; the baselines of the chosen run follow it, runs that are marked have a
    star. Below them those of other `pages`, by name with their state."""
    results: list[Mapping[str, Any]] = []
    for run in reversed(runs):
        document = run.document or {"metrics": run.metrics, "final_value": run.final, "baselines": {}}
        known = run.running or run.final is not None
        trades = len(run.document["trades"]) if run.document is not None else run.trades if known else None
        ink = "up" if run.status == DONE else "muted" if run.status == STOPPED else "warn"
        name = Cell(f"{'* ' if run.name in marked else ''}{run.name}", "strong")
        own = {"key": run.name, "name": name, "trades": trades, "state": Cell(run.status, ink)}
        results.append({**document, **own})
        for held, other in document["baselines"].items() if run.name == chosen else ():
            named = {"name": Cell(f"  {held}", "muted"), "state": Cell("baseline", "muted")}
            results.append({**other, **named, "key": f"{run.name}\n{held}"})
    for page, state in pages.items():
        named = {"name": Cell(page, "strong"), "state": Cell(state, "muted")}
        results.append({"metrics": {}, "final_value": None, "trades": None, **named, "key": page})
    return rows_of(columns, results, lambda one: one["key"])


def _how_far(study: Mapping[str, Any]) -> str:
    lacking = study["without_figures"]
    return f"{study['done']} of {len(study['runs'])} done" + (f", {lacking} without figures" if lacking else "")
