"""A result's document as tables of comma-separated values, one per kind, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from engine.domain.order import ZERO
from engine.errors import UsageError
from engine.reports.summary import drawdowns, name_of

Document = Mapping[str, Any]
Rows = Iterable[Sequence[Any]]
"""The heading first."""


def csv_table(document: Document, table: str) -> str:
    """One table as text with a heading. Raises UsageError for a table that does not exist."""
    if table not in TABLES:
        raise UsageError(f"unknown table {table}; available: {', '.join(TABLES)}")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in TABLES[table](document):
        writer.writerow([_cell(value) for value in row])
    return out.getvalue()


def _cell(value: Any) -> Any:
    """None as an empty cell; text that a spreadsheet would take for a formula is marked as text."""
    if value is None:
        return ""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") and not _is_number(value):
        return f"'{value}"
    return value


def _is_number(text: str) -> bool:
    return text[1:].replace(".", "", 1).isdigit()


def _equity(document: Document) -> Rows:
    baselines = document["baselines"]
    symbols = document["symbols"]
    yield [
        "session",
        "value",
        "cash",
        "drawdown",
        *(f"{name} value" for name in baselines),
        *(f"{symbol} {column}" for symbol in symbols for column in ("quantity", "price")),
    ]
    points = document["equity"]
    initial = float(document["initial_value"])
    falls = drawdowns([initial, *(float(point["value"]) for point in points)])[1:]
    for number, (point, fall) in enumerate(zip(points, falls, strict=True)):
        beside = [baseline["equity"][number] for baseline in baselines.values()]
        held = [point["positions"].get(symbol, {}) for symbol in symbols]
        books = [cell for one in held for cell in (one.get("quantity", "0"), one.get("price"))]
        yield [point["session"], point["value"], point["cash"], round(fall, 6), *beside, *books]


def _metrics(document: Document) -> Rows:
    """A row per metric of the run, its symbols and its baselines: one observation a row."""
    yield ["of", "name", "metric", "value"]
    yield from (["run", name_of(document), metric, value] for metric, value in document["metrics"].items())
    for of, parts in (("symbol", document["per_symbol"]), ("baseline", document["baselines"])):
        for name, part in parts.items():
            yield from ([of, name, metric, value] for metric, value in part["metrics"].items())


def _costs(document: Document) -> Rows:
    """Fees by symbol, and the models' cost in USD, in all and by agent (empty where a price is unknown)."""
    yield ["kind", "name", "amount"]
    for symbol in document["symbols"]:
        fees = (Decimal(trade["fee"]) for trade in document["trades"] if trade["symbol"] == symbol)
        yield ["fees", symbol, f"{sum(fees, ZERO):f}"]
    use = document["model"]
    if use is not None:
        yield ["models", use["spec"], use["cost"]]
        yield from (["agent", agent, own["cost"]] for agent, own in use["agents"].items())


def _rows_of(part: str, columns: Sequence[str]) -> Callable[[Document], Rows]:
    def rows(document: Document) -> Rows:
        yield columns
        yield from ([row[column] for column in columns] for row in document[part])

    return rows


TABLES: Mapping[str, Callable[[Document], Rows]] = MappingProxyType(
    {
        "equity": _equity,
        "metrics": _metrics,
        "trades": _rows_of("trades", ("session", "symbol", "side", "quantity", "price", "fee", "reason")),
        "cash-flows": _rows_of("cash_flows", ("session", "symbol", "kind", "amount")),
        "decisions": _rows_of(
            "decisions", ("session", "symbol", "owner", "action", "size", "abstained", "cut", "reason")
        ),
        "costs": _costs,
    }
)
"""Every table by name; `equity` is the default."""
