"""Texts that tell a price before it was made: an amount to the cent that is a close of the sessions after its stamp.

No cut shows such a text, since its stamp is wrong. One amount may be chance, so it is told and condemns nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

from engine.domain.market import Filing, NewsItem, Symbol, from_nano
from engine.market.as_of import Market

AHEAD, BEHIND = 60, 250
"""Sessions after a text whose closes it cannot know, and before it whose closes it may well tell."""

_AMOUNT = re.compile(r"(?<![\d.,])\d[\d,]*\.\d\d(?!\d|\s?%|\.\d)")


def foretold(market: Market, first: date, last: date) -> Iterator[str]:
    """The texts of a window that tell a close of the sessions after them, each in words."""
    for symbol in market.histories:
        items: list[NewsItem | Filing] = [*market.news.get(symbol, ()), *market.filings.get(symbol, ())]
        for item in items:
            if first <= item.available_at.date() <= last:
                yield from _told(market, symbol, item)


def _told(market: Market, symbol: Symbol, item: NewsItem | Filing) -> Iterator[str]:
    headline = item.headline or "" if isinstance(item, NewsItem) else ""
    amounts = {found.replace(",", "") for found in _AMOUNT.findall(f"{headline} {item.summary}")}
    history = market.histories[symbol]
    known = history.rows_through(market.calendars[symbol].last_closed(item.available_at))
    unknown = amounts.difference(_cents(history.close[max(0, known - BEHIND) : known]))
    for row, close in enumerate(_cents(history.close[known : known + AHEAD]), known):
        if close in unknown:
            source = f"{'news' if isinstance(item, NewsItem) else 'filing'} of {symbol}, {item.available_at:%Y-%m-%d}"
            yield f"{source}: tells {close}, the close of {history.session(row)}"
            return


def _cents(closes: Sequence[int]) -> list[str]:
    return [f"{from_nano(close):.2f}" for close in closes]
