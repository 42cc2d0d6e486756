"""Trend following: crossovers of moving averages, and of MACD with its signal line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from engine.domain.market import PriceHistory
from engine.errors import UsageError
from engine.market import indicators
from engine.market.indicators import Floats
from engine.strategies.parameters import check, number
from engine.strategies.strategy import Signals, crossings, registered, verb


@registered
@dataclass(frozen=True, slots=True)
class SmaCross:
    """Buy when a fast moving average of the close crosses above a slow one, sell when it crosses below."""

    name: ClassVar[str] = "sma-cross"

    fast: int = number(10, "sessions in the fast average", 2, 100)
    slow: int = number(30, "sessions in the slow average, more than in the fast one", 3, 400)

    def __post_init__(self) -> None:
        check(self)
        _in_order(self.name, self.fast, self.slow)

    def signals(self, history: PriceHistory) -> Signals:
        fast, slow = self._averages(history)
        return crossings(fast, slow)

    def explain(self, history: PriceHistory, row: int) -> str:
        fast, slow = (float(line[row]) for line in self._averages(history))
        if np.isnan(slow):
            return f"SMA {self.fast}/{self.slow}: not enough sessions yet for the slow average."
        side = "above" if fast > slow else "below" if fast < slow else "at"
        crossed = verb(int(self.signals(history)[row]))
        return f"SMA {self.fast} at {fast:.2f} stands {side} SMA {self.slow} at {slow:.2f}: {crossed}."

    def _averages(self, history: PriceHistory) -> tuple[Floats, Floats]:
        close = indicators.prices(history.close)
        return indicators.sma(close, self.fast), indicators.sma(close, self.slow)


@registered
@dataclass(frozen=True, slots=True)
class Macd:
    """Buy when MACD crosses above its signal line, sell when it crosses below.

    With `rows` the rule sees only that many closes and is computed afresh every session, as FinAgent's is:
    short 5 to 7, long 14, signal 9, rows 15 (Source: FinAgent §4.4, §5.3 [A7, A13]).
    """

    name: ClassVar[str] = "macd"

    fast: int = number(12, "span of the fast exponential average, in sessions", 2, 50)
    slow: int = number(26, "span of the slow exponential average, more than the fast one's", 3, 100)
    signal: int = number(9, "span of the signal line", 2, 50)
    rows: int = number(0, "how many last closes the rule sees; 0: all of them", 0, 400, tuned=False)

    def __post_init__(self) -> None:
        check(self)
        _in_order(self.name, self.fast, self.slow)

    def signals(self, history: PriceHistory) -> Signals:
        close = indicators.prices(history.close)
        if self.rows == 0:
            lines = indicators.macd(close, self.fast, self.slow, self.signal)
            signals = crossings(lines.line, lines.signal)
            # Both averages begin at the first close: until they have run in, a crossing is only noise.
            signals[: self.slow + self.signal] = 0
            return signals
        signals = np.zeros(len(close), np.int8)
        if len(close) >= self.rows:
            windows = sliding_window_view(close, self.rows)
            lines = indicators.macd(windows, self.fast, self.slow, self.signal)
            signals[self.rows - 1 :] = crossings(lines.line, lines.signal)[..., -1]
        return signals

    def explain(self, history: PriceHistory, row: int) -> str:
        end = row if row >= 0 else len(history) + row
        seen = indicators.prices(history.close)[: end + 1][-self.rows :]
        lines = indicators.macd(seen, self.fast, self.slow, self.signal)
        line, average = float(lines.line[-1]), float(lines.signal[-1])
        side = "above" if line > average else "below" if line < average else "at"
        label = f"MACD ({self.fast}, {self.slow}, {self.signal}) at {line:.3f}"
        crossed = verb(int(self.signals(history)[row]))
        return f"{label} stands {side} its signal line at {average:.3f}: {crossed}."


def _in_order(name: str, fast: int, slow: int) -> None:
    if fast >= slow:
        raise UsageError(f"strategy {name}: fast ({fast}) must be smaller than slow ({slow})")
