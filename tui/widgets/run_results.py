"""Backtests side by side: a row per run and per baseline of the chosen one, a column per figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tui import amounts
from tui.backtest_state import DONE, STOPPED, BacktestState
from tui.widgets.table import Cell, Column, Row

_DESK = (
    ("RETURN", "total_return", "percent"),
    ("SHARPE", "sharpe", "ratio"),
    ("MAX DD", "max_drawdown", "fall"),
    ("VOL", "volatility", "plain percent"),
    ("SORTINO", "sortino", "ratio"),
    ("WIN", "win_rate", "plain percent"),
    ("EXCESS", "excess_return", "percent"),
)
"""Figures of the desk convention, the most important first."""

Figure = tuple[str, str, str]


def figures_of(runs: Sequence[BacktestState]) -> tuple[Figure, ...]:
    """List title, metric and form of each figure: the desk's choice, or all figures of a paper's convention."""
    documents = [run.document for run in runs if run.document is not None]
    if not documents or "total_return" in documents[-1]["metrics"]:
        return _DESK
    return tuple((name.upper(), name, "as printed") for name in documents[-1]["metrics"])


def columns_of(figures: Sequence[Figure]) -> tuple[Column, ...]:
    """Build the table's columns; the last figures are dropped first on a narrow screen."""
    shown = (Column(title=title, right=True, drop_order=1 + n) for n, (title, _, _) in enumerate(figures))
    ends = (
        Column(title="TRADES", right=True, drop_order=5),
        Column(title="FINAL", right=True, drop_order=3),
        Column(title="STATE", drop_order=4),
    )
    return (Column(title="NAME", max_width=26), *shown, *ends)


def rows_of(runs: Sequence[BacktestState], chosen: str, figures: Sequence[Figure]) -> list[Row]:
    """Build the rows, the newest run first; the baselines of the chosen run follow it."""
    rows: list[Row] = []
    for run in reversed(runs):
        rows.append(_run(run, figures))
        if run.name == chosen and run.document is not None:
            rows += [_baseline(run.name, name, one, figures) for name, one in run.document["baselines"].items()]
    return rows


def _run(run: BacktestState, figures: Sequence[Figure]) -> Row:
    metrics = {} if run.document is None else run.document["metrics"]
    final = None if run.document is None else Decimal(run.document["final_value"])
    ink = "up" if run.status == DONE else "muted" if run.status == STOPPED else "warn"
    return Row(
        run.name,
        (
            Cell(run.name, "strong"),
            *(_figure(metrics.get(metric), form) for _, metric, form in figures),
            Cell(f"{run.trades if run.document is None else len(run.document['trades']):,}"),
            Cell(amounts.money(final, 0), order=final),
            Cell(run.status, ink),
        ),
    )


def _baseline(run: str, name: str, one: Mapping[str, Any], figures: Sequence[Figure]) -> Row:
    final = Decimal(one["final_value"])
    return Row(
        f"{run}/{name}",
        (
            Cell(f"  {name}", "muted"),
            *(_figure(one["metrics"].get(metric), form) for _, metric, form in figures),
            Cell(f"{one['trades']:,}"),
            Cell(amounts.money(final, 0), order=final),
            Cell("baseline", "muted"),
        ),
    )


def _figure(value: float | None, form: str) -> Cell:
    if value is None:
        return Cell("-", "muted")
    if form == "fall":
        return Cell(f"-{value * 100:.1f}%" if value else "0.0%", "text", -value)
    ink = "text" if form in ("plain percent", "as printed") or not value else "up" if value > 0 else "down"
    match form:
        case "percent":
            text = amounts.percent(value, 1)
        case "plain percent":
            text = f"{value * 100:.1f}%"
        case _:
            text = f"{value:.2f}"
    return Cell(text, ink, value)
