"""Rows of a broker's account, beside the values that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from engine.domain.brokerage import Activity
from engine.domain.run import Adoption
from engine.journal.codec import Row, moment, text_or_none
from engine.journal.entries import BoundAccount


def bound_row(account: BoundAccount) -> Row:
    """The account that a desk is bound to, as a row."""
    return {"kind": account.kind, "account": account.account, "time": moment(account.time)}


def bound_of(row: Mapping[str, Any]) -> BoundAccount:
    """The account that a desk is bound to, from its row."""
    return BoundAccount(row["kind"], row["account"], datetime.fromisoformat(row["time"]))


def activity_row(activity: Activity) -> Row:
    """One activity of the account as a row."""
    return {
        "id": activity.id,
        "kind": activity.kind.value,
        "time": moment(activity.time),
        "symbol": activity.symbol,
        "broker_id": activity.broker_id,
        "side": None if activity.side is None else activity.side.value,
        "quantity": str(activity.quantity),
        "price": text_or_none(activity.price),
        "amount": str(activity.amount),
        "description": activity.description,
    }


def adoption_row(adoption: Adoption) -> Row:
    """An adopted difference as a row."""
    return {
        "session": adoption.session.isoformat(),
        "symbol": adoption.symbol,
        "before": str(adoption.before),
        "after": str(adoption.after),
        "price": str(adoption.price),
        "reason": adoption.reason,
    }


def adoption_of(row: Mapping[str, Any]) -> Adoption:
    """An adopted difference from its row."""
    return Adoption(
        session=date.fromisoformat(row["session"]),
        symbol=row["symbol"],
        before=Decimal(row["before"]),
        after=Decimal(row["after"]),
        price=Decimal(row["price"]),
        reason=row["reason"],
    )
