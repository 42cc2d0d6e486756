"""Bars of all timeframes from daily ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import groupby

from connectors.sandbox.adjustment import scales
from connectors.sandbox.intraday import Candle, merged
from connectors.sandbox.market import SandboxMarket
from connectors.sandbox.protocol import NEW_YORK, invalid
from engine.domain.market import NANO, Symbol

_FRAME = re.compile(r"(\d{1,2})(Min|T|Hour|H|Day|D|Week|W|Month|M)")
_MOST = {"m": 59, "H": 23, "D": 1, "W": 1, "M": 12}


@dataclass(frozen=True, slots=True)
class Timeframe:
    """Length of bars. `unit` is m, H, D, W or M."""

    count: int
    unit: str

    @classmethod
    def of(cls, text: str) -> Timeframe:
        """A timeframe in Alpaca's notation: 1Min to 59Min, 1Hour to 23Hour, 1Day, 1Week, 1 to 12Month. Raises
        ApiError."""
        match = _FRAME.fullmatch(text)
        if match is None:
            raise invalid(f"invalid timeframe: {text[:20]}")
        count, word = int(match[1]), match[2]
        unit = "m" if word in ("Min", "T") else word[0]
        if not 1 <= count <= _MOST[unit]:
            raise invalid(f"invalid timeframe: {text[:20]}")
        return cls(count, unit)

    @property
    def length(self) -> timedelta | None:
        """Length of a bar within a session; None for a day and more."""
        if self.unit not in "mH":
            return None
        return timedelta(minutes=self.count) if self.unit == "m" else timedelta(hours=self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireBar:
    """A bar ready to be sent, in floats.

    at: its time stamp, UTC.
    volume: shares.
    """

    at: datetime
    open: float
    high: float
    low: float
    close: float
    volume: float

    def json(self, crypto: bool) -> dict[str, object]:
        """The bar on the wire; crypto has fractional volume."""
        middle = round((self.open + self.high + self.low + self.close) / 4, 6)
        volume = self.volume if crypto else int(self.volume)
        return {
            "t": self.at,
            "o": self.open,
            "h": self.high,
            "l": self.low,
            "c": self.close,
            "v": volume,
            "n": int(self.volume) // 100,
            "vw": middle,
        }


def bars(
    market: SandboxMarket,
    symbol: Symbol,
    frame: Timeframe,
    *,
    start: datetime,
    end: datetime,
    moment: datetime,
    adjustment: str = "raw",
) -> Iterator[WireBar]:
    """Bars stamped from `start` to `end`, as known at `moment`, in order."""
    rows = market.rows(symbol, moment)
    history = market.history(symbol)
    scale = scales(history, rows, market.data.actions.get(symbol), adjustment)
    crypto = market.listing(symbol).crypto
    if frame.length is not None:
        for candle in market.intraday_candles(symbol, start, end, frame.length, moment):
            row = history.rows_through(candle.start.date()) - 1
            yield _sent(candle, candle.start, float(scale[row].price), float(scale[row].volume))
        return
    whole = (
        (_stamped(market, symbol, row, crypto), market.daily(symbol, row, moment), scale[row]) for row in range(rows)
    )
    days = ((at, candle, one) for at, candle, one in whole if _begin(at, frame, crypto) <= end)
    for at, group in groupby(days, key=lambda day: _begin(day[0], frame, crypto)):
        if at < start:
            continue
        scaled = [_scaled(candle, float(one.price), float(one.volume)) for _, candle, one in group]
        yield _sent(merged(scaled), at, 1.0, 1.0)


def _stamped(market: SandboxMarket, symbol: Symbol, row: int, crypto: bool) -> datetime:
    """Beginning of a bar's day: midnight in New York, for crypto in UTC."""
    return datetime.combine(market.history(symbol).session(row), time(0), UTC if crypto else NEW_YORK).astimezone(UTC)


def _begin(at: datetime, frame: Timeframe, crypto: bool) -> datetime:
    """Beginning of the period that a day belongs to."""
    if frame.unit == "D":
        return at
    zone = UTC if crypto else NEW_YORK
    day = at.astimezone(zone).date()
    if frame.unit == "W":
        day -= timedelta(days=day.weekday())
    else:
        day = day.replace(month=(day.month - 1) // frame.count * frame.count + 1, day=1)
    return datetime.combine(day, time(0), zone).astimezone(UTC)


def _scaled(candle: Candle, price: float, volume: float) -> Candle:
    if price == 1.0 and volume == 1.0:
        return candle
    first, high, low, last = (round(one * price) for one in (candle.open, candle.high, candle.low, candle.close))
    return Candle(start=candle.start, open=first, high=high, low=low, close=last, volume=candle.volume * volume)


def _sent(candle: Candle, at: datetime, price: float, volume: float) -> WireBar:
    def scaled(nano: int) -> float:
        return nano / NANO if price == 1.0 else round(nano * price / NANO, 6)

    first, high, low, last = map(scaled, (candle.open, candle.high, candle.low, candle.close))
    return WireBar(at=at, open=first, high=high, low=low, close=last, volume=candle.volume * volume)
