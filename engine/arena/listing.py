"""A stock as the market lists it: its shares, its book, its prices."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from engine.arena.book import Book
from engine.arena.rules import StockRules


@dataclass(slots=True, kw_only=True)
class Listing:
    """A stock in the market.

    shares: in circulation.
    reference: the price that wealth is measured at; moved by trades.
    dividends: what may be paid a share, changed by shocks.
    past: closes from before the arena, made up by the seed; the last of them is the first price.
    closes: the first price, and reference prices at the end of each day.
    today: prices and quantities of the day's trades, until the next day opens.
    """

    rules: StockRules
    shares: int
    reference: Decimal
    dividends: tuple[Decimal, ...]
    book: Book = field(default_factory=Book)
    past: tuple[Decimal, ...] = ()
    closes: list[Decimal] = field(default_factory=list)
    today: list[tuple[Decimal, int]] = field(default_factory=list)
