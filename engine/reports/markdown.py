"""A result's document as Markdown: tables that read well as plain text too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.reports.markdown_table import cell, table
from engine.reports.summary import (
    DISCLAIMER,
    amount,
    change,
    decision_counts,
    decisions_in_words,
    facts,
    figure,
    metric_rows,
    model_in_words,
    name_of,
    remarks,
    trades_in_words,
)

_BLOCKS = "▁▂▃▄▅▆▇█"
_SPARK = 60


def markdown(document: Mapping[str, Any]) -> str:
    """The whole report."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"# Backtest: {cell(name_of(document))} on {cell(', '.join(document['symbols']))}"
    yield ""
    yield f"*{DISCLAIMER}* Run `{document['run']}`."
    yield ""
    yield from table(["", ""], [[name, cell(value)] for name, value in facts(document)])
    yield ""
    yield f"**{amount(document['initial_value'])} to {amount(document['final_value'])} ({change(document)})**"
    values = [float(point["value"]) for point in document["equity"]]
    if len(values) > 1:
        yield ""
        yield f"`{_sparkline(values)}`"
    yield ""
    yield "## Metrics"
    yield ""
    rows = metric_rows(document)
    heading = ["", f"**{cell(name_of(document))}**", "95 % interval", *map(cell, document["baselines"])]
    yield from table(heading, [[cell(r.title), f"**{r.own}**", r.interval, *r.beside] for r in rows])
    yield ""
    yield "## By symbol"
    yield ""
    yield from _by_symbol(document)
    yield ""
    yield "## What was done"
    yield ""
    yield f"- Decisions: {decisions_in_words(document)}"
    yield f"- Trades: {trades_in_words(document)}"
    use = model_in_words(document)
    if use:
        yield f"- Model: {cell(use)}"
    yield from (f"- {cell(remark)}" for remark in remarks(document))
    if document["decisions"]:
        yield ""
        yield from _decisions(document)
    if document["trades"]:
        yield ""
        yield "## Trades"
        yield ""
        columns = ("session", "symbol", "side", "quantity", "price", "fee", "reason")
        cells = [[cell(str(trade[column])) for column in columns] for trade in document["trades"]]
        yield from table([column.capitalize() for column in columns], cells, numbers=frozenset({3, 4, 5}))
    yield ""
    yield f"Fingerprint `{document['fingerprint']}` (SHA-256 over decisions, trades and equity)."


def _by_symbol(document: Mapping[str, Any]) -> Iterator[str]:
    named = document["convention"]
    metrics = [row for row in metric_rows(document) if row.name not in ("excess_return", "net_of_model_cost")]
    heading = ["", "Profit", "Final quantity", *(cell(row.short) for row in metrics)]
    cells = []
    for symbol, part in document["per_symbol"].items():
        measured = [figure(named, row.name, part["metrics"].get(row.name)) for row in metrics]
        cells.append([cell(symbol), amount(part["profit"]), part["final_quantity"], *measured])
    yield from table(heading, cells)


def _decisions(document: Mapping[str, Any]) -> Iterator[str]:
    cells = []
    for symbol in document["symbols"]:
        own = [decision for decision in document["decisions"] if decision["symbol"] == symbol]
        counts = decision_counts(own)
        cells.append([cell(symbol), *map(str, counts.values()), str(sum(1 for d in own if d["cut"]))])
    yield from table(["", "BUY", "SELL", "HOLD", "abstained", "cut"], cells)


def _sparkline(values: Sequence[float]) -> str:
    """The course of the value in a line of blocks."""
    step = max(1, -(-len(values) // _SPARK))
    kept = [*values[::step][:-1], values[-1]] if len(values) > step else list(values)
    low, high = min(kept), max(kept)
    span = high - low or 1.0
    return "".join(_BLOCKS[min(7, int(8 * (value - low) / span))] for value in kept)
