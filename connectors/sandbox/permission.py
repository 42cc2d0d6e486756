"""Whether the account may have an order: blocks, funds, shares, and the rule against trading with oneself."""

from __future__ import annotations

from decimal import Decimal

from connectors.sandbox.floor import Floor
from connectors.sandbox.order_rules import Ticket, check_least
from connectors.sandbox.orders import SandboxOrder
from connectors.sandbox.wire import denied
from engine.domain.decimal_text import plain
from engine.domain.order import Side
from engine.domain.portfolio import EXACT, ZERO


def check_account(floor: Floor) -> None:
    """Whether the account may trade at all. Raises Refusal."""
    for kind in ("account_blocked", "trading_blocked"):
        if floor.faults.stands(kind):
            raise denied(f"account is not allowed to trade: {kind.replace('_', ' ')}")
    if floor.book.configurations["suspend_trade"]:
        raise denied("new orders are rejected by user request")


def check_means(floor: Floor, ticket: Ticket, replaces: SandboxOrder | None) -> str:
    """Whether cash or shares suffice, given every open order but the one that is replaced; what the order means to
    the position (its intent). Raises Refusal."""
    symbol, book = ticket.listing.symbol, floor.book
    for other in book.open_orders(symbol):
        if other.side is not ticket.side and other is not replaces:
            raise denied(
                "potential wash trade detected. use complex orders",
                existing_order_id=other.id,
                reject_reason="opposite side market/stop order exists",
            )
    bid, ask = floor.quote(symbol)
    price = ticket.limit_price or (ask if ticket.side is Side.BUY else bid)
    cost = ticket.notional or EXACT.multiply(ticket.qty or ZERO, price)
    check_least(ticket, cost)
    held = book.portfolio.quantity(symbol)
    if ticket.side is Side.SELL:
        return _check_shares(floor, ticket, held, price, ZERO if replaces is None else replaces.remaining)
    if held < 0:
        cost = max(ZERO, cost + EXACT.multiply(held, price))
    freed = ZERO if replaces is None else EXACT.multiply(replaces.remaining, replaces.limit_price or ask)
    account = floor.figures()
    _check_power((account.cash_power if ticket.listing.crypto else account.buying_power) + freed, cost)
    return "buy_to_close" if held < 0 else "buy_to_open"


def _check_shares(floor: Floor, ticket: Ticket, held: Decimal, price: Decimal, freed: Decimal) -> str:
    quantity = ticket.qty or EXACT.divide(ticket.notional or ZERO, price)
    taken = floor.book.held_for_orders(ticket.listing.symbol, price) - freed
    free = max(ZERO, max(held, ZERO) - taken)
    if quantity <= free:
        return "sell_to_close"
    shorts = held <= 0 and not ticket.listing.crypto and not floor.book.configurations["no_shorting"]
    if not shorts or ticket.qty is None or quantity != quantity.to_integral_value():
        raise denied(
            f"insufficient qty available for order (requested: {plain(quantity)}, available: {plain(free)})",
            available=plain(free),
            existing_qty=plain(held),
            held_for_orders=plain(taken),
            symbol=ticket.listing.compact,
        )
    _check_power(floor.figures().buying_power, EXACT.multiply(quantity, price))
    return "sell_to_open"


def _check_power(power: Decimal, cost: Decimal) -> None:
    if cost > power:
        raise denied("insufficient buying power", buying_power=plain(power), cost_basis=plain(cost))
