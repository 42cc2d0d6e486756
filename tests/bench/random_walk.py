"""The same seeded daily bars for everyone that is measured: plain columns, prices with four decimals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

FIRST_DAY = date(2010, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """One symbol's bars; prices as whole ten-thousandths, so that every program can hold them exactly."""

    symbol: str
    open: NDArray[np.int64]
    high: NDArray[np.int64]
    low: NDArray[np.int64]
    close: NDArray[np.int64]
    volume: NDArray[np.int64]


def days(bars: int) -> list[date]:
    """Consecutive days."""
    return [FIRST_DAY + timedelta(days=n) for n in range(bars)]


def walks(symbols: int, bars: int, seed: int = 7) -> Iterator[Columns]:
    """Geometric random walks with 1.5 % deviation a day and gaps overnight, one symbol after another."""
    random = np.random.default_rng(seed)
    for n in range(symbols):
        moves = random.normal(0.0003, 0.015, bars)
        close = 100.0 * np.exp(np.cumsum(moves))
        before = np.concatenate([[100.0], close[:-1]])
        opened = before * np.exp(random.normal(0.0, 0.004, bars))
        spread = np.abs(random.normal(0.0, 0.006, (2, bars)))
        high = np.maximum(opened, close) * (1 + spread[0])
        low = np.minimum(opened, close) * (1 - spread[1])
        rounded = [np.rint(column * 10_000).astype(np.int64) for column in (opened, high, low, close)]
        yield Columns(
            symbol=f"S{n:02d}",
            **dict(zip(("open", "high", "low", "close"), rounded, strict=True)),
            volume=random.integers(100_000, 5_000_000, bars),
        )
