"""Backtests on the screen: the progress of the chosen one in two lines, and a row of figures per run and baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any

from textual.content import Content
from textual.widgets import Static

from engine.domain.text import counted
from engine.reports import amounts
from engine.reports.table import signed
from tui.backtest_run import DONE, FAILED, RUNNING, STOPPED, BacktestState
from tui.widgets.table import Cell, Column, Row

_STATUS_INKS = {RUNNING: "$primary", DONE: "$success", STOPPED: "$foreground 60%", FAILED: "$error-lighten-1"}
_FIGURES = (
    ("RETURN", "total_return", "percent"),
    ("SHARPE", "sharpe", "ratio"),
    ("MAX DD", "max_drawdown", "fall"),
    ("VOL", "volatility", "plain percent"),
    ("SORTINO", "sortino", "ratio"),
    ("WIN", "win_rate", "plain percent"),
    ("EXCESS", "excess_return", "percent"),
)
"""Figures of the house convention, the most important first."""

GAP = "   "
"""The blanks between two figures of a run's progress."""

Figure = tuple[str, str, str]
"""Title, metric and form of a figure."""


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


def figures_of(runs: Sequence[BacktestState]) -> tuple[Figure, ...]:
    """List the figures of the latest result: the house's choice, or all figures of a paper's convention."""
    documents = [run.document for run in runs if run.document is not None]
    if not documents or "total_return" in documents[-1]["metrics"]:
        return _FIGURES
    return tuple((name.upper(), name, "as printed") for name in documents[-1]["metrics"])


def columns_of(figures: Sequence[Figure]) -> tuple[Column, ...]:
    """Build the table's columns; the last figures are dropped first on a narrow screen."""
    shown = (Column(title, form=str, drop_order=1 + n) for n, (title, _, _) in enumerate(figures))
    ends = (
        Column("TRADES", form=str, drop_order=5),
        Column("FINAL", form=str, drop_order=3),
        Column("STATE", drop_order=4),
    )
    return (Column("NAME", max_width=26), *shown, *ends)


def result_rows(
    runs: Sequence[BacktestState], chosen: str, figures: Sequence[Figure], marked: Collection[str] = ()
) -> list[Row]:
    """Build the rows, the newest run first; the baselines of the chosen run follow it, runs that are marked have a
    star."""
    rows: list[Row] = []
    for run in reversed(runs):
        document = run.document or {"metrics": run.metrics, "final_value": run.final, "baselines": {}}
        known = run.running or run.final is not None
        trades = len(run.document["trades"]) if run.document is not None else run.trades if known else None
        ink = "up" if run.status == DONE else "muted" if run.status == STOPPED else "warn"
        own = _cells(document, trades, figures)
        mark = "* " if run.name in marked else ""
        rows.append(Row(run.name, (Cell(f"{mark}{run.name}", "strong"), *own, Cell(run.status, ink))))
        for name, held in document["baselines"].items() if run.name == chosen else ():
            own = _cells(held, held["trades"], figures)
            rows.append(Row(f"{run.name}/{name}", (Cell(f"  {name}", "muted"), *own, Cell("baseline", "muted"))))
    return rows


def _cells(document: Mapping[str, Any], trades: int | None, figures: Sequence[Figure]) -> tuple[Cell, ...]:
    final = amounts.number(document["final_value"])
    metrics = (_figure(document["metrics"].get(metric), form) for _, metric, form in figures)
    return (
        *metrics,
        Cell("-" if trades is None else f"{trades:,}", order=trades),
        Cell(amounts.money(final, 0), order=final),
    )


def _figure(value: float | None, form: str) -> Cell:
    if value is None:
        return Cell("-", "muted")
    match form:
        case "percent":
            return signed(amounts.percent(value, 1), value)
        case "plain percent":
            return Cell(f"{value:.1%}", order=value)
        case "fall":
            return Cell(f"{-value:.1%}" if value else "0.0%", order=-value)
        case "as printed":
            return Cell(f"{value:.2f}", order=value)
        case _:
            return signed(f"{value:.2f}", value)
