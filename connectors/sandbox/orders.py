"""Orders of the sandbox: validation of requests by Alpaca's rules, with the broker's codes, and the form on the wire.

Orders that are not simulated (stops, brackets, options) are refused with that reason, rather than filled wrongly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from connectors.sandbox.market import Listing, SandboxMarket, next_session, session_open
from connectors.sandbox.protocol import FIXED_FIELDS, NEW_YORK, invalid, texts
from engine.domain.market import Symbol
from engine.domain.order import EXACT, SHARE_STEP, ZERO, Side

OPEN = frozenset({"accepted", "new", "pending_new", "partially_filled"})
"""Statuses that are not final."""
OPENING_LAST = time(9, 28)
CLOSING_LAST = time(15, 50)
ACCEPTED_AGAIN = time(19, 0)
"""End of the times at which auction orders are refused, in New York time.

Those for the opening auction are refused from 9:28 to 19:00, those for the closing one from 15:50 (ten minutes before
an early close) to 19:00.
"""

_CLOSING_MARGIN = timedelta(minutes=10)
_LOCAL = frozenset({"seq", "intent", "session", "cost", "part", "rest", "rest_due"})
"""Fields of an order that are not sent under their name."""


@dataclass(slots=True, kw_only=True)
class Ticket:
    """A valid order request.

    symbol: in the desk's notation.
    type: market or limit.
    client_order_id: empty where none was given.
    qty: shares.
    notional, limit_price: USD.
    """

    symbol: Symbol
    side: Side
    type: str
    time_in_force: str
    client_order_id: str
    qty: Decimal | None = None
    notional: Decimal | None = None
    limit_price: Decimal | None = None


@dataclass(slots=True, kw_only=True)
class SandboxOrder(Ticket):
    """One order. Amounts are Decimal, times aware UTC.

    seq: its number.
    status: Alpaca's.
    intent: of the position, such as buy_to_open.
    session: ISO date of the one session for which a day order is good; empty for one without an end.
    cost: exact sum of quantity times price over its fills.
    replaced_by, replaces: order ids.
    part: fraction that fills first, where a fault says so.
    rest: what then becomes of the remainder.
    rest_due: when it fills.
    """

    seq: int
    id: str
    created_at: datetime
    updated_at: datetime
    status: str
    intent: str
    session: str = ""
    filled_qty: Decimal = ZERO
    cost: Decimal = ZERO
    filled_at: datetime | None = None
    canceled_at: datetime | None = None
    expired_at: datetime | None = None
    failed_at: datetime | None = None
    replaced_at: datetime | None = None
    replaced_by: str | None = None
    replaces: str | None = None
    part: Decimal | None = None
    rest: str = ""
    rest_due: datetime | None = None

    @property
    def is_open(self) -> bool:
        """True while the order is not final."""
        return self.status in OPEN

    @property
    def remaining(self) -> Decimal:
        """Shares still to fill; zero for an order by notional, whose shares depend on the price."""
        return ZERO if self.qty is None else self.qty - self.filled_qty

    @property
    def average_price(self) -> Decimal | None:
        """Average price of its fills."""
        if not self.filled_qty:
            return None
        return EXACT.divide(self.cost, self.filled_qty).quantize(SHARE_STEP, context=EXACT)

    def json(self, listing: Listing) -> dict[str, Any]:
        """The order on the wire."""
        own = {name: getattr(self, name) for name in _NAMES if name not in _LOCAL}
        others = {
            "submitted_at": self.created_at,
            "asset_id": listing.asset_id,
            "symbol": listing.wire,
            "asset_class": listing.asset_class,
            "filled_avg_price": self.average_price,
            "order_type": self.type,
            "side": self.side.value.lower(),
            "position_intent": self.intent,
        }
        return texts(own | others) | FIXED_FIELDS["order"]


_NAMES = [field.name for field in fields(SandboxOrder)]


def read_ticket(body: dict[str, Any], market: SandboxMarket, now: datetime) -> Ticket:
    """The order of a request. Raises ApiError."""
    listing = _listing(body, market)
    side = _choice_of(body, "side", "buy", "sell")
    kind = _choice_of(body, "type", "market", "limit", "stop", "stop_limit", "trailing_stop")
    if kind not in ("market", "limit"):
        raise invalid(f"the sandbox does not simulate {kind} orders")
    if body.get("order_class") not in (None, "", "simple"):
        raise invalid(f"the sandbox does not simulate {str(body['order_class'])[:40]} orders")
    qty, notional = _size(body)
    limit = _limit(body, kind, listing)
    fractional = notional is not None or (qty is not None and qty != qty.to_integral_value())
    force = _time_in_force(body, listing, fractional, market, now)
    if body.get("extended_hours"):
        if kind != "limit" or force != "day":
            raise invalid("extended hours order must be DAY limit orders")
        raise invalid("the sandbox does not simulate trading outside hours")
    name = body.get("client_order_id") or ""
    if not isinstance(name, str) or len(name) > 128:
        raise invalid("client_order_id must be no more than 128 characters")
    return Ticket(
        symbol=listing.symbol,
        side=Side(side.upper()),
        type=kind,
        time_in_force=force,
        client_order_id=name,
        qty=qty,
        notional=notional,
        limit_price=limit,
    )


def _listing(body: dict[str, Any], market: SandboxMarket) -> Listing:
    symbol = str(body.get("symbol") or "")
    if not symbol:
        raise invalid("symbol is required")
    listing = market.find(symbol)
    if listing is None:
        raise invalid(f'asset "{symbol[:40]}" not found')
    return listing


def _size(body: dict[str, Any]) -> tuple[Decimal | None, Decimal | None]:
    """Quantity and notional, of which exactly one is given."""
    qty, notional = amount_of(body, "qty"), amount_of(body, "notional")
    if qty is None and notional is None:
        raise invalid("qty or notional is required")
    if qty is not None and notional is not None:
        raise invalid("only one of qty or notional is accepted")
    if qty is not None and _decimals(qty) > 9:
        raise invalid("qty must be limited to 9 decimal places")
    if notional is not None and _decimals(notional) > 2:
        raise invalid("notional value must be limited to 2 decimal places")
    return qty, notional


def _limit(body: dict[str, Any], kind: str, listing: Listing) -> Decimal | None:
    limit = amount_of(body, "limit_price")
    if kind == "limit" and limit is None:
        raise invalid("limit orders require a limit price")
    if kind == "market" and limit is not None:
        raise invalid("market orders require no stop or limit price")
    if limit is not None and not listing.crypto and _decimals(limit) > (2 if limit >= 1 else 4):
        raise invalid(f"invalid limit_price {limit}. sub-penny increment does not fulfill minimum pricing criteria")
    return limit


def _time_in_force(
    body: dict[str, Any], listing: Listing, fractional: bool, market: SandboxMarket, now: datetime
) -> str:
    force = _choice_of(body, "time_in_force", "day", "gtc", "opg", "cls", "ioc", "fok")
    if listing.crypto:
        if force not in ("gtc", "ioc"):
            raise invalid("invalid crypto time_in_force")
        return force
    if force != "day" and fractional:
        raise invalid("fractional orders must be DAY orders")
    local = now.astimezone(NEW_YORK)
    if force == "opg" and OPENING_LAST <= local.time() < ACCEPTED_AGAIN:
        raise invalid("market-on-open and limit-on-open orders are accepted from 19:00 to 9:28 Eastern only")
    if force == "cls" and _closing_from(market, now) <= local.time() < ACCEPTED_AGAIN:
        raise invalid("market-on-close and limit-on-close orders are accepted from 19:00 to 15:50 Eastern only")
    return force


def _closing_from(market: SandboxMarket, now: datetime) -> time:
    session = session_open(market.exchange, now)
    if session is None:
        return CLOSING_LAST
    closes = market.exchange.closes_at(session).astimezone(NEW_YORK)
    return min(CLOSING_LAST, (closes - _CLOSING_MARGIN).time())


def good_for(ticket: Ticket, market: SandboxMarket, now: datetime) -> str:
    """The session (ISO) for which a day or auction order is good; empty for one without an end."""
    if ticket.time_in_force not in ("day", "opg", "cls"):
        return ""
    today = session_open(market.exchange, now)
    if today is None or ticket.time_in_force == "opg":
        return next_session(market.exchange, now).isoformat()
    return today.isoformat()


def _choice_of(body: dict[str, Any], name: str, *choices: str) -> str:
    value = body.get(name)
    if value not in choices:
        raise invalid(f"invalid {name}: {str(value)[:40]!r}" if value else f"{name} is required")
    return str(value)


def amount_of(body: Mapping[str, Any], name: str) -> Decimal | None:
    """A number above zero; None where it is missing or empty. Raises ApiError."""
    value = body.get(name)
    if value is None or value == "":
        return None
    try:
        amount = Decimal(str(value)) if not isinstance(value, bool) else Decimal("NaN")
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise invalid(f"invalid {name}: {str(value)[:40]!r}")
    if amount <= 0:
        raise invalid(f"{name} must be > 0")
    return amount


def _decimals(number: Decimal) -> int:
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
