"""Rules for the chart agent: MACD crossover, KDJ with RSI as filter, price between the Bollinger bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.agents.chart import ChartView
from engine.domain.chart import ChartSpec, Line, Series

FRESH = 3
"""Sessions for which a crossover counts as fresh."""
TOO_FEW = {"trend": "Too few sessions to say", "signal": "None"}


def read(view: ChartView) -> Mapping[str, Any]:
    """A ChartReading of the view, as plain JSON."""
    chart = view.chart
    return {"macd": _macd(chart), "kdj_rsi": _kdj_rsi(chart), "bollinger": _bollinger(chart)}


def _macd(chart: ChartSpec) -> Mapping[str, str]:
    line, signal = _tail(_line(chart, "MACD", "fast")), _tail(_line(chart, "MACD", "signal"))
    if len(line) < 2:
        return TOO_FEW
    gaps = [a - b for a, b in zip(line, signal, strict=True)]
    above = gaps[-1] > 0
    side, gap = "above" if above else "below", "growing" if abs(gaps[-1]) > abs(gaps[-2]) else "narrowing"
    word = ("Uptrend" if line[-1] > 0 else "Recovery") if above else ("Pullback" if line[-1] > 0 else "Downtrend")
    trend = f"{word}: MACD {_price(line[-1])} {side} signal {_price(signal[-1])}, gap {gap}"
    ago = _crossed_ago(gaps)
    if ago is None:
        return {"trend": trend, "signal": f"No crossover, {'bullish' if above else 'bearish'} side"}
    when = "this session" if ago == 0 else f"{ago} sessions ago" if ago > 1 else "one session ago"
    return {"trend": trend, "signal": f"Buy: bullish crossover {when}" if above else f"Sell: bearish crossover {when}"}


def _kdj_rsi(chart: ChartSpec) -> Mapping[str, str]:
    k, d = _tail(_line(chart, "KDJ", "k")), _tail(_line(chart, "KDJ", "d"))
    rsi = _tail(_line(chart, "RSI 14", "line"))
    if len(k) < 2 or len(d) < 2 or not rsi:
        return TOO_FEW
    strength = rsi[-1]
    mood = "bullish" if strength >= 50 else "bearish"
    mood = "overbought" if strength >= 70 else "oversold" if strength <= 30 else mood
    trend = f"RSI {strength:.1f} {mood}, K {k[-1]:.1f} {'above' if k[-1] > d[-1] else 'below'} D {d[-1]:.1f}"
    ago = _crossed_ago([a - b for a, b in zip(k, d, strict=True)])
    if ago is None:
        return {"trend": trend, "signal": "None: KDJ lines have not crossed"}
    up = k[-1] > d[-1]
    if up and min(k[-1], d[-1]) < 50 and strength < 60:
        signal = f"Buy: K crossed above D, RSI {strength:.1f} confirms"
    elif not up and max(k[-1], d[-1]) > 70 and strength > 60:
        signal = f"Sell: K crossed under D, RSI {strength:.1f} confirms"
    else:
        signal = "None: RSI denies the KDJ crossing"
    return {"trend": trend, "signal": signal}


def _bollinger(chart: ChartSpec) -> Mapping[str, str] | None:
    by_role = {line.role: _tail(line.values) for line in chart.lines}
    lower, upper, short, long = (by_role.get(role, []) for role in ("lower", "upper", "short", "long"))
    if not chart.candles or not lower or not short:
        return None
    close = chart.candles.close[-1]
    width = upper[-1] - lower[-1]
    place = (close - lower[-1]) / width if width else 0.5
    return {"trend": _trend(close, short, long), "signal": _reversion(close, place, lower[-1], upper[-1])}


def _trend(close: float, short: Sequence[float], long: Sequence[float]) -> str:
    """The trend by the two moving averages, the longer one's slope over five sessions included."""
    if not long:
        return "Uptrend: close above SMA 10" if close > short[-1] else "Downtrend: close below SMA 10"
    rising = long[-1] > long[max(-6, -len(long))]
    if close > short[-1] > long[-1] and rising:
        return "Strong uptrend: close above SMA 10 above SMA 50"
    if close > long[-1]:
        return f"Uptrend: close above SMA 50, {'above' if close > short[-1] else 'below'} SMA 10"
    if rising and close > 0.97 * long[-1]:
        return "Mixed: close just below rising SMA 50"
    return "Strong downtrend: close below SMA 10 and SMA 50" if close < short[-1] else "Downtrend: close below SMA 50"


def _reversion(close: float, place: float, lower: float, upper: float) -> str:
    if place >= 0.97:
        return f"Overbought: close {_price(close)} at upper band {_price(upper)}"
    if place <= 0.15:
        return f"Oversold dip: close {_price(close)} near lower band {_price(lower)}"
    return f"None: close {_price(close)} between the bands"


def _crossed_ago(gaps: Sequence[float]) -> int | None:
    """Sessions since the sign last changed, where that is fresh."""
    for ago in range(min(FRESH, len(gaps) - 1)):
        if (gaps[-1 - ago] > 0) != (gaps[-2 - ago] > 0):
            return ago
    return None


def _line(chart: ChartSpec, panel: str, role: str) -> Series:
    lines: dict[tuple[str, str], Line] = {(p.name, line.role): line for p in chart.panels for line in p.lines}
    found = lines.get((panel, role))
    return () if found is None else found.values


def _tail(values: Series, count: int = 10) -> list[float]:
    """The last defined values, oldest first; empty where the very last is undefined."""
    if not values or values[-1] is None:
        return []
    return [v for v in values[-count:] if v is not None]


def _price(value: float) -> str:
    return f"{value:.4g}" if 0 < abs(value) < 1 else f"{value:.2f}"
