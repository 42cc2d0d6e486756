"""The order book of one stock: price-time priority, partial fills, cancellation; and the price of a call auction."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from engine.arena.values import Order
from engine.domain.order import Side


@dataclass(slots=True)
class Resting:
    """An order in the book.

    limit: its price; never None.
    remaining: shares that are still wanted.
    """

    order: Order
    limit: Decimal
    remaining: int

    @property
    def priority(self) -> tuple[Decimal, int]:
        """Smaller is served first: the better price, then the earlier order."""
        return (-self.limit if self.order.side is Side.BUY else self.limit, self.order.id)


class Book:
    """Open limit orders of a stock. It matches nothing itself: the market takes from it what may trade."""

    def __init__(self) -> None:
        self._sides: dict[Side, list[Resting]] = {Side.BUY: [], Side.SELL: []}

    def add(self, order: Order, limit: Decimal, quantity: int) -> Resting:
        """Let the rest of an order wait in the book."""
        resting = Resting(order, limit, quantity)
        insort(self._sides[order.side], resting, key=lambda one: one.priority)
        return resting

    def best(self, side: Side) -> Resting | None:
        """The order that is served first on a side."""
        orders = self._sides[side]
        return orders[0] if orders else None

    def counterpart(self, side: Side, limit: Decimal | None) -> Resting | None:
        """The best order of the other side that an order of `side` may trade with."""
        best = self.best(Side.SELL if side is Side.BUY else Side.BUY)
        if best is None or limit is None:
            return best
        crosses = best.limit <= limit if side is Side.BUY else best.limit >= limit
        return best if crosses else None

    def reduce(self, resting: Resting, quantity: int) -> None:
        """Take shares from an order in the book; it leaves when nothing of it remains."""
        resting.remaining -= quantity
        if resting.remaining == 0:
            self._sides[resting.order.side].remove(resting)

    def orders(self, side: Side) -> Sequence[Resting]:
        """Open orders of a side, the best first."""
        return tuple(self._sides[side])

    def all_orders(self) -> Sequence[Resting]:
        """Open orders of both sides, bids first."""
        return (*self._sides[Side.BUY], *self._sides[Side.SELL])


def clearing_price(bids: Iterable[Resting], asks: Iterable[Resting], reference: Decimal) -> Decimal | None:
    """The one price of a call auction: greatest volume, then least imbalance, then nearest to the reference price, then
    the lower one. None where no bid reaches an ask."""
    buys, sells = list(bids), list(asks)
    best: tuple[int, int, Decimal, Decimal] | None = None
    for price in {one.limit for one in (*buys, *sells)}:
        demand = sum(one.remaining for one in buys if one.limit >= price)
        supply = sum(one.remaining for one in sells if one.limit <= price)
        rank = (-min(demand, supply), abs(demand - supply), abs(price - reference), price)
        if min(demand, supply) > 0 and (best is None or rank < best):
            best = rank
    return None if best is None else best[3]
