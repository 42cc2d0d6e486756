"""Checks of an order against the account: blocks, buying power, shares, wash trades."""

from __future__ import annotations

from decimal import Decimal

from connectors.sandbox.matching_engine import MatchingEngine
from connectors.sandbox.order_rules import Ticket, check_minimum
from connectors.sandbox.orders import SandboxOrder
from connectors.sandbox.protocol import forbidden
from engine.domain.decimal_text import plain
from engine.domain.order import Side
from engine.domain.portfolio import EXACT, ZERO


def check_account(matching: MatchingEngine) -> None:
    """Raise ApiError where the account must not trade."""
    for kind in ("account_blocked", "trading_blocked"):
        if matching.faults.active(kind):
            raise forbidden(f"account is not allowed to trade: {kind.replace('_', ' ')}")
    if matching.book.configurations["suspend_trade"]:
        raise forbidden("new orders are rejected by user request")


def check_buying_power(matching: MatchingEngine, ticket: Ticket, replaces: SandboxOrder | None) -> str:
    """Check cash or shares, net of all open orders but the replaced one; return the order's intent. Raises ApiError."""
    symbol, book = ticket.listing.symbol, matching.book
    for other in book.open_orders(symbol):
        if other.side is not ticket.side and other is not replaces:
            raise forbidden(
                "potential wash trade detected. use complex orders",
                existing_order_id=other.id,
                reject_reason="opposite side market/stop order exists",
            )
    bid, ask = matching.quote(symbol)
    price = ticket.limit_price or (ask if ticket.side is Side.BUY else bid)
    cost = ticket.notional or EXACT.multiply(ticket.qty or ZERO, price)
    check_minimum(ticket, cost)
    held = book.portfolio.quantity(symbol)
    if ticket.side is Side.SELL:
        return _check_shares(matching, ticket, held, price, ZERO if replaces is None else replaces.remaining)
    if held < 0:
        cost = max(ZERO, cost + EXACT.multiply(held, price))
    freed = ZERO if replaces is None else EXACT.multiply(replaces.remaining, replaces.limit_price or ask)
    account = matching.figures()
    _check_power((account.cash_power if ticket.listing.crypto else account.buying_power) + freed, cost)
    return "buy_to_close" if held < 0 else "buy_to_open"


def _check_shares(matching: MatchingEngine, ticket: Ticket, held: Decimal, price: Decimal, freed: Decimal) -> str:
    quantity = ticket.qty or EXACT.divide(ticket.notional or ZERO, price)
    taken = matching.book.held_for_orders(ticket.listing.symbol, price) - freed
    free = max(ZERO, max(held, ZERO) - taken)
    if quantity <= free:
        return "sell_to_close"
    shorts = held <= 0 and not ticket.listing.crypto and not matching.book.configurations["no_shorting"]
    if not shorts or ticket.qty is None or quantity != quantity.to_integral_value():
        raise forbidden(
            f"insufficient qty available for order (requested: {plain(quantity)}, available: {plain(free)})",
            available=plain(free),
            existing_qty=plain(held),
            held_for_orders=plain(taken),
            symbol=ticket.listing.compact,
        )
    _check_power(matching.figures().buying_power, EXACT.multiply(quantity, price))
    return "sell_to_open"


def _check_power(power: Decimal, cost: Decimal) -> None:
    if cost > power:
        raise forbidden("insufficient buying power", buying_power=plain(power), cost_basis=plain(cost))
