"""A double auction of one share each among zero-intelligence traders, on the arena's book.

Source: Gode and Sunder (1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random

from engine.arena.book import Book
from engine.arena.values import Order
from engine.domain.order import Side

HIGHEST = 200
"""The highest price of a random limit."""


def efficiency(values: Sequence[int], costs: Sequence[int], seed: int, *, constrained: bool) -> float:
    """The part of the possible gains that buyers with `values` and sellers with `costs` realise.

    Each step a trader that has not traded yet is drawn and sends a limit: any at all, or, where it is constrained,
    none at which it would lose. After a trade the book is emptied. It ends when nobody is left who can trade.
    """
    random = Random(seed)
    book, worth = Book(), {Side.BUY: dict(enumerate(values)), Side.SELL: dict(enumerate(costs))}
    possible = sum(max(0, v - c) for v, c in zip(sorted(values, reverse=True), sorted(costs), strict=True))
    gained, number = 0, 0
    while _can_trade(worth, constrained):
        number += 1
        side = random.choice((Side.BUY, Side.SELL))
        trader = random.choice(sorted(worth[side]))
        low, high = (1, HIGHEST) if not constrained else _bounds(side, worth[side][trader])
        limit = Decimal(random.randint(low, high))
        order = Order(
            id=number, agent=f"{side} {trader}", stock="X", side=side, quantity=1, limit=limit, day=1, round=1
        )
        other = book.counterpart(side, limit)
        if other is None:
            book.add(order, limit, 1)
            continue
        partner = int(other.order.agent.rpartition(" ")[2])
        buyer, seller = (trader, partner) if side is Side.BUY else (partner, trader)
        gained += worth[Side.BUY].pop(buyer) - worth[Side.SELL].pop(seller)
        book = Book()
    return gained / possible


def _bounds(side: Side, worth: int) -> tuple[int, int]:
    return (1, worth) if side is Side.BUY else (worth, HIGHEST)


def _can_trade(worth: dict[Side, dict[int, int]], constrained: bool) -> bool:
    buyers, sellers = worth[Side.BUY].values(), worth[Side.SELL].values()
    return bool(buyers and sellers) and (not constrained or max(buyers) >= min(sellers))
