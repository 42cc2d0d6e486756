"""Validation of order requests by Alpaca's rules, with the broker's codes.

Orders that are not simulated (stops, brackets, options) are refused with that reason, rather than filled wrongly.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from connectors.sandbox.market import Listing, SandboxMarket, next_session, session_open
from connectors.sandbox.protocol import NEW_YORK, forbidden, invalid
from engine.domain.order import Side

OPENING_LAST = time(9, 28)
CLOSING_LAST = time(15, 50)
ACCEPTED_AGAIN = time(19, 0)
"""End of the times at which auction orders are refused, in New York time.

Those for the opening auction are refused from 9:28 to 19:00, those for the closing one from 15:50 (ten minutes before
an early close) to 19:00.
"""

_CLOSING_MARGIN = timedelta(minutes=10)
_MINIMUM = {False: Decimal(1), True: Decimal(10)}
"""Smallest amount of a purchase in USD, of shares and of crypto."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A valid order request.

    type: market or limit.
    client_order_id: empty where none was given.
    qty: shares.
    notional, limit_price: USD.
    """

    listing: Listing
    side: Side
    type: str
    time_in_force: str
    client_order_id: str
    qty: Decimal | None
    notional: Decimal | None
    limit_price: Decimal | None


def read_ticket(body: dict[str, Any], market: SandboxMarket, now: datetime) -> Ticket:
    """The order of a request. Raises ApiError."""
    listing = _listing(body, market)
    side = _choice_of(body, "side", ("buy", "sell"))
    kind = _choice_of(body, "type", ("market", "limit", "stop", "stop_limit", "trailing_stop"))
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
        listing=listing,
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
    qty, notional = _amount(body, "qty"), _amount(body, "notional")
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
    limit = _amount(body, "limit_price")
    if kind == "limit" and limit is None:
        raise invalid("limit orders require a limit price")
    if kind == "market" and limit is not None:
        raise invalid("market orders require no stop or limit price")
    if limit is not None and not listing.crypto and _decimals(limit) > (2 if limit >= 1 else 4):
        raise invalid(f"invalid limit_price {limit}. sub-penny increment does not fulfill minimum pricing criteria")
    return limit


def check_minimum(ticket: Ticket, cost: Decimal) -> None:
    """Refuse a purchase below the minimum, by notional or by quantity. Raises ApiError."""
    minimum = _MINIMUM[ticket.listing.crypto]
    if ticket.side is Side.BUY and cost < minimum:
        raise forbidden(f"cost basis must be >= minimal amount of order {minimum}")


def _time_in_force(
    body: dict[str, Any], listing: Listing, fractional: bool, market: SandboxMarket, now: datetime
) -> str:
    force = _choice_of(body, "time_in_force", ("day", "gtc", "opg", "cls", "ioc", "fok"))
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


def _choice_of(body: dict[str, Any], name: str, choices: tuple[str, ...]) -> str:
    value = body.get(name)
    if value not in choices:
        raise invalid(f"invalid {name}: {str(value)[:40]!r}" if value else f"{name} is required")
    return str(value)


def _amount(body: dict[str, Any], name: str) -> Decimal | None:
    value = body.get(name)
    if value is None:
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
