"""The trades of a backtest as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from engine.reports import amounts
from tui.plain_text import one_line
from tui.widgets.desk_tables import ACTION_INKS
from tui.widgets.table import Cell, Column, Row

COLUMNS = (
    Column(title="SESSION"),
    Column(title="SYM", max_width=9),
    Column(title="SIDE", max_width=5),
    Column(title="QTY", right=True, max_width=12),
    Column(title="PRICE", right=True),
    Column(title="VALUE", right=True, drop_order=2),
    Column(title="FEE", right=True, drop_order=3),
    Column(title="WHY", stretch=True, min_width=12, drop_order=4),
)


def rows(document: Mapping[str, Any] | None, until: date | None = None) -> Sequence[Row]:
    """A row per trade up to a session, the latest first; none before the end of a run."""
    last = "9999" if until is None else until.isoformat()
    trades = () if document is None else [trade for trade in document["trades"] if trade["session"] <= last]
    return [_row(number, trade) for number, trade in reversed(list(enumerate(trades)))]


def _row(number: int, trade: Mapping[str, Any]) -> Row:
    quantity, price, fee = (amounts.number(trade[name]) for name in ("quantity", "price", "fee"))
    value = None if quantity is None or price is None else quantity * price
    return Row(
        f"{number}",
        (
            Cell(trade["session"]),
            Cell(trade["symbol"], "strong"),
            Cell(trade["side"], ACTION_INKS.get(trade["side"], "text")),
            Cell("-" if quantity is None else amounts.quantity(quantity), order=quantity),
            Cell(amounts.price(price), order=price),
            Cell(amounts.money(value), order=value),
            Cell(amounts.money(fee), "muted", fee),
            Cell(one_line(trade["reason"] or ""), "muted"),
        ),
    )
