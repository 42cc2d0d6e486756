"""Rows of the Book screen: positions, orders, trades and cash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from engine.domain.order import Fill
from engine.reports import amounts
from engine.reports.documents.book import Book, Position
from tui.plain_text import one_line
from tui.widgets.desk_tables import ACTION_INKS, signed
from tui.widgets.table import Cell, Column, Row

POSITIONS = (
    Column(title="SYM", max_width=9),
    Column(title="QTY", right=True, max_width=12),
    Column(title="COST", right=True, drop_order=2),
    Column(title="LAST", right=True, drop_order=1),
    Column(title="VALUE", right=True),
    Column(title="WEIGHT", right=True, drop_order=3),
    Column(title="P&L", right=True),
    Column(title="P&L%", right=True, drop_order=2),
    Column(title="TODAY", right=True, drop_order=3),
)
ORDERS = (
    Column(title="SESSION"),
    Column(title="SYM", max_width=9),
    Column(title="SIDE", max_width=4),
    Column(title="AMOUNT", right=True, max_width=12),
    Column(title="STATE", max_width=14),
    Column(title="FILLED AT", right=True, drop_order=2),
    Column(title="WHY", stretch=True, min_width=12, drop_order=1),
)
TRADES = (
    Column(title="SESSION"),
    Column(title="SYM", max_width=9),
    Column(title="SIDE", max_width=4),
    Column(title="QTY", right=True, max_width=12),
    Column(title="PRICE", right=True),
    Column(title="VALUE", right=True, drop_order=2),
    Column(title="FEE", right=True, drop_order=3),
)
FLOWS = (
    Column(title="SESSION"),
    Column(title="SYM", max_width=9),
    Column(title="KIND", max_width=16),
    Column(title="AMOUNT", right=True, stretch=True, min_width=10),
)


def positions(book: Book, prices: Mapping[str, Decimal | None]) -> list[Row]:
    """A row per position, at live prices where there are any."""
    return [_position(one, prices.get(one.symbol) or one.price) for one in book.positions]


def _position(one: Position, price: Decimal) -> Row:
    live = price != one.price
    profit = None if one.cost is None else one.quantity * (price - one.cost)
    today = one.quantity * (price - one.price) if live else one.today
    part = float(price / one.cost - 1) * (1 if one.quantity > 0 else -1) if one.cost else None
    return Row(
        one.symbol,
        (
            Cell(one.symbol, "strong"),
            Cell(amounts.quantity(one.quantity), order=one.quantity),
            Cell(amounts.price(one.cost), order=one.cost),
            Cell(amounts.price(price), order=price),
            Cell(amounts.money(one.quantity * price), order=one.quantity * price),
            Cell(amounts.percent(one.share, 1).lstrip("+"), order=one.share),
            signed(amounts.gain(profit), profit),
            signed(amounts.percent(part, 1), part),
            signed(amounts.gain(today), today),
        ),
    )


def orders(book: Book, states: Mapping[str, Cell]) -> Sequence[Row]:
    """A row per order, the latest first, with the reason that it ended where it came to nothing, else that of its
    decision; `states` by id are those of open orders as their table shows them: waiting, answered."""
    paid: dict[str, list[Fill]] = {}
    for fill in book.fills:
        paid.setdefault(fill.order_id, []).append(fill)
    prices = {name: _average(some) for name, some in paid.items()}
    return [
        Row(
            entry.order.id,
            (
                Cell(str(entry.order.session)),
                Cell(entry.order.symbol, "strong"),
                Cell(entry.order.side.value, ACTION_INKS.get(entry.order.side.value, "text")),
                _amount(entry.order.notional, entry.order.quantity),
                states.get(entry.order.id) or Cell(entry.order.state.value, "muted"),
                Cell(amounts.price(prices.get(entry.order.id)), order=prices.get(entry.order.id)),
                Cell(one_line(entry.ended or entry.order.reason), "muted"),
            ),
        )
        for entry in book.orders
    ]


def _average(fills: Sequence[Fill]) -> Decimal:
    """The average price of an order's trades."""
    shares = sum((one.quantity for one in fills), Decimal(0))
    return sum((one.price * one.quantity for one in fills), Decimal(0)) / shares


def _amount(notional: Decimal | None, quantity: Decimal | None) -> Cell:
    return Cell(amounts.requested(notional, quantity), order=notional if quantity is None else quantity)


def trades(book: Book) -> Sequence[Row]:
    """A row per trade, the latest first."""
    return [
        Row(
            f"{place}|{fill.order_id}",
            (
                Cell(str(fill.session)),
                Cell(fill.symbol, "strong"),
                Cell(fill.side.value, ACTION_INKS.get(fill.side.value, "text")),
                Cell(amounts.quantity(fill.quantity), order=fill.quantity),
                Cell(amounts.price(fill.price), order=fill.price),
                Cell(amounts.money(fill.quantity * fill.price), order=fill.quantity * fill.price),
                Cell(amounts.money(fill.fee), "muted", fill.fee),
            ),
        )
        for place, fill in enumerate(book.fills)
    ]


def flows(book: Book) -> Sequence[Row]:
    """A row for cash that moved without a trade, the latest first."""
    return [
        Row(
            f"{place}|{flow.session}",
            (
                Cell(str(flow.session)),
                Cell(flow.symbol or "-", "strong"),
                Cell(flow.kind.replace("_", " "), "muted"),
                signed(amounts.gain(flow.amount), flow.amount),
            ),
        )
        for place, flow in enumerate(book.flows)
    ]
