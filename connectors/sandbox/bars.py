"""Bars of all timeframes from daily ones, adjusted as requested: raw, for splits, for dividends, or for both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from itertools import groupby
from math import prod
from typing import Any

from connectors.sandbox.market import Candle, SandboxMarket
from connectors.sandbox.protocol import NEW_YORK, invalid
from engine.domain.market import NANO, UNKNOWN, ActionKind, CorporateAction, PriceHistory, Symbol, without_adjusted
from engine.simulation.price_basis import adjusted_by_actions

_FRAME = re.compile(r"(\d{1,2})(Min|T|Hour|H|Day|D|Week|W|Month|M)")
_MOST = {"m": 59, "H": 23, "D": 1, "W": 1, "M": 12}
ADJUSTMENTS = ("raw", "split", "dividend", "all")


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
        if match is not None:
            count, name = int(match[1]), match[2]
            unit = "m" if name in ("Min", "T") else name[0]
            if 1 <= count <= _MOST[unit]:
                return cls(count, unit)
        raise invalid(f"invalid timeframe: {text[:20]}")

    @property
    def length(self) -> timedelta | None:
        """Length of a bar within a session; None for a day and more."""
        if self.unit not in "mH":
            return None
        return timedelta(minutes=self.count) if self.unit == "m" else timedelta(hours=self.count)


def bars(
    market: SandboxMarket,
    symbol: Symbol,
    frame: Timeframe,
    *,
    start: datetime,
    end: datetime,
    moment: datetime,
    adjustment: str = "raw",
) -> Iterator[dict[str, Any]]:
    """Bars on the wire, stamped from `start` to `end`, as known at `moment`, in order."""
    rows = market.rows(symbol, moment)
    history = market.history(symbol)
    scale = scales(history, rows, market.data.actions.get(symbol), adjustment)
    crypto = market.listing(symbol).crypto
    if frame.length is not None:
        for candle in market.intraday_candles(symbol, start, end, frame.length, moment):
            yield _wire_bar(_scaled(candle, scale[history.rows_through(candle.start.date()) - 1]), crypto)
        return
    days = ((_period(history, row, frame, crypto), row) for row in range(rows))
    within = ((at, row) for at, row in days if start <= at <= end)
    for at, group in groupby(within, key=lambda day: day[0]):
        candles = [_scaled(market.daily(symbol, row, moment), scale[row]) for _, row in group]
        yield _wire_bar(_merged(at, candles), crypto)


def _period(history: PriceHistory, row: int, frame: Timeframe, crypto: bool) -> datetime:
    """Beginning of the period that a bar's day belongs to: midnight in New York, for crypto in UTC."""
    day = history.session(row)
    if frame.unit == "W":
        day -= timedelta(days=day.weekday())
    elif frame.unit == "M":
        day = day.replace(month=(day.month - 1) // frame.count * frame.count + 1, day=1)
    return datetime.combine(day, time(0), UTC if crypto else NEW_YORK).astimezone(UTC)


def _scaled(candle: Candle, scale: Scale) -> Candle:
    price, volume = scale.price, scale.volume
    if price == 1.0 and volume == 1.0:
        return candle
    first, high, low, last = (round(one * price) for one in (candle.open, candle.high, candle.low, candle.close))
    return replace(candle, open=first, high=high, low=low, close=last, volume=candle.volume * volume)


def _merged(start: datetime, candles: list[Candle]) -> Candle:
    """Neighbouring candles as one."""
    return Candle(
        start=start,
        open=candles[0].open,
        high=max(candle.high for candle in candles),
        low=min(candle.low for candle in candles),
        close=candles[-1].close,
        volume=sum(candle.volume for candle in candles),
    )


def _wire_bar(candle: Candle, crypto: bool) -> dict[str, Any]:
    """A candle on the wire, in floats; crypto has fractional volume."""
    first, high, low, last = (nano / NANO for nano in (candle.open, candle.high, candle.low, candle.close))
    volume = candle.volume
    return {
        "t": candle.start,
        "o": first,
        "h": high,
        "l": low,
        "c": last,
        "v": volume if crypto else int(volume),
        "n": int(volume) // 100,
        "vw": round((first + high + low + last) / 4, 6),
    }


@dataclass(frozen=True, slots=True)
class Scale:
    """Factors of a bar's prices and of its volume."""

    price: float = 1.0
    volume: float = 1.0


_ADJUSTED_FOR = {"split": {ActionKind.SPLIT}, "dividend": {ActionKind.DIVIDEND}, "all": set(ActionKind)}


def scales(history: PriceHistory, rows: int, actions: Iterable[CorporateAction] | None, adjustment: str) -> list[Scale]:
    """The scale of each of the first `rows` bars, so that the last of them is as traded.

    Where corporate actions are unknown, dividends are taken from adj_close, as far back as that is known; prices then
    have the splits already.
    """
    if adjustment == "raw" or not rows or (actions is None and adjustment == "split"):
        return [Scale()] * rows
    last, counted = history.session(rows - 1), [a for a in actions or () if a.kind in _ADJUSTED_FOR[adjustment]]
    if actions is not None:
        history = adjusted_by_actions(without_adjusted(history), counted, last)
    closes, adjusted = history.close[:rows], history.adj_close[:rows]
    if adjusted[-1] == UNKNOWN:
        return [Scale()] * rows
    splits = [action for action in counted if action.kind is ActionKind.SPLIT and action.ex_date <= last]
    ahead = ([float(s.value) for s in splits if s.ex_date > history.session(row)] for row in range(rows))
    ratios = (
        1.0 if to == UNKNOWN else to * closes[-1] / (of * adjusted[-1]) for of, to in zip(closes, adjusted, strict=True)
    )
    return [Scale(ratio, prod(values)) for ratio, values in zip(ratios, ahead, strict=True)]
