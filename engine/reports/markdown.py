"""A result's document as Markdown: tables that read well as plain text too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.domain.printable import printable
from engine.reports.summary import (
    DISCLAIMER,
    NOTHING,
    action_rows,
    amount,
    change,
    facts,
    metric_rows,
    name_of,
    remarks,
    symbol_rows,
    totals,
)

_SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#~$"})
_BLOCKS = "▁▂▃▄▅▆▇█"
_SPARK = 60


def markdown(document: Mapping[str, Any]) -> str:
    """The whole report."""
    return "\n".join(_lines(document)) + "\n"


def table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[int] | None = None
) -> Iterator[str]:
    """A table with numbers to the right: in the columns named, else in all but the first; nothing without rows."""
    if not rows:
        return
    right = frozenset(range(1, len(heading))) if numbers is None and any(heading) else numbers or frozenset()
    cells = [list(heading), *map(list, rows)]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(heading))]
    for number, row in enumerate(cells):
        aligned = (text.rjust(widths[n]) if n in right else text.ljust(widths[n]) for n, text in enumerate(row))
        yield f"| {' | '.join(aligned)} |"
        if number == 0:
            rules = ("-" * (width - 1) + (":" if n in right else "-") for n, width in enumerate(widths))
            yield f"| {' | '.join(rules)} |"


def cell(text: str) -> str:
    """Text as a cell: on one line, nothing in it is markup and nothing steers a terminal."""
    return " ".join(printable(text).split()).translate(_SPECIAL) or NOTHING


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    name, metrics = cell(name_of(document)), metric_rows(document)
    yield f"# Backtest: {name} on {cell(', '.join(document['symbols']))}"
    yield from ("", f"*{DISCLAIMER}* Run `{document['run']}`.", "")
    yield from table(["", ""], [[title, cell(value)] for title, value in facts(document)])
    yield ""
    yield f"**{amount(document['initial_value'])} to {amount(document['final_value'])} ({change(document)})**"
    values = [float(point["value"]) for point in document["equity"]]
    if len(values) > 1:
        yield from ("", f"`{sparkline(values)}`")
    yield from ("", "## Metrics", "")
    heading = ["", f"**{name}**", "95 % interval", *map(cell, document["baselines"])]
    yield from table(heading, [[cell(row.title), f"**{row.own}**", row.interval, *row.beside] for row in metrics])
    yield from ("", "## By symbol", "")
    own = [row for row in metrics if row.name not in ("excess_return", "net_of_model_cost")]
    cells = [[cell(symbol), *rest, *figures] for symbol, *rest, figures in symbol_rows(document, own)]
    yield from table(["", "Profit", "Final quantity", *(cell(row.short) for row in own)], cells)
    yield from ("", "## What was done", "")
    yield from (f"- {title}: {cell(value)}" for title, value in totals(document))
    yield from (f"- {cell(remark)}" for remark in remarks(document))
    if document["decisions"]:
        yield ""
        counted = [[cell(symbol), *map(str, (*counts.values(), cut))] for symbol, counts, cut in action_rows(document)]
        yield from table(["", "BUY", "SELL", "HOLD", "abstained", "cut"], counted)
    if document["trades"]:
        yield from ("", "## Trades", "")
        columns = ("session", "symbol", "side", "quantity", "price", "fee", "reason")
        cells = [[cell(str(trade[column])) for column in columns] for trade in document["trades"]]
        yield from table([column.capitalize() for column in columns], cells, numbers=frozenset({3, 4, 5}))
    yield from ("", f"Fingerprint `{document['fingerprint']}` (SHA-256 over decisions, trades and equity).")


def sparkline(values: Sequence[float]) -> str:
    """The course of the value in a line of blocks."""
    step = max(1, -(-len(values) // _SPARK))
    kept = [*values[::step][:-1], values[-1]] if len(values) > step else list(values)
    low, high = min(kept), max(kept)
    span = high - low or 1.0
    return "".join(_BLOCKS[min(7, int(8 * (value - low) / span))] for value in kept)
