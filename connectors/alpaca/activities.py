"""Account activity from the broker's JSON, entry by entry.

Fills, and the kinds that the sandbox serves, are tested. The live service's entries for splits, spin-offs, reversals
and crypto fees could not be tested: such an entry keeps the broker's own description, and its shares and cash are read
from `qty` and `net_amount` as published.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from connectors.alpaca.json_fields import Raw, moment, moment_or_none, number, number_or_none, required_text, text_of
from connectors.alpaca.orders import side_of
from connectors.alpaca.symbols import from_wire
from engine.domain.brokerage import Activity, ActivityKind
from engine.domain.portfolio import ZERO

_KINDS = {
    "FILL": ActivityKind.FILL,
    "CGD": ActivityKind.DIVIDEND,
    "FEE": ActivityKind.FEE,
    "CFEE": ActivityKind.FEE,
    "PTC": ActivityKind.FEE,
    "SPLIT": ActivityKind.SPLIT,
    "CSD": ActivityKind.TRANSFER,
    "CSW": ActivityKind.TRANSFER,
    "TRANS": ActivityKind.TRANSFER,
    "JNL": ActivityKind.TRANSFER,
    "JNLC": ActivityKind.TRANSFER,
    "JNLS": ActivityKind.TRANSFER,
    "ACATC": ActivityKind.TRANSFER,
    "ACATS": ActivityKind.TRANSFER,
    "FOPT": ActivityKind.TRANSFER,
}
_CASH_ONLY = frozenset({ActivityKind.DIVIDEND, ActivityKind.INTEREST})
"""Kinds whose `qty` is the position, not a change."""
_MAY_MOVE_NOTHING = frozenset({ActivityKind.SPLIT, ActivityKind.OTHER})
"""Kinds that may have neither shares nor cash, such as a change of name."""


def kind_of(name: str) -> ActivityKind:
    """Kind of the broker's activity type; an unknown one is OTHER."""
    if name.startswith("DIV"):
        return ActivityKind.DIVIDEND
    if name.startswith("INT"):
        return ActivityKind.INTEREST
    return _KINDS.get(name, ActivityKind.OTHER)


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
