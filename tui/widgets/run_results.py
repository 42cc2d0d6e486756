"""Backtests on the screen: the progress of the chosen one in two lines, and a row of figures per run and baseline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from textual.content import Content
from textual.widgets import Static

from engine.domain.text import counted
from engine.reports import amounts
from engine.reports.table import Cell, Column, count, sign_ink
from tui.view.backtest_run import DONE, FAILED, RUNNING, STOPPED, BacktestState
from tui.widgets.table import Row, rows_of

_STATUS_INKS = {RUNNING: "$primary", DONE: "$success", STOPPED: "$foreground 60%", FAILED: "$error-lighten-1"}


def _metric(name: str, form: Callable[[float], str], ink: Any = "text", title: str = "", order: int = 0) -> Column:
    return Column(title or name.upper(), lambda run: run["metrics"].get(name), form, ink, drop_order=order)


_FIGURES: tuple[Column, ...] = (
    _metric("total_return", partial(amounts.percent, digits=1), sign_ink, "RETURN", 1),
    _metric("sharpe", amounts.ratio, sign_ink, "SHARPE", 2),
    _metric("max_drawdown", lambda fall: f"{-fall:.1%}" if fall else "0.0%", "text", "MAX DD", 3),
    _metric("volatility", "{:.1%}".format, "text", "VOL", 4),
    _metric("sortino", amounts.ratio, sign_ink, "SORTINO", 5),
    _metric("win_rate", "{:.1%}".format, "text", "WIN", 6),
    _metric("excess_return", partial(amounts.percent, digits=1), sign_ink, "EXCESS", 7),
)
"""Figures of the house convention, the most important first."""

GAP = "   "
"""The blanks between two figures of a run's progress."""


def progress_text(run: BacktestState | None, width: int, plain: bool) -> Content:
    """Describe a run in two lines, as much as fits into the second, or the keys that start one."""
    if run is None:
        return Content.assemble(
            ("ctrl+r", "bold $primary"),
            " starts the backtest   ",
            ("e", "bold $primary"),
            " to the form",
            ("\nit runs beside the desk, which goes on", "$foreground 50%"),
        )
    if run.status == FAILED:
        return Content.assemble((f"{run.name} failed\n", "bold $error-lighten-1"), (run.error, "$warning"))
    left = run.seconds_left
    state = f"{amounts.minutes(left)} left" if left is not None else "" if run.running else run.status
    name, count = f"{run.name}  ", f"  {_done(run)}  "
    cells = max(4, min(40, width - 44, width - len(name) - len(count) - len(state)))
    full = round(run.fraction * cells)
    done, rest = ("#", "-") if plain else ("█", "░")
    second = [f"equity {run.curve[-1][1]:,.0f}"] if run.curve else []
    second += [f"trades {run.trades}", "  ".join(f"{name} {count}" for name, count in sorted(run.actions.items()))]
    second += [f"{run.part} {run.session}" if run.session else run.label, run.costs]
    second = [part for part in second if part]
    ends = accumulate(len(part) + len(GAP) for part in second)
    fitting = [part for part, end in zip(second, ends, strict=True) if end - len(GAP) <= width]
    return Content.assemble(
        (name, "bold"),
        (done * full, _STATUS_INKS[run.status]),
        (rest * (cells - full), "$foreground 25%"),
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
        text = progress_text(self._run, self.size.width, self.app.has_class("-plain"))
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
    runs: Sequence[BacktestState], chosen: str, columns: Sequence[Column], marked: Collection[str] = ()
) -> list[Row]:
    """Build the rows, the newest run first; the baselines of the chosen run follow it, runs that are marked have a
    star."""
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
            results.append({**other, **named, "key": f"{run.name}/{held}"})
    return rows_of(columns, results, lambda one: one["key"])
