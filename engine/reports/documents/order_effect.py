"""The effect of an order on the portfolio, as an operator weighs it before an answer, or before it is given,
and the ticket of an order of the operator's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from engine.domain.order import Order, Portfolio, Side
from engine.execution.limits import Price, buying_power, shares_of
from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEffect:
    """An order as if it filled at the last price, without what trading costs.

    price: in the quote currency, of one share.
    session: of the close that the price is; None for a price of now.
    time: of a price of now, UTC; None for a close.
    shares: that it buys or sells; of an order for an amount by the price.
    value: of these shares, in the quote currency.
    amount: that is spent, in the quote currency, whatever the shares cost when it fills; None for an order of shares.
    before, after: the worth of the position as a fraction of the portfolio's, now and after this order alone; None for
        a portfolio without value.
    cash_after: in the quote currency, less what the open orders may take; what they sell brings nothing yet.
    open_orders: the number of those beside it.
    fills_at: the open at which it fills if it is sent now, UTC; None where it fills at once, or that is not known.
    """

    price: Decimal
    session: date | None
    time: datetime | None
    shares: Decimal
    value: Decimal
    amount: Decimal | None
    before: float | None
    after: float | None
    cash_after: Decimal
    open_orders: int
    fills_at: datetime | None = None


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
) -> OrderEffect:
    """The effect of an order at the close of a session, or at a price of the moment `time`, on a portfolio of that
    value beside `others` that are open. Raises what `price` raises for a symbol without one."""
    beside = [one for one in others if one.id != order.id]
    power, last = buying_power(portfolio, beside, price), price(order.symbol)
    shares, held = shares_of(order, last), portfolio.quantity(order.symbol)
    parts = [float(number * last / value) if value > 0 else None for number in (held, held + _signed(order, last))]
    return OrderEffect(
        price=last,
        session=session if time is None else None,
        time=time,
        shares=shares,
        value=shares * last,
        amount=order.notional,
        before=parts[0],
        after=parts[1],
        cash_after=power.cash - power.reserved - _signed(order, last) * last,
        open_orders=len(beside),
        fills_at=fills_at,
    )


def _signed(order: Order, price: Decimal) -> Decimal:
    """The shares that an order adds to a position, negative for a sale."""
    return shares_of(order, price) if order.side is Side.BUY else -shares_of(order, price)


def effect_row(effect: OrderEffect | None) -> Row | None:
    """An effect as JSON; None where there is no price. Shares have four decimals, money two."""
    if effect is None:
        return None
    money = {name: str(round(getattr(effect, name), 2)) for name in ("value", "cash_after")}
    return {
        **row_json.fields(effect, "price", "session", "time"),
        "shares": str(round(effect.shares, 4)),
        **money,
        **row_json.fields(effect, "amount"),
        **row_json.fields(effect, "before", "after", "open_orders", "fills_at"),
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
    effect: OrderEffect
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
        "effect": effect_row(ticket.effect),
    }
