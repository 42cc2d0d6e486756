"""The keys of the Backtest screen that act on the chosen run: stop, resume, mark, compare, export, its trail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from textual import work

from engine.errors import PaperdeskError
from engine.reports.documents.runs import StoredRun
from tui.desk.twins import report_action
from tui.screens.ask import AskScreen
from tui.screens.frame import FramedScreen
from tui.screens.reading import ReadingScreen
from tui.view.backtest_run import STOPPED, BacktestState, ResumeBacktest, StopBacktest
from tui.view.desk_port import OpenedDesk, Source
from tui.view.recorded_run import comparison
from tui.widgets.table import Table

Result = TypeVar("Result")

COMPARED = 3
"""Runs that are drawn together at most."""


class RunKeys(FramedScreen):
    """A screen with a table of runs, of which one is chosen."""

    def __init__(self) -> None:
        super().__init__()
        self._chosen = ""
        self._part = ""
        self._stored: dict[str, StoredRun] = {}
        self._marked: list[str] = []

    @property
    def _runs(self) -> list[BacktestState]:
        """All runs, the oldest first."""
        raise NotImplementedError

    @property
    def _run(self) -> BacktestState | None:
        """The chosen run."""
        return next((one for one in self._runs if one.name == self._chosen), None)

    def _beyond(self, what: str) -> str:
        """The end of a title whose figures go on beyond the place in the past that is shown."""
        place = self._view.place
        return f", the whole {what}" if place is not None and place.number < place.count else ""

    def _show_begun(self) -> None:
        """Show a run that has just begun."""
        raise NotImplementedError

    def own_circumstances(self) -> frozenset[str]:
        """Those of the chosen run, and runs that can be compared."""
        run = self._run
        found = {"runs": bool(self._compared()), "stopped": run is not None and run.status == STOPPED}
        return super().own_circumstances() | {name for name, holds in found.items() if holds}

    def has_record(self) -> bool:
        """True where the chosen run is finished, or the desk has run."""
        return super().has_record() or self.past_source() is not None

    def has_decision(self) -> bool:
        """True where agents decided in the chosen run, once it is finished."""
        run = self._run
        decided = run is not None and run.document is not None and bool(run.document.get("decisions"))
        return decided and self.past_source() is not None

    def has_row(self) -> bool:
        """True where a run is chosen."""
        return self._run is not None

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
            self.notify("stopping: what was done is kept", timeout=3)

    def action_resume(self) -> None:
        """Go on with the chosen run, which was stopped."""
        run = self._run
        if run is None or run.status != STOPPED:
            self.notify("only a run that was stopped can be gone on with", timeout=3)
        elif self._send(ResumeBacktest(run.spec.run, run.name)):
            self._show_begun()
            report_action(self.app, "the backtest goes on", "backtest", "--resume", run.spec.run)

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
        names = {ids[name]: name for name in compared}

        def shown(document: Mapping[str, Any]) -> None:
            title = f"Comparison{self._beyond('runs')}"
            self.app.push_screen(ReadingScreen(title, comparison(document, names)))

        self._in_background(lambda opened: opened.ask.run(*names), shown)

    def action_export(self) -> None:
        """Ask for a new folder, and write the chosen run there."""
        run = self._run
        if run is None:
            return

        def answered(text: str | None) -> None:
            if text:
                folder, twin = Path(text).expanduser().absolute(), ("runs", "export", run.spec.run, "--to")
                self._in_background(
                    lambda _: asyncio.to_thread(self.desk_app.bridge.export, run.spec.run, folder),
                    lambda files: report_action(self.app, f"{len(files)} files in {folder}", *twin, str(folder)),
                )

        self.app.push_screen(AskScreen("Export into a new folder", "DIR", text=f"~/{run.spec.run}"), answered)

    @work(group="background", exit_on_error=False)
    async def _in_background(
        self, work: Callable[[OpenedDesk], Awaitable[Result]], then: Callable[[Result], None]
    ) -> None:
        """Ask the desk something, then do something with the answer; say what fails."""
        if self._view.opened is None:
            self.notify("the desk is still opening", timeout=3)
            return
        try:
            result = await work(self._view.opened)
        except PaperdeskError as error:
            self.notify(str(error), markup=False, severity="error", timeout=6)
        else:
            then(result)
