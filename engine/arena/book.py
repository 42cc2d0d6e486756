"""The order book of one stock: price-time priority, partial fills, cancellation; and the price of a call auction.

Double-entry accounts of cash and shares: whatever one account gains another one loses.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from engine.arena.values import Order
from engine.domain.order import Side
from engine.errors import InvariantBroken


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


WORLD = "(world)"
"""The account of all that is not an agent: dividends come from it and fees go to it. It may be negative."""
ZERO = Decimal(0)
CENT = Decimal("0.01")


class Ledger:
    """Cash and shares of every account, and what of them open orders reserve.

    No agent's account can become negative or less than its reservation: what would do so raises InvariantBroken, since
    every order is checked before.
    """

    def __init__(self) -> None:
        self._cash: defaultdict[str, Decimal] = defaultdict(Decimal)
        self._shares: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._reserved_cash: defaultdict[str, Decimal] = defaultdict(Decimal)
        self._reserved_shares: defaultdict[tuple[str, str], int] = defaultdict(int)

    def cash(self, account: str) -> Decimal:
        """Cash of an account, reserved cash included."""
        return self._cash[account]

    def shares(self, account: str, stock: str) -> int:
        """Shares of an account, reserved ones included."""
        return self._shares[account, stock]

    def free_cash(self, account: str) -> Decimal:
        """Cash that no open order reserves."""
        return self._cash[account] - self._reserved_cash[account]

    def free_shares(self, account: str, stock: str) -> int:
        """Shares that no open order reserves."""
        return self._shares[account, stock] - self._reserved_shares[account, stock]

    def pay(self, payer: str, payee: str, amount: Decimal) -> None:
        """Move cash from one account to another; `amount` is not negative."""
        self._cash[payer] -= amount
        self._cash[payee] += amount
        self._check(amount >= 0 and self._covers_cash(payer), f"{payer} cannot pay {amount}")

    def deliver(self, giver: str, receiver: str, stock: str, quantity: int) -> None:
        """Move shares from one account to another; `quantity` is not negative."""
        self._shares[giver, stock] -= quantity
        self._shares[receiver, stock] += quantity
        covered = giver == WORLD or self.free_shares(giver, stock) >= 0
        self._check(quantity >= 0 and covered, f"{giver} cannot deliver {quantity} {stock}")

    def reserve_cash(self, account: str, amount: Decimal) -> None:
        """Reserve cash for an open order, or release it where `amount` is negative."""
        self._reserved_cash[account] += amount
        self._check(self._covers_cash(account), f"{account} cannot reserve {amount}")

    def reserve_shares(self, account: str, stock: str, quantity: int) -> None:
        """Reserve shares for an open order, or release them where `quantity` is negative."""
        self._reserved_shares[account, stock] += quantity
        self._check(self.free_shares(account, stock) >= 0, f"{account} cannot reserve {quantity} {stock}")

    def balance(self) -> tuple[Decimal, dict[str, int]]:
        """The sums over all accounts, of cash and of shares by stock: all zero, whatever happened."""
        shares: dict[str, int] = defaultdict(int)
        for (_, stock), quantity in self._shares.items():
            shares[stock] += quantity
        return sum(self._cash.values(), ZERO), dict(shares)

    def _covers_cash(self, account: str) -> bool:
        return account == WORLD or (self._reserved_cash[account] >= 0 and self.free_cash(account) >= 0)

    @staticmethod
    def _check(sound: bool, fault: str) -> None:
        if not sound:
            raise InvariantBroken(f"the arena's accounts: {fault}")


def cents(amount: Decimal) -> Decimal:
    """An amount cut to whole cents, toward zero."""
    return amount.quantize(CENT, ROUND_DOWN)
