"""Charts for agents, computed as values: the Kline chart, its figures as a table, the signal and the trading chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import lru_cache
from itertools import compress

import numpy as np

from engine.domain.chart import Candles, ChartSpec, IndicatorTable, Line, Marker, Panel, Series
from engine.domain.decision import DIRECTIONS, Action
from engine.domain.market import PriceHistory, Symbol
from engine.market.indicators import Floats, bollinger, kdj, macd, prices, rsi, sma

TABLE_ROWS = 20
"""Sessions of the table: a trading month."""
_DRAWN = 128
"""Charts that are kept for whoever looks at the same bars next: symbols that are analysed side by side."""


@lru_cache(maxsize=_DRAWN)
def kline_chart(symbol: Symbol, bars: PriceHistory, show: int) -> ChartSpec:
    """The last `show` sessions as candles with moving averages, Bollinger bands, volume, RSI, MACD and KDJ.

    Indicators are computed over all bars given. Source: FinVision §4.1 [V2]; KDJ is asked for there though not drawn.
    """
    first = max(0, len(bars) - show)
    column = {name: _series(values[first:]) for name, values in _indicators(bars).items()}
    return ChartSpec(
        kind="kline",
        title=f"{symbol}, last {len(bars) - first} sessions",
        symbol=symbol,
        sessions=_dates(bars, first),
        candles=Candles(*(tuple(prices(c[first:]).tolist()) for c in (bars.open, bars.high, bars.low, bars.close))),
        lines=(
            Line("SMA 10", column["SMA 10"], "short"),
            Line("SMA 50", column["SMA 50"], "long"),
            Line("upper band", column["upper band"], "upper"),
            Line("middle band", column["middle band"], "middle"),
            Line("lower band", column["lower band"], "lower"),
        ),
        panels=(
            Panel("Volume", bars=column["volume"]),
            Panel("RSI 14", (Line("RSI 14", column["RSI 14"]),), levels=(30.0, 70.0)),
            Panel(
                "MACD",
                (Line("MACD", column["MACD"], "fast"), Line("signal", column["MACD signal"], "signal")),
                bars=column["MACD histogram"],
                levels=(0.0,),
            ),
            Panel("KDJ", tuple(Line(n, column[n], n.lower()) for n in ("K", "D", "J")), levels=(20.0, 80.0)),
        ),
    )


@lru_cache(maxsize=_DRAWN)
def indicator_table(bars: PriceHistory) -> IndicatorTable:
    """The figures of the last sessions, computed over all bars given."""
    first = max(0, len(bars) - TABLE_ROWS)
    indicators = _indicators(bars)
    columns = [_series(values[first:]) for values in indicators.values()]
    return IndicatorTable(tuple(indicators), _dates(bars, first), tuple(zip(*columns, strict=True)))


def signal_chart(symbol: Symbol, bars: PriceHistory, show: int, signals: Iterable[tuple[date, Action]]) -> ChartSpec:
    """The closes of the last `show` sessions, with a marker at the close of every session with a BUY or SELL.

    Holds, abstentions and signals outside the window have no marker. Source: FinVision §3.3 [V4].
    """
    first = max(0, len(bars) - show)
    closes = tuple(prices(bars.close[first:]).tolist())
    markers = []
    for session, action in sorted(signals):
        row = bars.index(session)
        if action in (Action.BUY, Action.SELL) and row is not None and row >= first:
            markers.append(Marker(row - first, action.value, closes[row - first]))
    return ChartSpec(
        kind="signals",
        title=f"{symbol}, closes and signals of the last {len(closes)} sessions",
        symbol=symbol,
        sessions=_dates(bars, first),
        lines=(Line("close", closes, "close"),),
        markers=tuple(markers),
    )


def trading_chart(
    symbol: Symbol,
    bars: PriceHistory,
    show: int,
    signals: Iterable[tuple[date, Action]],
    returns: Iterable[tuple[date, Decimal]],
) -> ChartSpec:
    """The signal chart with a panel below: the cumulative return of trading the symbol, in percent.

    It is drawn at the sessions for which it is given (as a fraction), None at others. Source: FinAgent §4.3 [A5].
    """
    chart = signal_chart(symbol, bars, show, signals)
    count = len(chart.sessions)
    cumulative: list[float | None] = [None] * count
    for session, fraction in returns:
        row = bars.index(session)
        if row is not None and row >= len(bars) - count:
            cumulative[row - len(bars) + count] = round(float(fraction) * 100, 9)
    return replace(
        chart,
        kind="trading",
        title=f"{symbol}, trades and return of the last {count} sessions",
        panels=(Panel("Cumulative return %", (Line("Cumulative return %", tuple(cumulative)),), levels=(0.0,)),),
    )


def by_day_numbers(chart: ChartSpec) -> ChartSpec:
    """The chart with its sessions numbered from 1 in place of their dates, which a model would know the market by.
    Source: Agent Trading Arena §4.2 [R6]."""
    return replace(chart, sessions=tuple(f"day {number}" for number in range(1, len(chart.sessions) + 1)))


def candle_chart(
    symbol: Symbol, bars: PriceHistory, show: int, trades: Sequence[tuple[date, Action, Decimal]]
) -> ChartSpec:
    """The last `show` sessions as candles with volume, the markers of the signal chart, and the own trades as bars:
    percents of the portfolio by session, those that were sold below zero.

    Source: Agent Trading Arena §4.2, appendix E [R6].
    """
    chart = signal_chart(symbol, bars, show, [(session, action) for session, action, _ in trades])
    first = len(bars) - len(chart.sessions)
    columns = (prices(column[first:]).tolist() for column in (bars.open, bars.high, bars.low, bars.close))
    signed = {session.isoformat(): float(DIRECTIONS.get(action, 0) * size) for session, action, size in trades}
    return replace(
        chart,
        title=f"{symbol}, candles, volume and own trades of the last {len(chart.sessions)} sessions",
        candles=Candles(*map(tuple, columns)),
        lines=(),
        panels=(
            Panel("Volume", bars=_series(np.asarray(bars.volume[first:], dtype=np.float64))),
            own_trades("% of the portfolio", tuple(signed.get(session, 0.0) for session in chart.sessions)),
        ),
    )


def own_trades(unit: str, signed: Series) -> Panel:
    """A trader's own volume by session, sales below zero."""
    return Panel(f"Own trades, {unit}", bars=signed, levels=(0.0,))


def record_chart(sessions: tuple[str, ...], worth: Line, bought: Series, sold: Series, unit: str) -> ChartSpec:
    """A trader's record over all stocks: above its result, below what it bought and, below zero, what it sold.

    Source: Agent Trading Arena, appendix C (d), (e) [R6].
    """
    return ChartSpec(
        kind="record",
        title=f"Own trading record of {len(sessions)} days: {worth.name}, bought and sold",
        symbol="all stocks",
        sessions=sessions,
        lines=(worth,),
        panels=(Panel(f"Bought, {unit}", bars=bought), Panel(f"Sold, {unit}", bars=sold)),
    )


@lru_cache(maxsize=2)
def _indicators(bars: PriceHistory) -> Mapping[str, Floats]:
    """All columns over all bars, in the order of the table; cached for the last bars, because chart and table share
    them."""
    close, high, low = prices(bars.close), prices(bars.high), prices(bars.low)
    bands, oscillator, stochastic = bollinger(close), macd(close), kdj(high, low, close)
    return {
        "open": prices(bars.open),
        "high": high,
        "low": low,
        "close": close,
        "volume": np.asarray(bars.volume, dtype=np.float64),
        "SMA 10": sma(close, 10),
        "SMA 50": sma(close, 50),
        "lower band": bands.lower,
        "middle band": bands.middle,
        "upper band": bands.upper,
        "RSI 14": rsi(close),
        "MACD": oscillator.line,
        "MACD signal": oscillator.signal,
        "MACD histogram": oscillator.histogram,
        "K": stochastic.k,
        "D": stochastic.d,
        "J": stochastic.j,
    }


def _series(values: Floats) -> Series:
    """Plain floats at nine digits after the point, as prices have; None where undefined."""
    plain: list[float | None] = np.round(values, 9).tolist()
    for row in compress(range(len(plain)), np.isnan(values).tolist()):
        plain[row] = None
    return tuple(plain)


def _dates(bars: PriceHistory, first: int) -> tuple[str, ...]:
    return tuple(date.fromordinal(day).isoformat() for day in bars.sessions[first:])
