"""Rows of orders, trades and the books at each close, beside the values that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from engine.domain.order import Fill, Order, OrderState, Side
from engine.domain.portfolio import Portfolio, Position
from engine.domain.run import CashFlow, EquityPoint
from engine.journal.codec import Row, decimal_or_none, moment, text_or_none
from engine.journal.entries import Holding, OrderEntry, OrderMove


def order_row(entry: OrderEntry) -> Row:
    """An order as a row."""
    order = entry.order
    return {
        "id": order.id,
        "run": entry.run,
        "desk": entry.desk,
        "session": order.session.isoformat(),
        "cycle": entry.cycle,
        "owner": entry.owner,
        "book": order.book,
        "symbol": order.symbol,
        "side": order.side.value,
        "quantity": text_or_none(order.quantity),
        "notional": text_or_none(order.notional),
        "reason": order.reason,
        "time": moment(entry.time),
    }


def order_of(row: Mapping[str, Any]) -> OrderEntry:
    """An order from its row joined with its present state."""
    order = Order(
        id=row["id"],
        symbol=row["symbol"],
        side=Side(row["side"]),
        session=date.fromisoformat(row["session"]),
        quantity=decimal_or_none(row["quantity"]),
        notional=decimal_or_none(row["notional"]),
        reason=row["reason"],
        state=OrderState(row["state"]),
        book=row["book"],
    )
    time = datetime.fromisoformat(row["time"])
    return OrderEntry(order=order, run=row["run"], desk=row["desk"], cycle=row["cycle"], time=time, owner=row["owner"])


def move_row(move: OrderMove) -> Row:
    """An order's move as a row."""
    return {
        "order_id": move.order_id,
        "time": moment(move.time),
        "state": move.state.value,
        "filled_quantity": str(move.filled_quantity),
        "detail": move.detail,
    }


def move_of(row: Mapping[str, Any]) -> OrderMove:
    """An order's move from its row."""
    return OrderMove(
        row["order_id"],
        datetime.fromisoformat(row["time"]),
        OrderState(row["state"]),
        Decimal(row["filled_quantity"]),
        row["detail"],
    )


def fill_row(fill: Fill) -> Row:
    """A trade as a row."""
    return {
        "order_id": fill.order_id,
        "session": fill.session.isoformat(),
        "symbol": fill.symbol,
        "side": fill.side.value,
        "quantity": str(fill.quantity),
        "price": str(fill.price),
        "fee": str(fill.fee),
        "reason": fill.reason,
        "book": fill.book,
    }


def fill_of(row: Mapping[str, Any]) -> Fill:
    """A trade from its row."""
    return Fill(
        order_id=row["order_id"],
        symbol=row["symbol"],
        side=Side(row["side"]),
        session=date.fromisoformat(row["session"]),
        quantity=Decimal(row["quantity"]),
        price=Decimal(row["price"]),
        fee=Decimal(row["fee"]),
        reason=row["reason"],
        book=row["book"],
    )


def cash_flow_row(flow: CashFlow) -> Row:
    """A cash flow as a row."""
    return {
        "session": flow.session.isoformat(),
        "symbol": flow.symbol,
        "kind": flow.kind,
        "amount": str(flow.amount),
        "quantity": str(flow.quantity),
        "description": flow.description,
        "book": flow.book,
    }


def cash_flow_of(row: Mapping[str, Any]) -> CashFlow:
    """A cash flow from its row."""
    return CashFlow(
        session=date.fromisoformat(row["session"]),
        symbol=row["symbol"],
        kind=row["kind"],
        amount=Decimal(row["amount"]),
        quantity=Decimal(row["quantity"]),
        description=row["description"],
        book=row["book"],
    )


def equity_row(point: EquityPoint) -> Row:
    """The books at a close as a row."""
    return {
        "session": point.session.isoformat(),
        "owner": point.book,
        "book": point.book,
        "value": str(point.value),
        "cash": str(point.portfolio.cash),
        "money_step": str(point.portfolio.money_step),
    }


def position_rows(point: EquityPoint) -> list[Row]:
    """Holdings at a close, and every other price that was known, in the order of the prices."""
    held = point.portfolio.positions
    symbols = dict.fromkeys((*point.prices, *held))
    return [
        {
            "session": point.session.isoformat(),
            "owner": point.book,
            "book": point.book,
            "symbol": symbol,
            "quantity": str(point.portfolio.quantity(symbol)),
            "price": text_or_none(point.prices.get(symbol)),
            "average_cost": str(held[symbol].average_cost) if symbol in held else None,
        }
        for symbol in symbols
    ]


def holding_of(row: Mapping[str, Any]) -> Holding:
    """A position from its row."""
    return Holding(
        run=row["run"],
        session=date.fromisoformat(row["session"]),
        symbol=row["symbol"],
        quantity=Decimal(row["quantity"]),
        price=decimal_or_none(row["price"]),
        average_cost=decimal_or_none(row["average_cost"]),
        book=row["book"],
    )


def equity_of(row: Mapping[str, Any], holdings: Iterable[Holding]) -> EquityPoint:
    """The books at a close from their row and the holdings of that session."""
    positions: dict[str, Position] = {}
    prices: dict[str, Decimal] = {}
    for holding in holdings:
        if holding.average_cost is not None:
            positions[holding.symbol] = Position(holding.quantity, holding.average_cost)
        if holding.price is not None:
            prices[holding.symbol] = holding.price
    portfolio = Portfolio(Decimal(row["cash"]), positions, Decimal(row["money_step"]))
    return EquityPoint(date.fromisoformat(row["session"]), Decimal(row["value"]), portfolio, prices, row["book"])
