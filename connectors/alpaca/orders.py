"""Orders and account activity on the wire: the request for an order of ours, and the broker's entries as values.

Orders, fills, and the kinds of activity that the sandbox serves, are tested. The live service's entries for splits,
spin-offs, reversals and crypto fees could not be tested: such an entry keeps the broker's own description, and its
shares and cash are read from `qty` and `net_amount` as published.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal

from connectors.alpaca.json_fields import (
    Raw,
    from_wire,
    moment,
    moment_or_none,
    number,
    number_or_none,
    required_text,
    text_of,
    to_wire,
)
from engine.domain.brokerage import Activity, ActivityKind, BrokerOrder
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
_KINDS = {
    ActivityKind.FILL: ("FILL",),
    ActivityKind.DIVIDEND: ("CGD",),
    ActivityKind.FEE: ("FEE", "CFEE", "PTC"),
    ActivityKind.SPLIT: ("SPLIT",),
    ActivityKind.TRANSFER: ("CSD", "CSW", "TRANS", "JNL", "JNLC", "JNLS", "ACATC", "ACATS", "FOPT"),
}
"""The broker's activity types by kind."""
_CASH_ONLY = frozenset({ActivityKind.DIVIDEND, ActivityKind.INTEREST})
"""Kinds whose `qty` is the position, not a change."""
_MAY_MOVE_NOTHING = frozenset({ActivityKind.SPLIT, ActivityKind.OTHER})
"""Kinds that may have neither shares nor cash, such as a change of name."""


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


def kind_of(name: str) -> ActivityKind:
    """Kind of the broker's activity type; an unknown one is OTHER."""
    if name.startswith("DIV"):
        return ActivityKind.DIVIDEND
    if name.startswith("INT"):
        return ActivityKind.INTEREST
    return next((kind for kind, names in _KINDS.items() if name in names), ActivityKind.OTHER)


def activity(raw: Raw) -> Activity:
    """One entry. Raises MalformedData naming a missing or invalid field."""
    name, identity = text_of(raw, "activity_type").upper(), required_text(raw, "id", "an activity at the broker")
    kind, where = kind_of(name), f"the broker's activity {identity}"
    found = text_of(raw, "symbol")
    symbol = from_wire(found) if found else None
    if kind is ActivityKind.FILL:
        return Activity(
            id=identity,
            kind=kind,
            time=moment(raw, "transaction_time", where),
            symbol=from_wire(required_text(raw, "symbol", where)),
            broker_id=required_text(raw, "order_id", where),
            side=side_of(text_of(raw, "side"), where),
            quantity=abs(number(raw, "qty", where)),
            price=number(raw, "price", where),
            description=text_of(raw, "type") or name,
        )
    quantity, amount = _moved(raw, kind, where)
    description = ": ".join(part for part in (_type_text(raw, name), text_of(raw, "description")) if part)
    time = _day(raw) or moment_or_none(raw, "created_at") or moment_of_id(identity)
    return Activity(
        id=identity,
        kind=kind,
        time=time if time is not None else moment(raw, "date", where),
        symbol=symbol,
        quantity=quantity,
        price=number_or_none(raw, "price", where),
        amount=amount,
        description=description,
    )


def _moved(raw: Raw, kind: ActivityKind, where: str) -> tuple[Decimal, Decimal]:
    """Signed change of shares and cash of an entry; a canceled one has neither."""
    if text_of(raw, "status").lower() == "canceled":
        return ZERO, ZERO
    quantity = ZERO if kind in _CASH_ONLY else number_or_none(raw, "qty", where) or ZERO
    amount = number_or_none(raw, "net_amount", where)
    if amount is None and not quantity and kind not in _MAY_MOVE_NOTHING:
        amount = number(raw, "net_amount", where)
    return quantity, amount or ZERO


def _type_text(raw: Raw, name: str) -> str:
    status = text_of(raw, "status").lower()
    parts = [name or "no type", text_of(raw, "activity_sub_type"), "" if status == "executed" else status]
    return " ".join(part for part in parts if part)


def _day(raw: Raw) -> datetime | None:
    """Day of an entry, at its beginning in UTC."""
    return moment_or_none({"date": text_of(raw, "date")[:10]}, "date")


def moment_of_id(identity: str) -> datetime | None:
    """Time at the head of an activity's id (YYYYMMDDHHMMSSmmm::...), or None."""
    digits = identity.partition("::")[0]
    try:
        return datetime.strptime(digits[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _cut(number: Decimal, step: Decimal) -> Decimal:
    return number.quantize(step, ROUND_DOWN, EXACT)
