"""The effect of an order on the portfolio, as an operator weighs it before an answer, or before it is given,
and the ticket of an order of the operator's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from engine.domain.order import Order, Portfolio, Side
from engine.domain.text import money
from engine.execution.limits import Price, buying_power, shares_of
from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row


def order_effect(
    order: Order,
    price: Price,
    session: date | None,
    *,
    portfolio: Portfolio,
    value: Decimal,
    others: Iterable[Order] = (),
    time: datetime | None = None,
    fills_at: datetime | None = None,
) -> Row:
    """The effect of an order at the close of a session, or at a price of the moment `time` (UTC), on a portfolio of
    that value beside `others` that are open, without what trading costs: its shares and their value in the quote
    currency (`amount` is what is spent in any case, null for an order of shares), the position's part of the portfolio
    `before` and `after` (null for one without value), and the cash less what open orders may take; what they sell
    brings nothing yet. Raises what `price` raises for a symbol without one."""
    beside = [one for one in others if one.id != order.id]
    power, last = buying_power(portfolio, beside, price), price(order.symbol)
    shares, held = shares_of(order, last), portfolio.quantity(order.symbol)
    added = shares if order.side is Side.BUY else -shares
    before, after = (float(number * last / value) if value > 0 else None for number in (held, held + added))
    return {
        "price": money(last),
        "session": None if session is None or time is not None else session.isoformat(),
        "time": None if time is None else time.isoformat(),
        "shares": str(round(shares, 4)),
        "value": str(round(shares * last, 2)),
        "amount": None if order.notional is None else money(order.notional),
        "before": before,
        "after": after,
        "cash_after": str(round(power.cash - power.reserved - added * last, 2)),
        "open_orders": len(beside),
        "fills_at": None if fills_at is None else fills_at.isoformat(),
    }


SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """An order of the operator's own before it is taken, or as it was taken.

    order: in its present state; one that was not taken is merely intended, and in no journal.
    effect: on the portfolio, at the last price.
    refused: why it is not taken, in a sentence; empty where it is.
    detail: what the venue said of it, empty for nothing.
    """

    order: Order
    effect: Row
    refused: str = ""
    detail: str = ""


def ticket_document(desk: str, ticket: Ticket, *, taken: bool) -> Row:
    """A ticket as JSON; `taken` where the order is in the journal."""
    return {
        "schema": SCHEMA,
        "desk": desk,
        "taken": taken,
        "refused": ticket.refused or None,
        "order": row_json.order(ticket.order),
        "detail": ticket.detail or None,
        "effect": ticket.effect,
    }
