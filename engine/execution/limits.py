"""Limits over a whole batch of sized proposals, in a fixed order: the cash floor and what is held.

Every order ends as a value: Approved with the order to send, or Refused with the reason. Cash that a sale will
bring is not counted, since a queued sale may not fill. Source: FinVision §3.4, table 5 [V6].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_DOWN, ROUND_UP, Decimal

from engine.domain.decision import Action, Cut
from engine.domain.market import Symbol
from engine.domain.order import Order, Side, order_id
from engine.domain.portfolio import CENT, SHARE_STEP, ZERO
from engine.execution.sizing import PositionContext, Sized
from engine.settings import Sizing

SMALLEST_ORDER = Decimal(1)
"""Brokers take no order under a dollar."""
SMALLEST_SIZE = Decimal(1)
"""The least percent of the portfolio that is bought. What is left of a position may be less, and can still be sold.
Source: FinVision §3.4 [V5]."""
HUNDRED = Decimal(100)
ONE = Decimal(1)
OVERNIGHT = Decimal("1.05")
"""What a whole share is reckoned to cost at the next open, in closes: an order for whole shares has no amount that
would bound it, and the cash floor has to hold if the price rises overnight."""


@dataclass(frozen=True, slots=True)
class Approved:
    """An order to send. `size` in percent of the portfolio, after all cuts."""

    order: Order
    size: Decimal
    cuts: tuple[Cut, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """No order, and why."""

    cuts: tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """What all orders of one cycle share."""

    desk: str
    session: date
    cycle: int
    sizing: Sizing
    whole_shares: frozenset[Symbol] = frozenset()
    """Symbols of which no part of a share is traded."""


def limit(
    batch: Batch,
    sized: Iterable[tuple[Symbol, Sized, PositionContext]],
    reserved: Decimal = ZERO,
    queued: Mapping[Symbol, Decimal] | None = None,
) -> dict[Symbol, Approved | Refused]:
    """Turns sized proposals into orders, symbol by symbol in the order given.

    `reserved` is cash that open buys may still take, `queued` the shares that open sales may still take. A buy takes
    at most what stands above the floor, and none at all where that is less than SMALLEST_SIZE; a sale at most what is
    held. HOLD and ABSTAIN give no entry.
    """
    outcome: dict[Symbol, Approved | Refused] = {}
    waiting = queued or {}
    for symbol, proposal, standing in sized:
        if proposal.action is Action.BUY:
            verdict = _buy(batch, symbol, proposal, standing, reserved)
            if isinstance(verdict, Approved):
                reserved += cost(verdict.order, standing.price)
            outcome[symbol] = verdict
        elif proposal.action is Action.SELL:
            outcome[symbol] = _sell(batch, symbol, proposal, standing, waiting.get(symbol, ZERO))
    return outcome


def cost(order: Order, price: Decimal) -> Decimal:
    """The cash that an order to buy may take at the open after a close of `price`."""
    if order.notional is not None:
        return order.notional
    return whole_share_cost(order.quantity or ZERO, price)


def whole_share_cost(quantity: Decimal, price: Decimal) -> Decimal:
    """What whole shares are reckoned to cost at the open after a close of `price`."""
    return (quantity * price * OVERNIGHT).quantize(CENT, ROUND_UP)


def _buy(
    batch: Batch, symbol: Symbol, sized: Sized, standing: PositionContext, reserved: Decimal
) -> Approved | Refused:
    wanted = standing.value * sized.size / HUNDRED
    room = standing.cash - reserved - standing.value * batch.sizing.cash_floor
    notional = min(wanted, room).quantize(CENT, ROUND_DOWN)
    smallest = standing.value * min(sized.size, SMALLEST_SIZE) / HUNDRED
    if notional < SMALLEST_ORDER or room < smallest:
        reason = (
            f"{batch.sizing.cash_floor:.0%} of the portfolio stays cash: {max(room, ZERO):.2f} could be spent, "
            "less than the smallest purchase"
        )
        return Refused((Cut("cash floor", sized.size, ZERO, reason),))
    cuts: tuple[Cut, ...] = ()
    allowed = sized.size
    if wanted > room:
        allowed = _percent(room, standing.value)
        reason = f"{batch.sizing.cash_floor:.0%} of the portfolio stays cash: {notional} of {wanted:.2f} can be spent"
        cuts = (Cut("cash floor", sized.size, allowed, reason),)
    if symbol in batch.whole_shares:
        return _buy_whole(batch, symbol, standing, notional, allowed, cuts)
    return Approved(_order(batch, symbol, Side.BUY, notional=notional), allowed, cuts)


def _buy_whole(
    batch: Batch, symbol: Symbol, standing: PositionContext, notional: Decimal, allowed: Decimal, cuts: tuple[Cut, ...]
) -> Approved | Refused:
    quantity = (notional / (standing.price * OVERNIGHT)).quantize(ONE, ROUND_DOWN)
    size = min(allowed, _percent(quantity * standing.price, standing.value))
    reason = f"{symbol} is traded in whole shares only: {quantity} of them"
    if not quantity:
        return Refused((*cuts, Cut("whole shares", allowed, ZERO, reason)))
    whole = cuts if size == allowed else (*cuts, Cut("whole shares", allowed, size, reason))
    return Approved(_order(batch, symbol, Side.BUY, quantity=quantity), size, whole)


def _sell(batch: Batch, symbol: Symbol, sized: Sized, standing: PositionContext, queued: Decimal) -> Approved | Refused:
    wanted = standing.value * sized.size / HUNDRED / standing.price
    free = standing.quantity - queued
    quantity = wanted if batch.sizing.allow_short else min(wanted, free)
    quantity = quantity.quantize(ONE if symbol in batch.whole_shares else SHARE_STEP, ROUND_DOWN)
    if quantity <= 0:
        return Refused((Cut("holding", sized.size, ZERO, "nothing is held that could be sold"),))
    cuts: tuple[Cut, ...] = ()
    allowed = sized.size
    if wanted > quantity and not batch.sizing.allow_short and free < wanted:
        allowed = _percent(quantity * standing.price, standing.value)
        cuts = (
            Cut(
                "holding",
                sized.size,
                allowed,
                f"{free.normalize():f} shares are held, {'the whole' if quantity == free else quantity} of it is sold",
            ),
        )
    return Approved(_order(batch, symbol, Side.SELL, quantity=quantity), allowed, cuts)


def _percent(part: Decimal, whole: Decimal) -> Decimal:
    return (part * HUNDRED / whole).quantize(Decimal("0.0001"), ROUND_DOWN) if whole > 0 else ZERO


def _order(
    batch: Batch, symbol: Symbol, side: Side, quantity: Decimal | None = None, notional: Decimal | None = None
) -> Order:
    identity = order_id(batch.desk, batch.session, batch.cycle, symbol, side)
    return Order(id=identity, symbol=symbol, side=side, session=batch.session, quantity=quantity, notional=notional)
