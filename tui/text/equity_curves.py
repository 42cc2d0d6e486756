"""Value and drawdown by session as curves under a text, where a person looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.reports import amounts
from tui.charts.plotting import equity_plot
from tui.text.console import Console

ROWS = 12
VALUE, DRAWDOWN = "value", "drawdown, %"


def equity_curves(
    rows: Sequence[Mapping[str, Any]], console: Console, names: Sequence[str] = (VALUE, DRAWDOWN)
) -> Iterator[str]:
    """The curves of some closes of a document of `paperdesk equity`, those of `names`; none but on a terminal."""
    if not console.is_terminal:
        return
    if len(rows) < 2:
        yield console.dim("A curve needs two sessions.")
        return

    labels = [row["session"] for row in rows]
    curves = {
        VALUE: [amounts.number(row["value"]) for row in rows],
        DRAWDOWN: [100 * row["drawdown"] for row in rows],
    }
    for name in names:
        series = {name: [None if value is None else float(value) for value in curves[name]]}
        yield equity_plot(series, labels, console.width, ROWS, colour=console.colour, ascii_only=console.ascii_only)
