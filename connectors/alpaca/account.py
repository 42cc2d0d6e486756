"""Account, positions, clock, sessions, instruments and equity history from the broker's JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from connectors.alpaca.json_fields import Fields, Raw, from_wire, json_object, text_of
from engine.domain.brokerage import Asset, BrokerAccount, BrokerClock, SessionHours
from engine.domain.market import Symbol
from engine.domain.portfolio import Position
from engine.errors import MalformedData

T = TypeVar("T")

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
_TRADING = frozenset(
    {"ACTIVE", "ACCOUNT_UPDATED", "ACTION_REQUIRED", "AML_REVIEW", "APPROVED", "EDITED", "LIMITED", "PAPER_ONLY"}
    | {"REAPPROVAL_PENDING", "REENABLED", "RESUBMITTED", "SIGNED_UP", "SUBMITTED"}
)
"""Further statuses that the published interface names."""


def broker_account(account: Raw, positions: Sequence[Raw]) -> BrokerAccount:
    """An account with its positions. Raises MalformedData naming a field that money depends on."""
    fields = Fields(account, "the broker's account")
    status, equity = fields.text("status"), fields.number_or_none("equity")
    reasons = [reason for name, reason in _BLOCKS if fields.flag(name)]
    if status.upper() in _NOT_TRADING:
        reasons.append(f"the account's status is {status}")
    return BrokerAccount(
        id=fields.required("id"),
        status=status,
        blocked="; ".join(reasons),
        currency=fields.text("currency") or "USD",
        cash=fields.number("cash"),
        equity=fields.number("portfolio_value") if equity is None else equity,
        positions=dict(map(_position, positions)),
        prices=dict(filter(None, map(_price, positions))),
        buying_power=fields.number_or_none("buying_power"),
        crypto_power=fields.number_or_none("non_marginable_buying_power"),
        shorting=fields.text("shorting_enabled").lower() != "false",
        remarks=tuple(_remarks(fields, status)),
    )


def _remarks(fields: Fields, status: str) -> Iterator[str]:
    if status and status.upper() not in _TRADING | _NOT_TRADING:
        yield f"the broker calls the account's status {status[:40]}, which is not known here: it is traded in as before"
    if fields.flag("pattern_day_trader"):
        yield "the broker marks the account as a pattern day trader's: it may refuse orders"


def _price(raw: Raw) -> tuple[Symbol, Decimal] | None:
    fields = Fields(raw, "a position at the broker")
    price = fields.number_or_none("current_price")
    return None if price is None else (from_wire(fields.required("symbol"), fields.text("asset_class")), price)


def _position(raw: Raw) -> tuple[Symbol, Position]:
    name = Fields(raw, "a position at the broker").required("symbol")
    fields = Fields(raw, f"the broker's position in {name}")
    quantity = fields.number("qty")
    if fields.text("side") == "short":
        quantity = -abs(quantity)
    return from_wire(name, fields.text("asset_class")), Position(quantity, fields.number("avg_entry_price"))


def broker_clock(document: Any) -> BrokerClock:
    """The market clock. Raises MalformedData."""
    where = "the broker's clock"
    fields = Fields(json_object(document, where), where)
    opens, closes = fields.moment("next_open"), fields.moment("next_close")
    return BrokerClock(fields.moment("timestamp"), fields.flag("is_open"), opens, closes)


def session_hours(raw: Raw) -> SessionHours:
    """A session of the calendar. Raises MalformedData."""
    fields = Fields(raw, "the broker's calendar")
    session = _read(fields, "date", lambda text: date.fromisoformat(text[:10]), "date")
    times = (_read(fields, name, time.fromisoformat, "time of day") for name in ("open", "close"))
    opens, closes = (datetime.combine(session, local, NEW_YORK).astimezone(UTC) for local in times)
    return SessionHours(session, opens, closes)


def _read(fields: Fields, name: str, read: Callable[[str], T], kind: str) -> T:
    text = fields.required(name)
    try:
        return read(text)
    except ValueError:
        raise MalformedData(f"{fields.where}: {text[:40]!r} is no {kind}; try again later") from None


def asset(raw: Raw) -> Asset:
    """An instrument; `tradable` is required. Raises MalformedData."""
    fields = Fields(raw, f"the broker's instrument {text_of(raw, 'symbol')}")
    if raw.get("tradable") is None:
        raise MalformedData(f"{fields.where}: tradable is missing; look at it at the broker")
    symbol = from_wire(fields.required("symbol"), fields.text("class"))
    name, status = fields.text("name"), fields.text("status")
    return Asset(
        symbol=symbol,
        name=name,
        status=status,
        tradable=fields.flag("tradable"),
        fractionable=fields.flag("fractionable"),
        shortable=fields.flag("shortable"),
        easy_to_borrow=fields.flag("easy_to_borrow"),
        increment=fields.number_or_none("min_trade_increment"),
        least=fields.number_or_none("min_order_size"),
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
    by_session: dict[date, Decimal] = {}
    for stamp, value in zip(stamps, values, strict=True):
        if not isinstance(stamp, int) or isinstance(stamp, bool):
            raise MalformedData(f"{where}: {str(stamp)[:40]!r} is no timestamp; try again later")
        equity = Fields({"equity": value}, where).number_or_none("equity")
        if equity is not None and (equity or by_session):
            by_session[datetime.fromtimestamp(stamp, UTC).astimezone(NEW_YORK).date()] = equity
    return by_session
