"""Application of splits and, if set, dividends to the account's books at the open of the ex-date."""

from __future__ import annotations

from datetime import date
from decimal import ROUND_DOWN, Decimal

from connectors.sandbox.matching_engine import MatchingEngine
from engine.domain.decimal_text import plain
from engine.domain.market import ActionKind, CorporateAction
from engine.domain.portfolio import EXACT, SHARE_STEP


def apply_actions(matching: MatchingEngine, session: date, *, pay_dividends: bool) -> None:
    """Apply the actions with an ex-date after the last processed session and up to this one."""
    through = date.fromisoformat(matching.book.facts["actions_through"])
    for symbol in matching.market.symbols:
        for action in matching.market.actions(symbol, session):
            if action.ex_date <= through:
                continue
            if action.kind is ActionKind.SPLIT:
                _split(matching, action)
            elif pay_dividends:
                _pay(matching, action)
    matching.book.facts["actions_through"] = session.isoformat()


def _split(matching: MatchingEngine, action: CorporateAction) -> None:
    """Apply the ratio to positions and to open orders (FINRA rule 5330)."""
    symbol, ratio, book = action.symbol, action.value, matching.book
    before = book.portfolio.quantity(symbol)
    if before:
        book.portfolio, paid = book.portfolio.split(symbol, ratio, matching.price(symbol))
        _record(matching, "SPLIT", action, paid, book.portfolio.quantity(symbol) - before)
    for order in book.open_orders(symbol):
        if order.qty is not None:
            order.qty = _whole(EXACT.multiply(order.qty, ratio))
            order.filled_qty = _whole(EXACT.multiply(order.filled_qty, ratio))
        if order.limit_price is not None:
            order.limit_price = _whole(EXACT.divide(order.limit_price, ratio))
        book.mark_changed(order)


def _pay(matching: MatchingEngine, action: CorporateAction) -> None:
    held = matching.book.portfolio.quantity(action.symbol)
    matching.book.portfolio, paid = matching.book.portfolio.dividend(action.symbol, action.value)
    if paid:
        _record(matching, "DIV", action, paid, held)


def _record(matching: MatchingEngine, kind: str, action: CorporateAction, amount: Decimal, quantity: Decimal) -> None:
    values = {
        "date": matching.now.date().isoformat(),
        "net_amount": plain(amount),
        "symbol": matching.market.listing(action.symbol).wire,
        "qty": plain(quantity),
        "status": "executed",
        "description": f"{action.kind.value} of {plain(action.value)}, ex {action.ex_date}",
    }
    if kind == "DIV":
        values["per_share_amount"] = plain(action.value)
    matching.book.record(kind, matching.now, values)


def _whole(number: Decimal) -> Decimal:
    return number.quantize(SHARE_STEP, ROUND_DOWN, EXACT)
