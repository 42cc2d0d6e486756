"""Applies splits and, where asked, dividends to the account's books at the open of the ex-date."""

from __future__ import annotations

from datetime import date
from decimal import ROUND_DOWN, Decimal

from connectors.sandbox.floor import Floor
from engine.domain.decimal_text import plain
from engine.domain.market import ActionKind, CorporateAction
from engine.domain.portfolio import EXACT, SHARE_STEP


def apply_actions(floor: Floor, session: date, *, pay_dividends: bool) -> None:
    """Everything with an ex-date after the last session that was seen and up to this one."""
    through = date.fromisoformat(floor.book.facts["actions_through"])
    for symbol in floor.market.symbols:
        for action in floor.market.actions(symbol, session):
            if action.ex_date <= through:
                continue
            if action.kind is ActionKind.SPLIT:
                _split(floor, action)
            elif pay_dividends:
                _pay(floor, action)
    floor.book.facts["actions_through"] = session.isoformat()


def _split(floor: Floor, action: CorporateAction) -> None:
    """Positions change by the ratio, and so do orders that wait (FINRA rule 5330)."""
    symbol, ratio, book = action.symbol, action.value, floor.book
    before = book.portfolio.quantity(symbol)
    if before:
        book.portfolio, paid = book.portfolio.split(symbol, ratio, floor.price(symbol))
        _record(floor, "SPLIT", action, paid, book.portfolio.quantity(symbol) - before)
    for order in book.open_orders(symbol):
        if order.qty is not None:
            order.qty = _whole(EXACT.multiply(order.qty, ratio))
            order.filled_qty = _whole(EXACT.multiply(order.filled_qty, ratio))
        if order.limit_price is not None:
            order.limit_price = _whole(EXACT.divide(order.limit_price, ratio))
        book.touch(order)


def _pay(floor: Floor, action: CorporateAction) -> None:
    held = floor.book.portfolio.quantity(action.symbol)
    floor.book.portfolio, paid = floor.book.portfolio.dividend(action.symbol, action.value)
    if paid:
        _record(floor, "DIV", action, paid, held)


def _record(floor: Floor, kind: str, action: CorporateAction, amount: Decimal, quantity: Decimal) -> None:
    values = {
        "date": floor.now.date().isoformat(),
        "net_amount": plain(amount),
        "symbol": floor.market.listing(action.symbol).wire,
        "qty": plain(quantity),
        "status": "executed",
        "description": f"{action.kind.value} of {plain(action.value)}, ex {action.ex_date}",
    }
    if kind == "DIV":
        values["per_share_amount"] = plain(action.value)
    floor.book.record(kind, floor.now, values)


def _whole(number: Decimal) -> Decimal:
    return number.quantize(SHARE_STEP, ROUND_DOWN, EXACT)
