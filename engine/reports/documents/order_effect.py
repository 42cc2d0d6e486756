"""The effect of an order on the portfolio, as an operator weighs it before an answer, or before it is given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from engine.domain.order import Order, Side
from engine.domain.portfolio import ZERO
from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEffect:
    """An order as if it filled at the last price, without what trading costs.

    price: in the quote currency, of one share.
    session: of the price.
    shares: that it buys or sells; of an order for an amount by the price.
    value: of these shares, in the quote currency.
    before, after: the worth of the position as a fraction of the portfolio's; None for a portfolio without value.
    cash_after: in the quote currency, where no other order fills.
    """

    price: Decimal
    session: date
    shares: Decimal
    value: Decimal
    before: float | None
    after: float | None
    cash_after: Decimal


def order_effect(
    order: Order, price: Decimal, session: date, *, held: Decimal, cash: Decimal, value: Decimal
) -> OrderEffect:
    """The effect of an order at a price of a session, on a portfolio with so many shares of the symbol, so much cash
    and that value."""
    shares = order.notional / price if order.notional is not None else order.quantity or ZERO
    sign = 1 if order.side is Side.BUY else -1
    parts = [float(number * price / value) if value > 0 else None for number in (held, held + sign * shares)]
    return OrderEffect(
        price=price,
        session=session,
        shares=shares,
        value=shares * price,
        before=parts[0],
        after=parts[1],
        cash_after=cash - sign * shares * price,
    )


def effect_row(effect: OrderEffect | None) -> Row | None:
    """An effect as JSON; None where there is no price. Shares have four decimals, money two."""
    if effect is None:
        return None
    money = {name: str(round(getattr(effect, name), 2)) for name in ("value", "cash_after")}
    return {
        **row_json.fields(effect, "price", "session"),
        "shares": str(round(effect.shares, 4)),
        **money,
        **row_json.fields(effect, "before", "after"),
    }
