"""Orders with their fills, as `paperdesk orders` prints them."""

from __future__ import annotations

from engine.domain.order import Fill
from engine.reports.documents import row_json
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row


def orders_document(records: Records, *, symbol: str | None = None, open_only: bool = False, last: int = 0) -> Row:
    """Orders by decision session; `last` keeps that many (0: all), `count` is how many fit."""
    if records.reader is None:
        return {**records.head, "count": 0, "orders": []}
    entries = records.reader.orders(records.run, symbol and symbol.upper(), open_only=open_only)
    fills: dict[str, list[Fill]] = {}
    for fill in records.reader.fills(records.world):
        fills.setdefault(fill.order_id, []).append(fill)
    rows = [
        {
            **row_json.order(entry.order),
            "run": entry.run,
            "time": entry.time.isoformat(),
            "fills": [row_json.trade(fill) for fill in fills.get(entry.order.id, ())],
        }
        for entry in entries[-last:]
    ]
    return {**records.head, "count": len(entries), "orders": rows}
