"""Curves by session under a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.reports import amounts
from engine.reports.performance import BENCHMARK
from tui.charts.plotting import equity_plot
from tui.text.console import Console

ROWS = 12
VALUE, DRAWDOWN = "value", "drawdown, %"


def curve_lines(
    series: Mapping[str, Sequence[float | None]], sessions: Sequence[str], console: Console, title: str = ""
) -> Iterator[str]:
    """Curves over each other, buy and hold as a thin one, under a title; none of a single session."""
    if len(sessions) < 2:
        return
    if title:
        yield title
    plot = equity_plot(
        series, sessions, console.width, ROWS, beside=BENCHMARK, colour=console.colour, ascii_only=console.ascii_only
    )
    yield from (line.rstrip() for line in plot.split("\n"))
    yield ""


def equity_curves(
    rows: Sequence[Mapping[str, Any]], console: Console, names: Sequence[str] = (VALUE, DRAWDOWN)
) -> Iterator[str]:
    """The curves of some closes of a document of `paperdesk equity`, those of `names`; none but on a terminal."""
    if not console.is_terminal:
        return
    if len(rows) < 2:
        yield console.dim("A curve needs two sessions.")
    curves = {
        VALUE: [amounts.number(row["value"]) for row in rows],
        DRAWDOWN: [100 * row["drawdown"] for row in rows],
    }
    for name in names:
        series = {name: [None if value is None else float(value) for value in curves[name]]}
        yield from curve_lines(series, [row["session"] for row in rows], console)
