"""What a request for an order may say, by Alpaca's rules; everything else is refused with the broker's code.

What is not simulated (stops, brackets, options) is refused too, saying so, rather than filled wrongly.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from connectors.sandbox.market import Listing, SandboxMarket, next_session, session_open
from connectors.sandbox.wire import NEW_YORK, denied, invalid
from engine.domain.order import Side

OPENING_LAST = time(9, 28)
CLOSING_LAST = time(15, 50)
ACCEPTED_AGAIN = time(19, 0)
"""Orders for the opening auction are refused from 9:28 to 19:00 in New York, those for the closing one from 15:50
(ten minutes before an early close) to 19:00."""

_LEAST_CLOSING = timedelta(minutes=10)
_LEAST = {False: Decimal(1), True: Decimal(10)}
"""The smallest amount of a buy, of shares and of coins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A well-formed request for an order."""

    listing: Listing
    side: Side
    type: str
    time_in_force: str
    client_order_id: str
    qty: Decimal | None
    notional: Decimal | None
    limit_price: Decimal | None


def read_ticket(body: dict[str, Any], market: SandboxMarket, now: datetime) -> Ticket:
    """The order that a request asks for. Raises Refusal."""
    symbol = str(body.get("symbol") or "")
    if not symbol:
        raise invalid("symbol is required")
    listing = market.find(symbol)
    if listing is None:
        raise invalid(f'asset "{symbol[:40]}" not found')
    side = _word(body, "side", ("buy", "sell"))
    kind = _word(body, "type", ("market", "limit", "stop", "stop_limit", "trailing_stop"))
    if kind not in ("market", "limit"):
        raise invalid(f"the sandbox does not simulate {kind} orders")
    if body.get("order_class") not in (None, "", "simple"):
        raise invalid(f"the sandbox does not simulate {str(body['order_class'])[:40]} orders")
    qty, notional = _amount(body, "qty"), _amount(body, "notional")
    if qty is None and notional is None:
        raise invalid("qty or notional is required")
    if qty is not None and notional is not None:
        raise invalid("only one of qty or notional is accepted")
    if qty is not None and _decimals(qty) > 9:
        raise invalid("qty must be limited to 9 decimal places")
    if notional is not None and _decimals(notional) > 2:
        raise invalid("notional value must be limited to 2 decimal places")
    limit = _amount(body, "limit_price")
    if kind == "limit" and limit is None:
        raise invalid("limit orders require a limit price")
    if kind == "market" and limit is not None:
        raise invalid("market orders require no stop or limit price")
    if limit is not None and not listing.crypto and _decimals(limit) > (2 if limit >= 1 else 4):
        raise invalid(f"invalid limit_price {limit}. sub-penny increment does not fulfill minimum pricing criteria")
    force = _time_in_force(body, listing, qty, notional, market, now)
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


def check_least(ticket: Ticket, cost: Decimal) -> None:
    """Refuses a purchase that comes to too little, by notional or by quantity. Raises Refusal."""
    least = _LEAST[ticket.listing.crypto]
    if ticket.side is Side.BUY and cost < least:
        raise denied(f"cost basis must be >= minimal amount of order {least}")


def _time_in_force(
    body: dict[str, Any],
    listing: Listing,
    qty: Decimal | None,
    notional: Decimal | None,
    market: SandboxMarket,
    now: datetime,
) -> str:
    force = _word(body, "time_in_force", ("day", "gtc", "opg", "cls", "ioc", "fok"))
    if listing.crypto:
        if force not in ("gtc", "ioc"):
            raise invalid("invalid crypto time_in_force")
        return force
    if force != "day" and (notional is not None or (qty is not None and qty != qty.to_integral_value())):
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
    return min(CLOSING_LAST, (closes - _LEAST_CLOSING).time())


def good_for(ticket: Ticket, market: SandboxMarket, now: datetime) -> str:
    """The session (ISO) that a day or auction order is good for; empty for one without an end."""
    if ticket.time_in_force not in ("day", "opg", "cls"):
        return ""
    today = session_open(market.exchange, now)
    if today is None or ticket.time_in_force == "opg":
        return next_session(market.exchange, now).isoformat()
    return today.isoformat()


def _word(body: dict[str, Any], name: str, choices: tuple[str, ...]) -> str:
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
