"""Orders and account on the wire: the request for an order of ours; account, positions, orders, activity, clock,
sessions, instruments and equity history from the broker's JSON.

Orders, fills, and the kinds of activity that the sandbox serves, are tested. The live service's entries for splits,
spin-offs, reversals and crypto fees could not be tested: such an entry keeps the broker's own description, and its
shares and cash are read from `qty` and `net_amount` as published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import ROUND_DOWN, Decimal
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from connectors.alpaca.json_fields import Fields, Raw, from_wire, json_object, text_of, to_wire
from engine.domain.brokerage import Activity, ActivityKind, Asset, BrokerAccount, BrokerClock, BrokerOrder, SessionHours
from engine.domain.market import Symbol, is_crypto
from engine.domain.order import CENT, EXACT, SHARE_STEP, ZERO, Order, OrderState, OrderUpdate, Position, Side
from engine.domain.text import plain
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
        raise MalformedData(f"{fields.where}: tradable is missing; check it at the broker")
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
            raise MalformedData(f"{where}: {str(stamp)[:40]!r} is not a timestamp; try again later")
        equity = Fields({"equity": value}, where).number_or_none("equity")
        if equity is not None and (equity or by_session):
            by_session[datetime.fromtimestamp(stamp, UTC).astimezone(NEW_YORK).date()] = equity
    return by_session


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
    name = text_of(raw, "client_order_id") or text_of(raw, "id") or "without an id"
    fields = Fields(raw, f"the broker's order {name}")
    filled = fields.number_or_none("filled_qty") or ZERO
    state, detail = _state_of(fields.required("status").lower(), filled, fields)
    return BrokerOrder(
        order_id=fields.required("client_order_id"),
        broker_id=fields.required("id"),
        symbol=from_wire(fields.text("symbol"), fields.text("asset_class")),
        side=side_of(fields.text("side") or _side_of_legs(raw), fields.where),
        state=state,
        quantity=fields.number_or_none("qty"),
        notional=fields.number_or_none("notional"),
        filled_quantity=fields.number("filled_qty") if state is OrderState.FILLED else filled,
        filled_average_price=fields.number_or_none("filled_avg_price"),
        submitted_at=fields.moment_or_none("submitted_at"),
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
    raise MalformedData(f"{where}: its side is {text[:40]!r}, neither buy nor sell; check it at the broker")


def _side_of_legs(raw: Raw) -> str:
    """Side of the first leg: an order of several legs, of options, has neither side nor symbol of its own."""
    legs = raw.get("legs")
    first = legs[0] if isinstance(legs, list) and legs else None
    return text_of(first, "side") if isinstance(first, dict) else ""


def _state_of(status: str, filled: Decimal, fields: Fields) -> tuple[OrderState, str]:
    """State and detail of a status; an unknown one is an open order, with the status as detail."""
    state = _ENDS.get(status)
    if state is None:
        state = OrderState.PARTIALLY_FILLED if filled else OrderState.ACKNOWLEDGED
    elif state is OrderState.REJECTED and filled:
        state = OrderState.CANCELED  # what has begun to fill can end, and cannot be undone
    if status in _PLAIN:
        return state, ""
    parts = [f"the broker says {status.replace('_', ' ')}", fields.text("reject_reason"), fields.text("replaced_by")]
    return state, ": ".join(filter(None, parts))


def kind_of(name: str) -> ActivityKind:
    """Kind of the broker's activity type; an unknown one is OTHER."""
    if name.startswith("DIV"):
        return ActivityKind.DIVIDEND
    if name.startswith("INT"):
        return ActivityKind.INTEREST
    return next((kind for kind, names in _KINDS.items() if name in names), ActivityKind.OTHER)


def activity(raw: Raw) -> Activity:
    """One entry. Raises MalformedData naming a missing or invalid field."""
    identity = Fields(raw, "an activity at the broker").required("id")
    fields = Fields(raw, f"the broker's activity {identity}")
    name, symbol = fields.text("activity_type").upper(), fields.text("symbol")
    kind = kind_of(name)
    if kind is ActivityKind.FILL:
        return Activity(
            id=identity,
            kind=kind,
            time=fields.moment("transaction_time"),
            symbol=from_wire(fields.required("symbol")),
            broker_id=fields.required("order_id"),
            side=side_of(fields.text("side"), fields.where),
            quantity=abs(fields.number("qty")),
            price=fields.number("price"),
            description=fields.text("type") or name,
        )
    quantity, amount = _moved(fields, kind)
    day = Fields({"date": fields.text("date")[:10]}, fields.where).moment_or_none("date")
    return Activity(
        id=identity,
        kind=kind,
        time=day or fields.moment_or_none("created_at") or moment_of_id(identity) or fields.moment("date"),
        symbol=from_wire(symbol) if symbol else None,
        quantity=quantity,
        price=fields.number_or_none("price"),
        amount=amount,
        description=": ".join(filter(None, (_type_text(fields, name), fields.text("description")))),
    )


def _moved(fields: Fields, kind: ActivityKind) -> tuple[Decimal, Decimal]:
    """Signed change of shares and cash of an entry; a canceled one has neither."""
    if fields.text("status").lower() == "canceled":
        return ZERO, ZERO
    quantity = ZERO if kind in _CASH_ONLY else fields.number_or_none("qty") or ZERO
    may_lack_cash = quantity or kind in _MAY_MOVE_NOTHING
    amount = fields.number_or_none("net_amount") if may_lack_cash else fields.number("net_amount")
    return quantity, amount or ZERO


def _type_text(fields: Fields, name: str) -> str:
    status = fields.text("status").lower()
    parts = (name or "no type", fields.text("activity_sub_type"), "" if status == "executed" else status)
    return " ".join(filter(None, parts))


def moment_of_id(identity: str) -> datetime | None:
    """Time at the head of an activity's id (YYYYMMDDHHMMSSmmm::...), or None."""
    digits = identity.partition("::")[0]
    try:
        return datetime.strptime(digits[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _cut(number: Decimal, step: Decimal) -> Decimal:
    return number.quantize(step, ROUND_DOWN, EXACT)
