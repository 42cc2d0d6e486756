"""Texts that quote a later close or name a later day: an amount with decimals that is a close of the sessions after its
stamp, as a file writes it or to the cent, and a date after it.

No cut shows such a text, since its stamp is wrong. An amount may be chance and a day an appointment, so they are listed
and condemn nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date

from engine.domain.market import Filing, NewsItem, Symbol, from_nano
from engine.market.as_of import Market

AHEAD, BEHIND = 60, 250
"""Sessions after a text whose closes it cannot know, and before it whose closes it may well tell."""

_AMOUNT = re.compile(r"(?<![\d.,])\d[\d,]*\.\d{2,9}(?!\d|\s?%|\.\d)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!\d)(?P<year>(?:19|20)\d\d)[-/](?P<number>\d\d)[-/](?P<day>\d\d)(?!\d)",
        rf"\b{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>(?:19|20)\d\d)\b",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)? {_MONTH},? (?P<year>(?:19|20)\d\d)\b",
    )
)
"""Dates that can be read in one way alone: year first, or with the month's name."""


def foretold(market: Market, first: date, last: date) -> Iterator[str]:
    """The texts of a window that quote a close of the sessions after them, or name a later day up to its end, each in
    words."""
    for symbol in market.histories:
        items: list[NewsItem | Filing] = [*market.news.get(symbol, ()), *market.filings.get(symbol, ())]
        for item in items:
            if first <= item.available_at.date() <= last:
                source = "news" if isinstance(item, NewsItem) else "filing"
                told = f"{source} of {symbol}, {item.available_at:%Y-%m-%d}"
                headline = item.headline or "" if isinstance(item, NewsItem) else ""
                text = f"{headline} {item.summary}"
                yield from (f"{told}: {what}" for what in _told(market, symbol, item, text))
                later = sorted({day for day in _days(text) if item.available_at.date() < day <= last})
                yield from (f"{told}: names {day}" for day in later[:1])


def _told(market: Market, symbol: Symbol, item: NewsItem | Filing, text: str) -> Iterator[str]:
    """The first later close that a text quotes."""
    amounts = {found.replace(",", "") for found in _AMOUNT.findall(text)}
    history = market.histories[symbol]
    known = history.rows_through(market.calendars[symbol].last_closed(item.available_at))
    decimals = {len(amount.partition(".")[2]) for amount in amounts}
    unknown = amounts.difference(
        *(_written(close, decimals) for close in history.close[max(0, known - BEHIND) : known])
    )
    for row, close in enumerate(history.close[known : known + AHEAD], known):
        for amount in sorted(unknown.intersection(_written(close, decimals)))[:1]:
            yield f"tells {amount}, the close of {history.session(row)}"
            return


def _written(close: int, decimals: Iterable[int]) -> set[str]:
    """A close as texts write it, with these numbers of decimals."""
    return {f"{from_nano(close):.{count}f}" for count in decimals}


def _days(text: str) -> Iterator[date]:
    """The days that a text names."""
    for pattern in _DATES:
        for found in pattern.finditer(text):
            part = found.groupdict()
            month = int(part["number"]) if "number" in part else _MONTHS.index(part["month"].lower()) + 1
            with suppress(ValueError):  # the 31st of February
                yield date(int(part["year"]), month, int(part["day"]))
