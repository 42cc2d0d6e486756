"""Daily bars as traded: shares by the exchange's day, crypto by the UTC day, whatever day the service uses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import groupby
from typing import Any

from connectors.alpaca.data.names import by_wire
from connectors.alpaca.data.pages import AlpacaPages
from connectors.alpaca.market_facts import NEW_YORK
from connectors.alpaca.symbols import to_wire
from engine.domain.market import Bar, Symbol

Bars = tuple[Symbol, Sequence[Bar]]
"""A symbol with some of its bars, in order; later ones come with a later page."""

_PAGE = "10000"
_MIDNIGHT = time(0)


async def stock_bars(
    pages: AlpacaPages, symbols: Sequence[Symbol], first: date, last: date, feed: str
) -> AsyncIterator[Bars]:
    """Raw bars of shares within a period, both sessions included, symbol after symbol; not adjusted for splits or
    dividends."""
    # Both ends are the stamps of daily bars themselves, midnight in New York: a later end would ask some accounts
    # for more than their subscription gives (the last quarter of an hour).
    params = {
        "symbols": ",".join(map(to_wire, symbols)),
        "timeframe": "1Day",
        "start": _stamp(datetime.combine(first, _MIDNIGHT, NEW_YORK)),
        "end": _stamp(datetime.combine(last, _MIDNIGHT, NEW_YORK)),
        "adjustment": "raw",
        "feed": feed,
        "limit": _PAGE,
        "sort": "asc",
    }
    names = by_wire(symbols)
    async for page in pages.follow("/v2/stocks/bars", params, _rows):
        for name, rows in page.items():
            if name in names:
                yield names[name], [_bar(at.astimezone(NEW_YORK).date(), row) for at, row in rows]


async def crypto_bars(pages: AlpacaPages, symbols: Sequence[Symbol], first: date, last: date) -> AsyncIterator[Bars]:
    """Bars of crypto within a period, both UTC days included, symbol after symbol.

    Until 2025 the service's own days began at midnight in Chicago; where they still do, bars are built from hours.
    """
    by_the_hour: list[Symbol] = []
    async for symbol, rows in _coins(pages, symbols, first, last, "1Day"):
        if symbol in by_the_hour or any(at.time() != _MIDNIGHT for at, _ in rows):
            by_the_hour.append(symbol)
        else:
            yield symbol, [_bar(at.date(), row) for at, row in rows]
    for symbol in dict.fromkeys(by_the_hour):
        hours = [one async for _, rows in _coins(pages, [symbol], first, last, "1Hour") for one in rows]
        days = groupby(hours, key=lambda one: one[0].date())
        yield symbol, [_whole(day, [_bar(day, row) for _, row in group]) for day, group in days]


async def _coins(
    pages: AlpacaPages, symbols: Sequence[Symbol], first: date, last: date, timeframe: str
) -> AsyncIterator[tuple[Symbol, list[tuple[datetime, Mapping[str, Any]]]]]:
    params = {
        "symbols": ",".join(map(to_wire, symbols)),
        "timeframe": timeframe,
        "start": _stamp(datetime.combine(first, _MIDNIGHT, UTC)),
        "end": _stamp(datetime.combine(last, _MIDNIGHT, UTC) + timedelta(days=1, seconds=-1)),
        "limit": _PAGE,
        "sort": "asc",
    }
    names = by_wire(symbols)
    async for page in pages.follow("/v1beta3/crypto/us/bars", params, _rows):
        for name, rows in page.items():
            if name in names:
                yield names[name], rows


def _rows(page: dict[str, Any]) -> dict[str, list[tuple[datetime, Mapping[str, Any]]]]:
    """Bars with the time (UTC) at which each began, by Alpaca's symbol. Raises ValueError, KeyError, TypeError,
    AttributeError."""
    found = {
        name: [(datetime.fromisoformat(row["t"]).astimezone(UTC), row) for row in rows]
        for name, rows in (page["bars"] or {}).items()
    }
    for rows in found.values():
        for _, row in rows:
            _bar(date.min, row)
    return found


def _bar(day: date, row: Mapping[str, Any]) -> Bar:
    opened, high, low, close, volume = (_number(row[key]) for key in "ohlcv")
    return Bar(session=day, open=opened, high=high, low=low, close=close, adj_close=None, volume=volume)


def _whole(day: date, hours: Sequence[Bar]) -> Bar:
    volume = sum((hour.volume or Decimal(0) for hour in hours), Decimal(0))
    high, low = max(hour.high for hour in hours), min(hour.low for hour in hours)
    return Bar(
        session=day, open=hours[0].open, high=high, low=low, close=hours[-1].close, adj_close=None, volume=volume
    )


def _number(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError(f"{str(value)[:40]!r} is no number")
    return Decimal(value)


def _stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
