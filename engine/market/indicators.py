"""Technical indicators over columns of prices, oldest first; a value depends on rows up to its own.

Float64 arrays in and out, NaN where a value is not yet defined. Time is the last axis, so that a rule with a sliding
window can be computed for all windows at once (a matrix, one window per line). Every window is summed on its own, so
that a value is the same to the last bit with or without later rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.domain.market import NANO, UNKNOWN

Floats = NDArray[np.float64]


def prices(column: array[int]) -> Floats:
    """A column of nano-units in the quote currency; NaN where unknown."""
    nano = np.asarray(column, dtype=np.float64)
    return np.where(nano == UNKNOWN, np.nan, nano / NANO)


def sma(values: Floats, window: int) -> Floats:
    """Simple moving average of the last `window` values."""
    # Offsets from the newest value: a flat window averages to exactly itself, and nothing large is added up.
    return _leading(window, values, lambda newest, lag: newest + _summed(newest, lag, window, _difference) / window)


def ema(values: Floats, span: int) -> Floats:
    """Exponential moving average, alpha 2/(span + 1), begun at the first value: defined from the start."""
    return _smoothed(values, 2.0 / (span + 1.0))


def highest(values: Floats, window: int) -> Floats:
    """The largest of the last `window` values."""
    return _leading(window, values, lambda newest, lag: _folded(newest, lag, window, np.maximum))


def lowest(values: Floats, window: int) -> Floats:
    """The smallest of the last `window` values."""
    return _leading(window, values, lambda newest, lag: _folded(newest, lag, window, np.minimum))


def deviation(values: Floats, window: int, ddof: int = 0) -> Floats:
    """Standard deviation of the last `window` values (ddof 0: population, 1: sample)."""

    def spread(newest: Floats, lag: Callable[[int], Floats]) -> Floats:
        mean = _summed(newest, lag, window, _difference) / window
        squares = _summed(newest, lag, window, lambda value, last: np.square(value - last - mean))
        # The newest value is its own reference, so its own term is mean squared.
        return np.sqrt((squares + np.square(mean)) / (window - ddof))

    return _leading(window, values, spread)


def z_score(values: Floats, window: int, ddof: int = 1) -> Floats:
    """Distance of a value from the mean of the last `window`, in deviations; NaN where all are equal."""
    return _ratio(values - sma(values, window), deviation(values, window, ddof), np.nan)


class Bands(NamedTuple):
    """Bollinger bands, in the unit of the prices."""

    lower: Floats
    middle: Floats
    upper: Floats


def bollinger(close: Floats, window: int = 20, width: float = 2.0) -> Bands:
    """Moving average with bands `width` population deviations away."""
    middle, distance = sma(close, window), width * deviation(close, window)
    return Bands(middle - distance, middle, middle + distance)


def rsi(close: Floats, period: int = 14, from_first: bool = False) -> Floats:
    """Wilder's relative strength index, 0 to 100; 50 without any change.

    The averages of gains and losses begin at the mean of the first `period` changes, or with `from_first` at zero on
    the first row (then a value appears one row earlier), as FinAgent's rule has it.
    """
    change = np.diff(close, axis=-1)
    gains, losses = np.maximum(change, 0.0), np.maximum(-change, 0.0)
    if from_first:
        start = np.zeros_like(close[..., :1])
        gain = _smoothed(np.concatenate([start, gains], axis=-1), 1.0 / period)
        loss = _smoothed(np.concatenate([start, losses], axis=-1), 1.0 / period)
        gain[..., : period - 1] = np.nan
    else:
        gain, loss = (_wilder(moves, period, close.shape) for moves in (gains, losses))
    return np.where(np.isnan(gain), np.nan, 100.0 * _ratio(gain, gain + loss, 0.5))


def atr(high: Floats, low: Floats, close: Floats, period: int = 14) -> Floats:
    """Wilder's average true range, in the unit of the prices."""
    before = close[..., :-1]
    top, bottom = np.maximum(high[..., 1:], before), np.minimum(low[..., 1:], before)
    return _wilder(top - bottom, period, close.shape)


class Macd(NamedTuple):
    """MACD line, its signal line and their difference, in the unit of the prices."""

    line: Floats
    signal: Floats
    histogram: Floats


def macd(close: Floats, fast: int = 12, slow: int = 26, signal: int = 9) -> Macd:
    """Difference of a fast and a slow exponential average, and its own exponential average."""
    line = ema(close, fast) - ema(close, slow)
    average = ema(line, signal)
    return Macd(line, average, line - average)


class Kdj(NamedTuple):
    """The three KDJ lines; K and D run from 0 to 100, J = 3K - 2D may leave that range."""

    k: Floats
    d: Floats
    j: Floats


def kdj(high: Floats, low: Floats, close: Floats, *, window: int = 9, k: int = 3, d: int = 3) -> Kdj:
    """KDJ with recursive smoothing: K = ((k - 1) K' + RSV) / k and D likewise, both begun at 50."""
    raw = raw_stochastic(high, low, close, window)
    k_line = _smoothed(raw, 1.0 / k, seed=50.0)
    d_line = _smoothed(k_line, 1.0 / d, seed=50.0)
    return Kdj(k_line, d_line, 3.0 * k_line - 2.0 * d_line)


def kdj_simple(high: Floats, low: Floats, close: Floats, *, window: int = 9, smoothing: int = 3) -> Kdj:
    """KDJ with simple moving averages for K and D, as FinAgent's rule computes it."""
    k_line = sma(raw_stochastic(high, low, close, window), smoothing)
    d_line = sma(k_line, smoothing)
    return Kdj(k_line, d_line, 3.0 * k_line - 2.0 * d_line)


def raw_stochastic(high: Floats, low: Floats, close: Floats, window: int) -> Floats:
    """RSV: position of the close in the range of the last `window` rows, 0 to 100; 50 without a range."""
    bottom, top = lowest(low, window), highest(high, window)
    return 100.0 * _ratio(close - bottom, top - bottom, 0.5)


def _difference(value: Floats, newest: Floats) -> Floats:
    return value - newest


def _leading(window: int, values: Floats, compute: Callable[[Floats, Callable[[int], Floats]], Floats]) -> Floats:
    """NaN for window - 1 rows, then the result of `compute` on the newest values and a view `lag` rows back."""
    result = np.full(values.shape, np.nan)
    rows = values.shape[-1]
    if rows < window:
        return result
    first = window - 1
    result[..., first:] = compute(values[..., first:], lambda lag: values[..., first - lag : rows - lag])
    return result


def _summed(
    newest: Floats, lag: Callable[[int], Floats], window: int, term: Callable[[Floats, Floats], Floats]
) -> Floats:
    total = np.zeros_like(newest)
    for back in range(window - 1, 0, -1):
        total += term(lag(back), newest)
    return total


def _folded(newest: Floats, lag: Callable[[int], Floats], window: int, better: np.ufunc) -> Floats:
    best = newest.copy()
    for back in range(1, window):
        better(best, lag(back), out=best)
    return best


def _ratio(part: Floats, whole: Floats, without: float) -> Floats:
    """part / whole, `without` where the whole is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole == 0.0, without, part / whole)


def _smoothed(values: Floats, alpha: float, seed: float | None = None) -> Floats:
    """y = y' + alpha (x - y'), from the first defined value (or from a seed before it)."""
    result = np.full(values.shape, np.nan)
    rows = values.shape[-1]
    known = np.flatnonzero(~np.isnan(values).reshape(-1, rows).any(axis=0)) if rows else np.empty(0, np.intp)
    if not known.size:
        return result
    first = int(known[0])
    level = values[..., first] if seed is None else np.full(values.shape[:-1], seed)
    begin = first
    if seed is None:
        result[..., first] = level
        begin = first + 1
    if values.ndim == 1:
        result[begin:] = _steps(values[begin:].astype(np.float64, copy=False).tobytes(), alpha, float(level))
        return result
    for row in range(begin, rows):
        level = level + alpha * (values[..., row] - level)
        result[..., row] = level
    return result


@lru_cache(maxsize=256)
def _steps(values: bytes, alpha: float, level: float) -> Floats:
    """The levels after each value. Chart and tools of one decision ask for those of the same window."""
    # A plain loop over floats beats numpy where each value needs the one before it.
    steps = []
    for x in np.frombuffer(values).tolist():
        level += alpha * (x - level)
        steps.append(level)
    return np.array(steps)


def _wilder(changes: Floats, period: int, shape: tuple[int, ...]) -> Floats:
    """Wilder's average of changes between rows: the mean of the first `period`, then smoothed by 1/period."""
    result = np.full(shape, np.nan)
    if changes.shape[-1] < period:
        return result
    mean = np.zeros(shape[:-1])
    for row in range(period):
        mean = mean + changes[..., row]
    begun = np.concatenate([(mean / period)[..., None], changes[..., period:]], axis=-1)
    result[..., period:] = _smoothed(begun, 1.0 / period)
    return result
