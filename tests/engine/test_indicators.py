"""Indicators against TA-Lib, against hand-worked figures, and against themselves on shorter data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.market import indicators as ta

Columns = tuple[np.ndarray[Any, Any], ...]


def walk(rows: int, seed: int = 7) -> Columns:
    """High, low, close of a random walk."""
    random = np.random.default_rng(seed)
    close = 100 * np.exp(np.cumsum(random.normal(0, 0.02, rows)))
    return close * (1 + random.uniform(0, 0.02, rows)), close * (1 - random.uniform(0, 0.02, rows)), close


ALL: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sma": lambda h, lo, c: ta.sma(c, 5),
    "ema": lambda h, lo, c: ta.ema(c, 5),
    "highest": lambda h, lo, c: ta.highest(h, 5),
    "lowest": lambda h, lo, c: ta.lowest(lo, 5),
    "deviation": lambda h, lo, c: ta.deviation(c, 5),
    "z_score": lambda h, lo, c: ta.z_score(c, 5),
    "bollinger": lambda h, lo, c: ta.bollinger(c, 5),
    "rsi": lambda h, lo, c: ta.rsi(c, 4),
    "rsi from first": lambda h, lo, c: ta.rsi(c, 4, from_first=True),
    "atr": lambda h, lo, c: ta.atr(h, lo, c, 4),
    "macd": lambda h, lo, c: ta.macd(c, 3, 6, 4),
    "kdj": lambda h, lo, c: ta.kdj(h, lo, c, window=5),
    "kdj of means": lambda h, lo, c: ta.kdj_simple(h, lo, c, window=5),
}


def lines(result: Any) -> Columns:
    return result if isinstance(result, tuple) else (result,)


candles = st.lists(
    st.tuples(*[st.floats(0.01, 1e5) for _ in range(3)]).map(lambda p: (max(p), min(p), sorted(p)[1])),
    max_size=40,
)


@pytest.mark.parametrize("name", ALL)
@given(rows=candles, data=st.data())
def test_later_rows_change_nothing(name: str, rows: list[tuple[float, ...]], data: st.DataObject) -> None:
    columns = np.array(rows, dtype=float).reshape(-1, 3).T
    cut = data.draw(st.integers(0, len(rows)))
    whole, part = ALL[name](*columns), ALL[name](*columns[:, :cut])
    for full, short in zip(lines(whole), lines(part), strict=True):
        assert full.shape == (len(rows),)
        np.testing.assert_array_equal(full[:cut], short)


@pytest.mark.parametrize("name", ALL)
def test_a_matrix_of_windows_is_computed_line_by_line(name: str) -> None:
    windows = [np.lib.stride_tricks.sliding_window_view(column, 15) for column in walk(40)]
    together = lines(ALL[name](*windows))
    for row in (0, 11, 25):
        alone = lines(ALL[name](*(w[row] for w in windows)))
        for matrix, line in zip(together, alone, strict=True):
            np.testing.assert_array_equal(matrix[row], line)


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("SMA", lambda h, lo, c: ta.sma(c, 30), lambda t, h, lo, c: t.SMA(c, 30)),
        ("EMA", lambda h, lo, c: ta.ema(c, 12), lambda t, h, lo, c: t.EMA(c, 12)),
        (
            "BBANDS",
            lambda h, lo, c: ta.bollinger(c, 20, 2.0)[::-1],
            lambda t, h, lo, c: t.BBANDS(c, 20, 2.0, 2.0),
        ),
        ("RSI", lambda h, lo, c: ta.rsi(c), lambda t, h, lo, c: t.RSI(c, 14)),
        ("ATR", lambda h, lo, c: ta.atr(h, lo, c), lambda t, h, lo, c: t.ATR(h, lo, c, 14)),
        ("MACD", lambda h, lo, c: ta.macd(c), lambda t, h, lo, c: t.MACD(c, 12, 26, 9)),
        (
            # KDJ's smoothing by 1/3 is an EMA of span 5.
            "KDJ",
            lambda h, lo, c: ta.kdj(h, lo, c)[:2],
            lambda t, h, lo, c: t.STOCH(h, lo, c, 9, 5, 1, 5, 1),
        ),
        ("STDDEV", lambda h, lo, c: ta.deviation(c, 20), lambda t, h, lo, c: t.STDDEV(c, 20)),
        ("MAX", lambda h, lo, c: ta.highest(h, 20), lambda t, h, lo, c: t.MAX(h, 20)),
    ],
)
def test_agrees_with_talib(name: str, ours: Callable[..., Any], theirs: Callable[..., Any]) -> None:
    talib = pytest.importorskip("talib", reason="TA-Lib is a development dependency")
    columns = walk(600)
    for mine, other in zip(lines(ours(*columns)), lines(theirs(talib, *columns)), strict=True):
        np.testing.assert_allclose(mine[250:], other[250:], rtol=1e-6, atol=1e-6)


def test_first_values_by_hand() -> None:
    close = np.array([1.0, 2.0, 3.0, 5.0])
    np.testing.assert_allclose(ta.sma(close, 3), [np.nan, np.nan, 2.0, 10 / 3])
    np.testing.assert_allclose(ta.ema(close, 3), [1.0, 1.5, 2.25, 3.625])
    # Mean 10/3; squares 16/9 + 1/9 + 25/9 = 42/9, over n - 1 = 2.
    np.testing.assert_allclose(ta.deviation(close, 3, ddof=1)[3], np.sqrt(42 / 18))
    np.testing.assert_allclose(ta.z_score(close, 3)[3], (5 - 10 / 3) / np.sqrt(42 / 18))


def test_wilders_rsi_by_hand() -> None:
    # Changes +1 -1 +2: first averages over two (gain 0.5, loss 0.5), then gain 1.25, loss 0.25.
    np.testing.assert_allclose(ta.rsi(np.array([1.0, 2.0, 1.0, 3.0]), 2), [np.nan, np.nan, 50.0, 100 * 1.25 / 1.5])


def test_kdj_begins_at_fifty() -> None:
    high, low, close = np.array([4.0, 4.0, 4.0]), np.array([0.0, 0.0, 0.0]), np.array([1.0, 4.0, 0.0])
    k, d, j = ta.kdj(high, low, close, window=2)
    np.testing.assert_allclose(k, [np.nan, 200 / 3, 400 / 9])
    np.testing.assert_allclose(d, [np.nan, (100 + 200 / 3) / 3, (2 * (100 + 200 / 3) / 3 + 400 / 9) / 3])
    np.testing.assert_allclose(j[1:], 3 * k[1:] - 2 * d[1:])


def test_a_flat_market_is_neutral_and_never_infinite() -> None:
    flat = np.full(60, 0.1)
    assert ta.sma(flat, 10)[-1] == ta.sma(flat, 30)[-1] == 0.1
    assert ta.rsi(flat)[-1] == 50.0
    assert ta.kdj(flat, flat, flat).j[-1] == 50.0
    assert np.isnan(ta.z_score(flat, 14)).all()
    assert (ta.macd(flat).histogram == 0.0).all()


def test_too_few_rows_are_undefined() -> None:
    for rows in (0, 1, 3):
        high, low, close = walk(rows)
        assert np.isnan(ta.sma(close, 5)).all()
        assert np.isnan(ta.rsi(close)).all()
        assert np.isnan(ta.kdj(high, low, close).k).all()
