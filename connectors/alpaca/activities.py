"""What moved an account, line by line, as the broker writes it.

Fills, and the kinds that the sandbox knows, are tried. How the live service words splits, spin-offs, reversals and
fees of coins could not be tried: such a line keeps the broker's own word, and what it moved is read from `qty` and
`net_amount` as published.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from connectors.alpaca.orders import side_of
from connectors.alpaca.reading import Raw, moment, moment_or_none, needed_word, number, number_or_none, word
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
"""Kinds whose `qty` is what was held, not what moved."""
_MAY_MOVE_NOTHING = frozenset({ActivityKind.SPLIT, ActivityKind.OTHER})
"""Kinds that may say neither shares nor cash, such as a change of name."""


def kind_of(name: str) -> ActivityKind:
    """What a type of theirs is; one that is not known is OTHER."""
    if name.startswith("DIV"):
        return ActivityKind.DIVIDEND
    if name.startswith("INT"):
        return ActivityKind.INTEREST
    return _KINDS.get(name, ActivityKind.OTHER)


def activity(raw: Raw) -> Activity:
    """One line. Raises MalformedData naming a field that something rests on."""
    name, identity = word(raw, "activity_type").upper(), needed_word(raw, "id", "an activity at the broker")
    kind, where = kind_of(name), f"the broker's activity {identity}"
    found = word(raw, "symbol")
    symbol = from_wire(found) if found else None
    if kind is ActivityKind.FILL:
        return Activity(
            id=identity,
            kind=kind,
            time=moment(raw, "transaction_time", where),
            symbol=from_wire(needed_word(raw, "symbol", where)),
            broker_id=needed_word(raw, "order_id", where),
            side=side_of(word(raw, "side"), where),
            quantity=abs(number(raw, "qty", where)),
            price=number(raw, "price", where),
            description=word(raw, "type") or name,
        )
    quantity, amount = _moved(raw, kind, where)
    description = ": ".join(part for part in (_called(raw, name), word(raw, "description")) if part)
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
    """Shares and cash that a line moved; one that was called off moved neither."""
    if word(raw, "status").lower() == "canceled":
        return ZERO, ZERO
    quantity = ZERO if kind in _CASH_ONLY else number_or_none(raw, "qty", where) or ZERO
    amount = number_or_none(raw, "net_amount", where)
    if amount is None and not quantity and kind not in _MAY_MOVE_NOTHING:
        amount = number(raw, "net_amount", where)
    return quantity, amount or ZERO


def _called(raw: Raw, name: str) -> str:
    status = word(raw, "status").lower()
    parts = [name or "no type", word(raw, "activity_sub_type"), "" if status == "executed" else status]
    return " ".join(part for part in parts if part)


def _day(raw: Raw) -> datetime | None:
    """The day that a line is dated by, at its beginning in UTC."""
    return moment_or_none({"date": word(raw, "date")[:10]}, "date")


def moment_of_id(identity: str) -> datetime | None:
    """The moment that an activity's id begins with (YYYYMMDDHHMMSSmmm::...), None where it does not."""
    digits = identity.partition("::")[0]
    try:
        return datetime.strptime(digits[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
