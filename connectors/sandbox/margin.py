"""Equity, margin and buying power, as of a Regulation T account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from connectors.sandbox.book import Book
from engine.domain.market import Symbol, is_crypto
from engine.domain.order import Side
from engine.domain.portfolio import CENT, EXACT, ZERO

_HALF = Decimal("0.5")
_MAINTENANCE = Decimal("0.3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of the account in USD.

    long, short: market values, `short` negative.
    initial_margin, maintenance_margin: required.
    buying_power: for shares, less open purchases.
    cash_power: for crypto, which cannot be bought on margin, less open purchases.
    """

    cash: Decimal
    long: Decimal
    short: Decimal
    initial_margin: Decimal
    maintenance_margin: Decimal
    buying_power: Decimal
    cash_power: Decimal

    @property
    def equity(self) -> Decimal:
        """Cash and all positions."""
        return self.cash + self.long + self.short


def figures(book: Book, prices: Mapping[Symbol, Decimal]) -> Figures:
    """The account at given prices; every market value is rounded to a cent by itself, as positions are shown."""
    long = short = initial = maintenance = ZERO
    for symbol, position in book.portfolio.positions.items():
        value = market_value(position.quantity, prices[symbol])
        long, short = (long + value, short) if value > 0 else (long, short + value)
        initial += abs(value) * (1 if is_crypto(symbol) else _HALF)
        maintenance += abs(value) * (1 if is_crypto(symbol) else _MAINTENANCE)
    cash = book.portfolio.cash
    reserved = ZERO
    for order in book.open_orders():
        if order.side is Side.BUY:
            price = order.limit_price or prices[order.symbol]
            reserved += (
                EXACT.multiply(order.remaining, price) if order.notional is None else order.notional - order.cost
            )
    free = cash + long + short - initial
    return Figures(
        cash=cash,
        long=long,
        short=short,
        initial_margin=initial.quantize(CENT),
        maintenance_margin=maintenance.quantize(CENT),
        buying_power=max(ZERO, 2 * free - reserved).quantize(CENT),
        cash_power=max(ZERO, free - reserved).quantize(CENT),
    )


def market_value(quantity: Decimal, price: Decimal) -> Decimal:
    """A position's value, rounded to a cent."""
    return EXACT.multiply(quantity, price).quantize(CENT, context=EXACT)
