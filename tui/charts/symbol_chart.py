"""A symbol's chart by day, week or month, and the indicators and comparisons under it; made beside the screen."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from engine.domain.chart import Line, Marker
from engine.domain.market import NANO
from tui.charts.chart_data import DAYS, MINUTES, ChartData, Compared, Series, SymbolChart, decided_as

if TYPE_CHECKING:
    from engine.domain.decision import Decision
    from engine.domain.live import MinuteBar
    from engine.domain.market import PriceHistory, Symbol
    from engine.domain.order import Fill
    from engine.market.as_of import MarketAsOf
    from engine.market.indicators import Floats

K = TypeVar("K")
T = TypeVar("T")

TIMEFRAMES: Mapping[str, tuple[str, int, Callable[[date], tuple[int, ...]]]] = {
    DAYS: ("days", 1, lambda day: (day.toordinal(),)),
    "1W": ("weeks", 5, lambda day: tuple(day.isocalendar()[:2])),
    "1M": ("months", 21, lambda day: (day.year, day.month)),
}
"""Timeframes by the name in the title: unit, sessions in a bar, and the group that a day belongs to."""
MINUTE = timedelta(minutes=1)
BARS = 520
"""Bars of a chart at most."""


def daily_chart(history: PriceHistory) -> ChartData:
    """The chart of a symbol's daily bars, without lines and marks."""
    prices = {name: [price / NANO for price in getattr(history, name)] for name in ("open", "high", "low", "close")}
    return ChartData(
        open=prices["open"],
        high=prices["high"],
        low=prices["low"],
        close=prices["close"],
        volume=history.volume,
        days=[date.fromordinal(day) for day in history.sessions],
        title=f"{history.symbol} 1D",
    )


def symbol_chart(
    market: MarketAsOf,
    symbol: Symbol,
    timeframe: str,
    *,
    last: tuple[date, float] | None,
    fills: Sequence[Fill],
    decisions: Sequence[Decision],
    beside: tuple[Symbol, MarketAsOf],
) -> SymbolChart:
    """Build the chart of a symbol at the moment of `market`, with its trades and decisions; `last` is session and
    price of its quote, `beside` the symbol that it is compared with (empty for none), and its prices. Raises
    MissingData without a bar."""
    _, sessions, group = TIMEFRAMES[timeframe]
    bars = market.bars(symbol, BARS * sessions)
    daily = daily_chart(bars)
    if last is not None and last[0] > daily.days[-1]:
        daily = daily.forming(last[1], last[0])
    rows = _rows(daily.days, group)
    data = replace(_grouped(daily, rows), title=f"{symbol} {timeframe}")
    placed = dict(zip(daily.days, rows, strict=True))
    made = [(placed[one.key.session], one) for one in decisions if one.key.session in placed]
    traded = [(placed[fill.session], fill) for fill in fills if fill.session in placed]
    chart = marked_chart(data, traded, made)
    return replace(chart, panes=_indicators(data), beside=_compared(data, symbol, *beside, group))


def marked_chart(
    data: ChartData, fills: Iterable[tuple[int | None, Fill]], decisions: Iterable[tuple[int | None, Decision]]
) -> SymbolChart:
    """The chart with its averages, and with trades and decisions by the rows of their bars, None for those without one;
    of a bar of several sessions the last one's decisions are marked."""
    traded, decided = grouped(fills), grouped(decisions)
    markers = [Marker(row, fill.side.value, float(fill.price)) for row, some in traded.items() for fill in some]
    known = {}
    for row, some in decided.items():
        last = max(one.key.session for one in some)
        known[row] = decided_as(one for one in some if one.key.session == last)
    drawn = replace(data, lines=price_lines(data), markers=tuple(markers), decided=known)
    return SymbolChart(data=drawn, decided=decided, fills=traded)


def grouped(pairs: Iterable[tuple[K | None, T]]) -> dict[K, list[T]]:
    """The items of each key, without None; of a desk of fifty symbols there are thousands."""
    found: dict[K, list[T]] = {}
    for key, one in pairs:
        if key is not None:
            found.setdefault(key, []).append(one)
    return found


def minute_chart(
    symbol: Symbol,
    bars: Sequence[MinuteBar],
    *,
    fills: Sequence[tuple[datetime, Fill]],
    decisions: Sequence[tuple[datetime, Decision]],
) -> SymbolChart:
    """Build the chart of a symbol's minutes (UTC), with the indicators of days counted in minutes. Trades and decisions
    come with their times (UTC): shown are those of the session, and the decision before it, on the first bar."""
    data = ChartData(
        open=[float(bar.open) for bar in bars],
        high=[float(bar.high) for bar in bars],
        low=[float(bar.low) for bar in bars],
        close=[float(bar.close) for bar in bars],
        volume=[math.nan if bar.volume is None else float(bar.volume) for bar in bars],
        days=[bar.begins for bar in bars],
        title=f"{symbol} {MINUTES} UTC",
    )
    begins, session = [bar.begins for bar in bars], bars[-1].begins.date()
    before = max((one.key.session for _, one in decisions if one.key.session < session), default=session)
    shown = [(time, one) for time, one in decisions if one.key.session in (before, session)]
    made = [(max(0, bisect_right(begins, time) - 1), one) for time, one in shown]
    within = [(time, fill) for time, fill in fills if begins[0] <= time < begins[-1] + MINUTE]
    traded = [(bisect_right(begins, time) - 1, fill) for time, fill in within]
    return replace(marked_chart(data, traded, made), panes=_indicators(data))


def _rows(days: Sequence[date], group: Callable[[date], tuple[int, ...]]) -> list[int]:
    """The bar that every day belongs to."""
    rows, last = list[int](), None
    for day in days:
        if (name := group(day)) != last:
            rows.append(rows[-1] + 1 if rows else 0)
            last = name
        else:
            rows.append(rows[-1])
    return rows


def _grouped(daily: ChartData, rows: Sequence[int]) -> ChartData:
    """The bars of days taken together."""
    count = rows[-1] + 1
    if count == len(daily):
        return daily
    members: list[list[int]] = [[] for _ in range(count)]
    for day, row in enumerate(rows):
        members[row].append(day)
    return ChartData(
        open=[daily.open[days[0]] for days in members],
        high=[max(daily.high[day] for day in days) for days in members],
        low=[min(daily.low[day] for day in days) for days in members],
        close=[daily.close[days[-1]] for days in members],
        volume=[sum(daily.volume[day] for day in days) for days in members] if len(daily.volume) else (),
        days=[daily.days[days[-1]] for days in members],
    )


def price_lines(data: ChartData) -> tuple[Line, ...]:
    """The averages and bands over the closes of a chart."""
    return _lines(tuple(data.close))


@lru_cache(maxsize=64)
def _lines(closes: tuple[float, ...]) -> tuple[Line, ...]:
    """The same for closes: a desk that is read again mostly has the same."""
    import numpy as np

    from engine.market.indicators import bollinger, sma

    close = np.asarray(closes, dtype=float)
    bands = bollinger(close)
    columns = (
        ("SMA10", sma(close, 10), "short"),
        ("SMA50", sma(close, 50), "long"),
        ("BB", bands.upper, "upper"),
        ("BB", bands.lower, "lower"),
    )
    return tuple(Line(name, tuple(_known(values)), role) for name, values, role in columns)


def _indicators(data: ChartData) -> dict[str, Mapping[str, Series]]:
    import numpy as np

    from engine.market.indicators import kdj, macd, rsi

    close, high, low = (np.asarray(column, dtype=float) for column in (data.close, data.high, data.low))
    moving, stochastic = macd(close), kdj(high, low, close)
    return {
        "RSI": {"RSI 14": _known(rsi(close))},
        "MACD": {"MACD 12 26": _known(moving.line), "signal 9": _known(moving.signal)},
        "KDJ": {"K": _known(stochastic.k), "D": _known(stochastic.d), "J": _known(stochastic.j)},
    }


def _known(values: Floats) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def _compared(
    data: ChartData, symbol: str, beside: str, market: MarketAsOf, group: Callable[[date], tuple[int, ...]]
) -> Compared | None:
    """The closes of another symbol at the symbol's bars."""
    if not beside or beside == symbol or not market.count(beside):
        return None
    other = daily_chart(market.bars(beside, market.count(beside)))
    last = {group(day): close for day, close in zip(other.days, other.close, strict=True)}
    return beside, [last.get(group(day)) for day in data.days]
