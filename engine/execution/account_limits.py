"""Limits that an account sets to one order: cash that has to stay, shares that are free to be sold; and the size that
an operator gives to an order under the same limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from decimal import ROUND_DOWN, Decimal
from functools import partial

from engine.domain.decimal_text import plain
from engine.domain.market import Symbol
from engine.domain.order import Order, OrderSize, Side
from engine.domain.portfolio import CENT, SHARE_STEP, ZERO, Portfolio
from engine.errors import UsageError
from engine.execution.limits import ONE, OVERNIGHT, SMALLEST_ORDER, cost, in_steps, too_small
from engine.execution.venue import BuyingPower, OrderTerms
from engine.messages.commands import Edit, PlaceOrder

Price = Callable[[Symbol], Decimal]
OWN = "an order of your own"
"""The reason of an operator's order."""
LARGEST_SIZE = Decimal(10) ** 12
"""More shares, or money, than any account has: what is larger is a slip, and could not be counted exactly."""


def cash_floor(portfolio: Portfolio, price: Callable[[Symbol], Decimal], fraction: Decimal) -> Decimal:
    """The cash, in the quote currency, that buys must leave: a fraction of the portfolio's value, and what short
    positions brought, which has to be there to buy them back."""
    prices = {symbol: price(symbol) for symbol in portfolio.positions}
    return portfolio.value(prices) * fraction + portfolio.short_value(prices)


def shortfall(order: Order, power: BuyingPower, price: Decimal, *, floor: Decimal, allow_short: bool) -> str:
    """The cash or shares that an account lacks for an order at a price, beside what is open there, in a sentence; empty
    where nothing is lacking. A buy must leave `floor` in cash, unless it takes back no more than is short: that frees
    the cash that it takes."""
    if order.side is Side.BUY and shares_of(order, price) <= -power.held.get(order.symbol, ZERO):
        return ""
    if order.side is Side.BUY:
        left = power.cash - power.reserved - cost(order, price)
        return "" if left >= floor else f"it would leave {left:,.2f} in cash, and {floor:,.2f} has to stay"
    free = power.held.get(order.symbol, ZERO) - power.queued.get(order.symbol, ZERO)
    wanted = order.quantity or ZERO
    if allow_short or wanted <= free:
        return ""
    return f"it would sell {wanted.normalize():f} shares, and {max(free, ZERO).normalize():f} are free to be sold"


def refused_by_venue(order: Order, terms: OrderTerms | None, power: BuyingPower, price: Decimal) -> str:
    """The limit of the venue itself that an order at a price would not pass, in a sentence; empty for none. A buy that
    takes back no more than is short needs no buying power."""
    quantity, held = shares_of(order, price), power.held.get(order.symbol, ZERO)
    sells, most = order.side is Side.SELL, power.limit(order.symbol)
    short = max(quantity - max(held - power.queued.get(order.symbol, ZERO), ZERO), ZERO) if sells else ZERO
    covers = not sells and quantity <= -held
    takes = short * price if sells or covers else cost(order, price)
    if most is not None and takes > max(most, ZERO):
        return f"the account's buying power is {most:,.2f}, and it may take {takes:,.2f}"
    if terms is None:
        return ""
    if order.quantity is not None and in_steps(order.quantity, terms.step) != order.quantity:
        return f"{order.symbol} is traded in steps of {plain(terms.step)}, and not {plain(order.quantity)}"
    small = too_small(terms, quantity, quantity * price, terms.least_amount)
    return small or (_not_short(quantity, held, terms) if short else "")


def _not_short(quantity: Decimal, held: Decimal, terms: OrderTerms) -> str:
    if terms.no_short or held > 0:
        return terms.no_short or "it would sell more than is held: one order cannot close a position and go short"
    whole = quantity == quantity.to_integral_value()
    return "" if whole else f"only whole shares are sold short, not {plain(quantity)}"


def short_excess(order: Order, power: BuyingPower, portfolio: Portfolio, price: Price) -> str:
    """The value by which short positions would exceed the equity once a sale and every open one has filled, in a
    sentence; empty where they would not."""
    own = shares_of(order, price(order.symbol))
    queued = {**power.queued, order.symbol: power.queued.get(order.symbol, ZERO) + own}
    short = {symbol: queued.get(symbol, ZERO) - power.held.get(symbol, ZERO) for symbol in {*queued, *power.held}}
    worth = sum((shares * price(symbol) for symbol, shares in short.items() if shares > 0), ZERO)
    value = portfolio.value({symbol: price(symbol) for symbol in portfolio.positions})
    if worth <= value:
        return ""
    return f"short positions would be worth {worth:.2f}, and may be worth no more than the equity, {value:.2f}"


def shares_of(order: Order, price: Decimal) -> Decimal:
    """The shares of an order; of one for an amount by the price."""
    return order.notional / price if order.notional is not None else order.quantity or ZERO


def buying_power(portfolio: Portfolio, orders: Iterable[Order], price: Price) -> BuyingPower:
    """The buying power of a portfolio beside open orders, at prices that the orders rest on."""
    reserved, queued = ZERO, dict[Symbol, Decimal]()
    for order in orders:
        if order.side is Side.BUY:
            reserved += cost(order, price(order.symbol))
        else:
            queued[order.symbol] = queued.get(order.symbol, ZERO) + (order.quantity or ZERO)
    held = {symbol: position.quantity for symbol, position in portfolio.positions.items()}
    return BuyingPower(portfolio.cash, reserved, held, queued)


def own_order(
    identity: str,
    wanted: PlaceOrder,
    price: Decimal,
    session: date,
    *,
    held: Decimal = ZERO,
    whole: bool = False,
    step: Decimal = SHARE_STEP,
) -> Order:
    """The operator's order of a decision session at a price, with so many shares held (negative where short); `whole`
    where no part of a share is traded, else in multiples of `step`. A buy is for an amount, so that it never costs more
    than is reserved; a sale, and what buys back a short position, is for shares. Raises UsageError for a size that
    cannot be traded."""
    size = wanted.size.number
    _check_size(size)
    order = partial(Order, id=identity, symbol=wanted.symbol, side=wanted.side, session=session, reason=OWN)
    if wanted.side is Side.BUY and held >= 0 and not whole:
        notional = (size if wanted.size.money else size * price).quantize(CENT, ROUND_DOWN)
        if notional < SMALLEST_ORDER:
            raise UsageError(f"{notional} is less than the smallest order, {SMALLEST_ORDER}")
        return order(notional=notional)
    step, most = ONE if whole else step, price * OVERNIGHT if wanted.side is Side.BUY else price
    quantity = in_steps(size / most if wanted.size.money else size, step)
    if not quantity or (not wanted.size.money and quantity != size):
        what = "whole shares" if whole else f"steps of {plain(step)} shares"
        raise UsageError(f"{wanted.symbol}: {plain(size)} does not come to {what}, in which it is traded")
    return order(quantity=quantity)


def own_refusal(order: Order, power: BuyingPower, price: Decimal, *, floor: Decimal) -> str:
    """The limit that an operator's order would cross at a price, beside what is open, in a sentence; empty for none. It
    never sells short, and buys back no more than is short."""
    short = -power.held.get(order.symbol, ZERO)
    if order.side is Side.BUY and short > 0:
        wanted = order.quantity or ZERO
        return "" if wanted <= short else f"it would buy {plain(wanted)} shares, and {plain(short)} are short"
    return shortfall(order, power, price, floor=floor, allow_short=False)


def edit_of(order: Order, size: OrderSize, price: Decimal) -> Edit:
    """The edit that gives an order another size, in the unit that the order has: shares become an amount, and an amount
    shares, at `price`. Raises UsageError for a size that cannot be traded."""
    wanted = size.number
    _check_size(wanted, ": a veto keeps it from being sent")
    value = wanted if size.money else wanted * price
    if value < SMALLEST_ORDER:
        raise UsageError(f"{value:.2f} is less than the smallest order, {SMALLEST_ORDER}")
    if order.notional is not None:
        return Edit(order.id, notional=value.quantize(CENT, ROUND_DOWN))
    assert order.quantity is not None  # it has one of the two
    whole = order.quantity == order.quantity.to_integral_value()
    quantity = (wanted / price if size.money else wanted).quantize(ONE if whole else SHARE_STEP, ROUND_DOWN)
    if not quantity or (not size.money and quantity != wanted):
        step = "whole shares" if whole else f"steps of {SHARE_STEP} shares"
        raise UsageError(f"{order.symbol}: {plain(wanted)} does not come to {step}, in which this order is sized")
    return Edit(order.id, quantity=quantity)


def _check_size(size: Decimal, otherwise: str = "") -> None:
    if not size.is_finite() or size <= 0:
        raise UsageError(f"an order needs a size above zero, not {size}{otherwise}")
    if size > LARGEST_SIZE:
        raise UsageError(f"{size:.3g} is more than any account can trade: give a size that cash or shares allow")
