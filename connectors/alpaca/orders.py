"""Orders on the wire: the request for one of ours, and the broker's orders as values."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_DOWN, Decimal

from connectors.alpaca.json_fields import Raw, moment_or_none, number, number_or_none, required_text, text_of
from connectors.alpaca.symbols import from_wire, to_wire
from engine.domain.brokerage import BrokerOrder
from engine.domain.decimal_text import plain
from engine.domain.market import is_crypto
from engine.domain.order import Order, OrderState, OrderUpdate, Side
from engine.domain.portfolio import CENT, EXACT, SHARE_STEP, ZERO
from engine.errors import MalformedData

_ENDS: Mapping[str, OrderState] = {
    "filled": OrderState.FILLED,
    "canceled": OrderState.CANCELED,
    "expired": OrderState.EXPIRED,
    "rejected": OrderState.REJECTED,
    # Another order, of another id, goes on in its place; under our id nothing follows.
    "replaced": OrderState.CANCELED,
}
_PLAIN = frozenset({"new", "accepted", "pending_new", "partially_filled", "filled", "canceled", "expired"})
"""Statuses that say no more than their state does."""


def order_body(order: Order) -> dict[str, str]:
    """Request for a market order: shares for the day, crypto until canceled.

    Money is text, cut to two decimals, quantities to nine.
    """
    body = {
        "symbol": to_wire(order.symbol),
        "side": order.side.value.lower(),
        "type": "market",
        "time_in_force": "gtc" if is_crypto(order.symbol) else "day",
        "client_order_id": order.id,
    }
    if order.notional is not None:
        return body | {"notional": plain(_cut(order.notional, CENT))}
    return body | {"qty": plain(_cut(order.quantity or ZERO, SHARE_STEP))}


def broker_order(raw: Raw) -> BrokerOrder:
    """An order of the broker's. Raises MalformedData naming a missing or invalid field."""
    where = f"the broker's order {text_of(raw, 'client_order_id') or text_of(raw, 'id') or 'without an id'}"
    filled = number_or_none(raw, "filled_qty", where) or ZERO
    state, detail = _state_of(required_text(raw, "status", where).lower(), filled, raw)
    if state is OrderState.FILLED:
        filled = number(raw, "filled_qty", where)
    return BrokerOrder(
        order_id=required_text(raw, "client_order_id", where),
        broker_id=required_text(raw, "id", where),
        symbol=from_wire(text_of(raw, "symbol"), text_of(raw, "asset_class")),
        side=side_of(text_of(raw, "side") or _side_of_legs(raw), where),
        state=state,
        quantity=number_or_none(raw, "qty", where),
        notional=number_or_none(raw, "notional", where),
        filled_quantity=filled,
        filled_average_price=number_or_none(raw, "filled_avg_price", where),
        submitted_at=moment_or_none(raw, "submitted_at"),
        detail=detail,
    )


def update_of(order: BrokerOrder) -> OrderUpdate:
    """The state of an order."""
    return OrderUpdate(order.order_id, order.state, order.filled_quantity, order.detail)


def side_of(text: str, where: str) -> Side:
    """Side of an order: `sell_short` and `buy_minus` are sides too. Raises MalformedData for others."""
    if text.lower().startswith("buy"):
        return Side.BUY
    if text.lower().startswith("sell"):
        return Side.SELL
    raise MalformedData(f"{where}: its side is {text[:40]!r}, neither buy nor sell; look at it at the broker")


def _side_of_legs(raw: Raw) -> str:
    """Side of the first leg: an order of several legs, of options, has neither side nor symbol of its own."""
    legs = raw.get("legs")
    first = legs[0] if isinstance(legs, list) and legs else None
    return text_of(first, "side") if isinstance(first, dict) else ""


def _state_of(status: str, filled: Decimal, raw: Raw) -> tuple[OrderState, str]:
    """State and detail of a status; an unknown one is an open order, with the status as detail."""
    state = _ENDS.get(status)
    if state is None:
        state = OrderState.PARTIALLY_FILLED if filled else OrderState.ACKNOWLEDGED
    elif state is OrderState.REJECTED and filled:
        state = OrderState.CANCELED  # what has begun to fill can end, and cannot be undone
    if status in _PLAIN:
        return state, ""
    parts = [f"the broker says {status.replace('_', ' ')}"]
    parts += [text_of(raw, name) for name in ("reject_reason", "replaced_by") if text_of(raw, name)]
    return state, ": ".join(parts)


def _cut(number: Decimal, step: Decimal) -> Decimal:
    return number.quantize(step, ROUND_DOWN, EXACT)
