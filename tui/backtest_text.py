"""A backtest's result as text for a terminal or a pipe: the run, its figures beside the baselines, next commands."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from engine.reports.performance import BENCHMARK
from engine.reports.summary import (
    DISCLAIMER,
    NOTHING,
    MetricRow,
    amount,
    change,
    facts,
    metric_rows,
    name_of,
    remarks,
    totals,
)
from tui.console import Console
from tui.plain_text import one_line
from tui.widgets.plotting import equity_plot

_SHORTLIST = ("total_return", "volatility", "sharpe", "sortino", "max_drawdown", "turnover", "exposure", "win_rate")
"""Metrics of the `desk` convention in the table, as many as fit; a paper's are all shown."""
_PLOT_ROWS = 14
_LABEL = 12


def summary_text(document: Mapping[str, Any], journal: str, console: Console) -> str:
    """The whole summary; `journal` is the path of the run's journal."""
    lines = [
        console.bold(f"Backtest {document['run']}") + console.dim("   " + DISCLAIMER.lower().rstrip(".")),
        "",
        *(_fact(name, value, console) for name, value in facts(document)),
        "",
        *_value(document, console),
        "",
        *_table(document, console),
        *_chances(document, console),
        "",
        *_plot(document, console),
        *(_fact(name, value, console) for name, value in totals(document)),
    ]
    lines += [_fact("Note" if n == 0 else "", note, console) for n, note in enumerate(remarks(document))]
    lines += ["", *_next(document, journal, console)]
    text = "\n".join(line.rstrip() for line in lines)
    return text.replace(NOTHING, "-") if console.ascii_only else text


def _fact(name: str, value: str, console: Console) -> str:
    indent = " " * _LABEL
    wrapped = textwrap.wrap(one_line(value), max(20, console.width - _LABEL)) or [""]
    return "\n".join([console.bold(name.ljust(_LABEL)) + wrapped[0], *(indent + line for line in wrapped[1:])])


def _value(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    initial, final = document["initial_value"], document["final_value"]
    moved = console.rising(change(document), Decimal(final) >= Decimal(initial))
    yield console.bold("Value".ljust(_LABEL)) + f"{amount(initial)} to {console.bold(amount(final))}  {moved}"


def _table(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    """The run and its baselines as rows, metrics as columns."""
    rows = metric_rows(document)
    if document["convention"] == "desk":
        by_name = {row.name: row for row in rows}
        rows = [by_name[name] for name in _SHORTLIST]
    names = [name_of(document), *document["baselines"]]
    first = max(len(name) for name in names) + 2
    shown: list[Sequence[str]] = []
    used = first
    for row in rows:
        column = _column(row)
        used += len(column[0]) + 2
        if used > console.width and shown:
            break
        shown.append(column)
    yield console.bold(" " * first + "".join("  " + column[0] for column in shown))
    for number, name in enumerate(names):
        line = name.ljust(first) + "".join("  " + column[number + 1] for column in shown)
        yield console.bold(line) if number == 0 else line


def _column(row: MetricRow) -> Sequence[str]:
    """Heading and cells, aligned to the right."""
    cells = [row.short, row.own, *row.beside]
    width = max(len(cell) for cell in cells)
    return [cell.rjust(width) for cell in cells]


def _chances(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    """The figures that may be chance, in a sentence with their intervals."""
    rows = {row.name: row for row in metric_rows(document)}
    said = [
        f"{said} {rows[name].own}" + (f" (95 % interval {rows[name].interval})" if rows[name].interval else "")
        for name, said in (("sharpe", "Sharpe ratio"), ("excess_return", "over buy and hold"))
        if name in rows and rows[name].own != NOTHING
    ]
    if said:
        yield ""
        yield from textwrap.wrap("; ".join(said), console.width)


def _plot(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    """The value by session beside buy and hold; nothing to draw with fewer than two sessions."""
    equity = document["equity"]
    if len(equity) < 2:
        return
    series = {name_of(document): [float(point["value"]) for point in equity]}
    held = document["baselines"].get(BENCHMARK)
    if held is not None and name_of(document) != BENCHMARK:
        series[BENCHMARK] = [float(value) for value in held["equity"]]
    labels = [point["session"] for point in equity]
    drawn = equity_plot(series, labels, console.width, _PLOT_ROWS, colour=console.colour, ascii_only=console.ascii_only)
    yield from drawn.split("\n")
    yield ""


def _next(document: Mapping[str, Any], journal: str, console: Console) -> Iterator[str]:
    run = document["run"]
    yield console.dim(f"{'Journal'.ljust(_LABEL)}{journal}")
    told = [d for d in document["decisions"] if d["action"] in ("BUY", "SELL")] or document["decisions"]
    commands = [f"paperdesk report --run {run} --format html --out report.html"]
    if told:
        commands.insert(0, f"paperdesk why {told[-1]['symbol']} {told[-1]['session']} --run {run}")
    for number, command in enumerate(commands):
        yield console.dim(("Next" if number == 0 else "").ljust(_LABEL) + command)
