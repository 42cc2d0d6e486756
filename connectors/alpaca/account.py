"""Account, positions, clock, sessions, instruments and equity history from the broker's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from connectors.alpaca.json_fields import (
    Raw,
    flag,
    from_wire,
    json_object,
    moment,
    number,
    number_or_none,
    required_text,
    text_of,
)
from engine.domain.brokerage import Asset, BrokerAccount, BrokerClock, SessionHours
from engine.domain.market import Symbol
from engine.domain.portfolio import Position
from engine.errors import MalformedData

NEW_YORK = ZoneInfo("America/New_York")
"""Time zone of the calendar's times, which do not name it."""
_BLOCKS = (
    ("account_blocked", "the account is blocked"),
    ("trading_blocked", "trading is blocked"),
    ("trade_suspended_by_user", "trading is suspended in the account's settings"),
)
_NOT_TRADING = frozenset(
    {
        "INACTIVE",
        "ONBOARDING",
        "SUBMISSION_FAILED",
        "SUBMITTED",
        "APPROVAL_PENDING",
        "REJECTED",
        "DISABLED",
        "ACCOUNT_CLOSED",
        "ACCOUNT_CLOSED_PENDING",
    }
)
"""Statuses under which nothing trades. Any other status does not block: the broker refuses orders by itself."""


def broker_account(account: Raw, positions: Sequence[Raw]) -> BrokerAccount:
    """An account with its positions. Raises MalformedData naming a field that money depends on."""
    where = "the broker's account"
    status = text_of(account, "status")
    reasons = [reason for name, reason in _BLOCKS if flag(account, name)]
    if status.upper() in _NOT_TRADING:
        reasons.append(f"the account's status is {status}")
    equity = number_or_none(account, "equity", where)
    return BrokerAccount(
        id=required_text(account, "id", where),
        status=status,
        blocked="; ".join(reasons),
        currency=text_of(account, "currency") or "USD",
        cash=number(account, "cash", where),
        equity=number(account, "portfolio_value", where) if equity is None else equity,
        positions=dict(map(_position, positions)),
    )


def _position(raw: Raw) -> tuple[Symbol, Position]:
    name = required_text(raw, "symbol", "a position at the broker")
    where = f"the broker's position in {name}"
    quantity = number(raw, "qty", where)
    if text_of(raw, "side") == "short":
        quantity = -abs(quantity)
    cost = number(raw, "avg_entry_price", where)
    return from_wire(name, text_of(raw, "asset_class")), Position(quantity, cost)


def broker_clock(raw: Raw) -> BrokerClock:
    """The market clock. Raises MalformedData."""
    where = "the broker's clock"
    return BrokerClock(
        moment(raw, "timestamp", where),
        flag(raw, "is_open"),
        moment(raw, "next_open", where),
        moment(raw, "next_close", where),
    )


def session_hours(raw: Raw) -> SessionHours:
    """A session of the calendar. Raises MalformedData."""
    where = "the broker's calendar"
    session = date_of(required_text(raw, "date", where), where)
    opens, closes = (_at(session, required_text(raw, name, where), where) for name in ("open", "close"))
    return SessionHours(session, opens, closes)


def asset(raw: Raw) -> Asset:
    """An instrument; `tradable` is required. Raises MalformedData."""
    where = f"the broker's instrument {text_of(raw, 'symbol')}"
    if raw.get("tradable") is None:
        raise MalformedData(f"{where}: tradable is missing; look at it at the broker")
    return Asset(
        from_wire(required_text(raw, "symbol", where), text_of(raw, "class")),
        text_of(raw, "name"),
        text_of(raw, "status"),
        flag(raw, "tradable"),
        flag(raw, "fractionable"),
    )


def equity_by_session(document: Any) -> dict[date, Decimal]:
    """Value by session, without zeros before the account had money.

    A point is stamped with a time of its session in New York: by the published examples the evening after its close
    (midnight UTC), by the sandbox its open. Raises MalformedData.
    """
    where = "the broker's equity history"
    raw = json_object(document, where)
    stamps, values = raw.get("timestamp"), raw.get("equity")
    if not isinstance(stamps, list) or not isinstance(values, list) or len(stamps) != len(values):
        raise MalformedData(f"{where}: timestamp and equity are no lists of one length; try again later")
    found: dict[date, Decimal] = {}
    for stamp, value in zip(stamps, values, strict=True):
        if not isinstance(stamp, int) or isinstance(stamp, bool):
            raise MalformedData(f"{where}: {str(stamp)[:40]!r} is no timestamp; try again later")
        equity = number_or_none({"equity": value}, "equity", where)
        if equity is not None and (equity or found):
            found[datetime.fromtimestamp(stamp, UTC).astimezone(NEW_YORK).date()] = equity
    return found


def date_of(text: str, where: str) -> date:
    """A date in ISO notation. Raises MalformedData."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        raise MalformedData(f"{where}: {text[:40]!r} is no date; try again later") from None


def _at(session: date, text: str, where: str) -> datetime:
    try:
        local = time.fromisoformat(text)
    except ValueError:
        raise MalformedData(f"{where}: {text[:40]!r} is no time of day; try again later") from None
    return datetime.combine(session, local, NEW_YORK).astimezone(UTC)
