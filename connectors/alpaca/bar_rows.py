"""Bars as Alpaca's data service writes them: days, hours and minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from connectors.alpaca.json_fields import exact, utc
from engine.domain.live import MinuteBar
from engine.domain.market import Bar

Row = Mapping[str, Any]


def bar_rows(page: dict[str, Any]) -> dict[str, list[tuple[datetime, Row]]]:
    """Bars with the time (UTC) at which each began, by Alpaca's symbol. Raises ValueError, KeyError, TypeError,
    AttributeError."""
    found = {name: [(utc(row["t"]), row) for row in rows] for name, rows in (page["bars"] or {}).items()}
    for rows in found.values():
        for _, row in rows:
            daily_bar(date.min, row)
    return found


def daily_bar(day: date, row: Row) -> Bar:
    """The bar of a day; a price that is null becomes zero, which no price is. Raises KeyError, TypeError, ValueError
    for another shape."""
    opened, high, low, close = (exact(0 if row[key] is None else row[key]) for key in "ohlc")
    volume = None if row["v"] is None else exact(row["v"])
    return Bar(session=day, open=opened, high=high, low=low, close=close, adj_close=None, volume=volume)


def minute_bar(begins: datetime, row: Row) -> MinuteBar:
    """The bar of a minute (UTC). Raises as `daily_bar` does."""
    opened, high, low, close, volume = (exact(row[key]) for key in "ohlcv")
    return MinuteBar(begins=begins, open=opened, high=high, low=low, close=close, volume=volume)


def joined_bar(day: date, hours: Sequence[Bar]) -> Bar:
    """The bar of a day from those of its hours."""
    volume = sum((hour.volume or Decimal(0) for hour in hours), Decimal(0))
    high, low = max(hour.high for hour in hours), min(hour.low for hour in hours)
    return Bar(
        session=day, open=hours[0].open, high=high, low=low, close=hours[-1].close, adj_close=None, volume=volume
    )
