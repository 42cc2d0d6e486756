"""Rows of the Book screen: positions, orders, trades and cash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from engine.domain.order import Fill
from engine.reports import amounts, tables
from engine.reports.documents.book import Book, Position
from engine.reports.table import Cell, Column, sign_ink
from engine.reports.tables import REQUESTED, SESSION, SIDE, SYMBOL
from tui.widgets.table import Row, rows_of

POSITIONS = (*tables.POSITIONS, Column("TODAY", "today", amounts.gain, sign_ink, drop_order=4))
ORDERS = (
    SESSION,
    SYMBOL,
    SIDE,
    REQUESTED,
    Column("STATE", "state", max_width=14),
    Column("FILLED AT", "price", amounts.price, drop_order=2),
    Column("WHY", "why", ink="muted", drop_order=1, stretch=True, min_width=12),
)


def positions(book: Book, prices: Mapping[str, Decimal | None]) -> list[Row]:
    """A row per position, at live prices where there are any: then today's profit is that since the close."""
    return rows_of(POSITIONS, [_live(one, prices.get(one.symbol)) for one in book.positions], lambda one: one.symbol)


def _live(one: Position, price: Decimal | None) -> Position:
    return one if not price or price == one.price else replace(one, price=price, before=one.price)


def orders(book: Book, states: Mapping[str, Cell]) -> Sequence[Row]:
    """A row per order, the latest first, with the reason that it ended where it came to nothing, else that of its
    decision; `states` by id are those of open orders as their table shows them: waiting, answered."""
    paid: dict[str, list[Fill]] = {}
    for fill in book.fills:
        paid.setdefault(fill.order_id, []).append(fill)
    listed = [
        {
            **{
                name: getattr(entry.order, name) for name in ("id", "session", "symbol", "side", "notional", "quantity")
            },
            "state": states.get(entry.order.id) or Cell(entry.order.state.value, "muted"),
            "price": _average(paid.get(entry.order.id, ())),
            "why": entry.ended or entry.order.reason,
        }
        for entry in book.orders
    ]
    return rows_of(ORDERS, listed, lambda one: one["id"])


def _average(fills: Sequence[Fill]) -> Decimal | None:
    """The average price of an order's trades; None without one."""
    shares = sum((one.quantity for one in fills), Decimal(0))
    return sum((one.price * one.quantity for one in fills), Decimal(0)) / shares if shares else None
