"""A backtest's result as text for a terminal or a pipe: the run, its figures beside the baselines, next commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from engine.reports.documents.records import LIGHT, LIGHT_HOLDS
from engine.reports.performance import BENCHMARK
from engine.reports.summary import (
    DISCLAIMER,
    NOTHING,
    amount,
    change,
    facts,
    luck_rows,
    metric_rows,
    name_of,
    remarks,
    totals,
)
from engine.reports.table import texts
from tui.text.attribution_text import sensitivity_lines
from tui.text.console import Console
from tui.text.equity_curves import curve_lines
from tui.text.plain_text import facts as lines_of
from tui.text.plain_text import one_line, table_of

_SHORTLIST = ("total_return", "volatility", "sharpe", "sortino", "max_drawdown", "turnover", "exposure", "win_rate")
"""Metrics of the `desk` convention in the table, as many as fit; a paper's are all shown."""
_LABEL = 12


def summary_text(document: Mapping[str, Any], journal: str, console: Console) -> str:
    """The whole summary; `journal` is the path of the run's journal."""
    light = LIGHT in document
    if light:
        document = {"warm_up": None, "baselines": {}, "equity": (), **document}
    notes = [("" if n else "Note", note) for n, note in enumerate(remarks(document))]
    lines = [
        console.bold(f"Backtest {document['run']}") + console.dim("   " + DISCLAIMER.lower().rstrip(".")),
        "",
        *_facts(facts(document), console),
        "",
        _value(document, console),
        "",
        *_table(document, console),
        *_chances(document, console),
        *sensitivity_lines(document, console.width),
        "",
        *_plot(document, console),
        *_facts([("Light", f"holds {LIGHT_HOLDS}")] if light else totals(document), console),
        *_facts(notes, console),
        *(() if light else ("", *_next(document, journal, console))),
    ]
    text = "\n".join(line.rstrip() for line in lines)
    return text.replace(NOTHING, "-") if console.ascii_only else text


def _facts(pairs: Iterable[tuple[str, str]], console: Console) -> Iterator[str]:
    """Names in bold and values beside each other; an empty value is left out."""
    for line in lines_of([(name, one_line(value)) for name, value in pairs], console.width, _LABEL):
        yield (console.bold(line[:_LABEL]) if line[:_LABEL].strip() else line[:_LABEL]) + line[_LABEL:]


def _value(document: Mapping[str, Any], console: Console) -> str:
    initial, final = document["initial_value"], document["final_value"]
    moved = console.rising(change(document), Decimal(final) >= Decimal(initial))
    return console.bold("Value".ljust(_LABEL)) + f"{amount(initial)} to {console.bold(amount(final))}  {moved}"


def _table(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    """The run and its baselines as rows, metrics as columns, as many as fit."""
    rows = metric_rows(document)
    if document["convention"] == "desk":
        by_name = {row.name: row for row in rows}
        rows = [by_name[name] for name in _SHORTLIST]
    columns = texts("", *(row.short for row in rows))
    names = (name_of(document), *document["baselines"])
    # A run of one of its own baselines is a row once.
    cells = dict.fromkeys((name, *((row.own, *row.beside)[n] for row in rows)) for n, name in enumerate(names))
    head, own, *beside = table_of(columns, list(cells), console.width)
    yield from (console.bold(head), console.bold(own), *beside)


def _chances(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    """The Sharpe ratio with its interval, and what chance may have done."""
    row = next((row for row in metric_rows(document) if row.name == "sharpe" and row.own != NOTHING), None)
    if row is not None:
        yield ""
        yield f"Sharpe ratio {row.own}" + (f" (95 % interval {row.interval})" if row.interval else "")
    if document.get("luck"):
        yield ""
        yield from _facts(luck_rows(document), console)


def _plot(document: Mapping[str, Any], console: Console) -> Iterator[str]:
    """The value by session beside buy and hold."""
    equity = document["equity"]
    series = {name_of(document): [float(point["value"]) for point in equity]}
    held = document["baselines"].get(BENCHMARK)
    if held is not None and name_of(document) != BENCHMARK:
        series[BENCHMARK] = [float(value) for value in held["equity"]]
    yield from curve_lines(series, [point["session"] for point in equity], console)


def _next(document: Mapping[str, Any], journal: str, console: Console) -> Iterator[str]:
    run = document["run"]
    yield console.dim(f"{'Journal'.ljust(_LABEL)}{journal}")
    traded = [d for d in document["decisions"] if d["action"] in ("BUY", "SELL")] or document["decisions"]
    commands = [f"paperdesk report --run {run} --format html --out report.html"]
    if traded:
        commands.insert(0, f"paperdesk why {traded[-1]['symbol']} {traded[-1]['session']} --run {run}")
    for number, command in enumerate(commands):
        yield console.dim(("Next" if number == 0 else "").ljust(_LABEL) + command)
