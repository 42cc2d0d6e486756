"""Rules on prices: crossovers of averages and of MACD, KDJ with an RSI filter, the z-score of the price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from engine.domain.market import PriceHistory
from engine.errors import UsageError
from engine.market import indicators
from engine.market.indicators import Floats
from engine.strategies.strategy import Signals, check, choice, crossings, number, registered, verb


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


@registered
@dataclass(frozen=True, slots=True)
class PriceCross:
    """Buy when the close crosses above its own moving average, sell when it crosses below.

    Source: Agent Trading Arena §5.1 [R8], whose windows are 5, 10, 15 and 20.
    """

    name: ClassVar[str] = "price-cross"

    window: int = number(10, "sessions in the average", 2, 400)

    def __post_init__(self) -> None:
        check(self)

    def signals(self, history: PriceHistory) -> Signals:
        close = indicators.prices(history.close)
        return crossings(close, indicators.sma(close, self.window))

    def explain(self, history: PriceHistory, row: int) -> str:
        close = indicators.prices(history.close)
        average = float(indicators.sma(close, self.window)[row])
        if np.isnan(average):
            return f"SMA {self.window}: not enough sessions yet."
        side = "above" if close[row] > average else "below" if close[row] < average else "at"
        crossed = verb(int(self.signals(history)[row]))
        return f"The close at {float(close[row]):.2f} stands {side} SMA {self.window} at {average:.2f}: {crossed}."


def _in_order(name: str, fast: int, slow: int) -> None:
    if fast >= slow:
        raise UsageError(f"strategy {name}: fast ({fast}) must be smaller than slow ({slow})")


@registered
@dataclass(frozen=True, slots=True, kw_only=True)
class KdjRsi:
    """Buy when J crosses above D while RSI is low, sell when J crosses below D while RSI is high.

    With `rows` the rule sees only that many bars and is computed afresh every session; FinAgent's sees 15,
    smooths by `mean` and starts RSI from the first row seen (Source: FinAgent §4.4, §5.3 [A7, A13]).
    """

    name: ClassVar[str] = "kdj-rsi"

    window: int = number(9, "sessions in the range that the close is compared with", 3, 60)
    smoothing: int = number(3, "how strongly K and D are smoothed", 2, 10)
    overbought: float = number(60.0, "sell only with RSI above this", 50, 95)
    oversold: float = number(40.0, "buy only with RSI below this", 5, 50)
    period: int = number(14, "sessions of RSI", 2, 60, tuned=False)
    lines: str = choice("recursive", "K and D as recursive averages or as plain means", ("recursive", "mean"))
    rows: int = number(0, "how many last bars the rule sees; 0: all of them", 0, 400, tuned=False)

    def __post_init__(self) -> None:
        check(self)
        needed = max(self.window, self.smoothing, self.period)
        if 0 < self.rows <= needed:
            raise UsageError(f"strategy {self.name}: rows must be 0 or more than {needed}, not {self.rows}")

    def signals(self, history: PriceHistory) -> Signals:
        bars = self._bars(history)
        rows = len(history)
        signals = np.zeros(rows, np.int8)
        if self.rows == 0:
            j, d, rsi = self._lines(bars)
            signals[:] = self._filtered(crossings(j, d), rsi)
            signals[: max(self.window, self.smoothing, self.period)] = 0
        elif rows >= self.rows:
            windows = [sliding_window_view(column, self.rows) for column in bars]
            j, d, rsi = self._lines(windows)
            signals[self.rows - 1 :] = self._filtered(crossings(j, d)[..., -1], rsi[..., -1])
        return signals

    def explain(self, history: PriceHistory, row: int) -> str:
        end = row if row >= 0 else len(history) + row
        seen = [column[: end + 1][-self.rows :] for column in self._bars(history)]
        j, d, rsi = (float(line[-1]) for line in self._lines(seen))
        if np.isnan(j + d + rsi):
            return f"KDJ ({self.window}, {self.smoothing}) with RSI: not enough sessions yet."
        side = "above" if j > d else "below" if j < d else "at"
        crossed = verb(int(self.signals(history)[row]))
        limits = f"(buys below {self.oversold:g}, sells above {self.overbought:g})"
        return f"J at {j:.1f} stands {side} D at {d:.1f}, RSI {self.period} is {rsi:.1f} {limits}: {crossed}."

    def _bars(self, history: PriceHistory) -> list[Floats]:
        return [indicators.prices(column) for column in (history.high, history.low, history.close)]

    def _lines(self, bars: list[Floats]) -> tuple[Floats, Floats, Floats]:
        high, low, close = bars
        if self.lines == "mean":
            lines = indicators.kdj_simple(high, low, close, window=self.window, smoothing=self.smoothing)
        else:
            lines = indicators.kdj(high, low, close, window=self.window, k=self.smoothing, d=self.smoothing)
        return lines.j, lines.d, indicators.rsi(close, self.period, from_first=self.rows > 0)

    def _filtered(self, crossed: Signals, rsi: Floats) -> Signals:
        allowed = np.where(crossed > 0, rsi < self.oversold, rsi > self.overbought)
        return np.where(allowed, crossed, 0).astype(np.int8)


@registered
@dataclass(frozen=True, slots=True)
class ZScore:
    """Buy when the close is far below its mean, sell when it is far above.

    Source: FinAgent §5.3 [A13], window 14 and sample deviation.
    """

    name: ClassVar[str] = "z-score"

    window: int = number(14, "sessions in the mean and the deviation", 3, 120)
    threshold: float = number(1.0, "deviations from the mean that make a signal", 0.1, 4.0)

    def __post_init__(self) -> None:
        check(self)

    def signals(self, history: PriceHistory) -> Signals:
        score = self._scores(history)
        signals = (score < -self.threshold).astype(np.int8)
        signals[score > self.threshold] = -1
        return signals

    def explain(self, history: PriceHistory, row: int) -> str:
        score = float(self._scores(history)[row])
        if np.isnan(score):
            return f"Z-score ({self.window}): not defined, too few sessions or a price that has not moved."
        said = verb(int(self.signals(history)[row]))
        side = "below" if score < 0 else "above"
        return (
            f"The close stands {abs(score):.2f} deviations {side} its {self.window}-session mean "
            f"(signals beyond {self.threshold:g}): {said}."
        )

    def _scores(self, history: PriceHistory) -> Floats:
        return indicators.z_score(indicators.prices(history.close), self.window)


@registered
@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneReversal:
    """Buy when the close falls into the zone below its mean, sell when it rises into the zone above, or after a time.

    Source: Agent Trading Arena §5.1 [R8]; the paper prints neither bounds nor holding period, these are ours.
    """

    name: ClassVar[str] = "zone-reversal"

    window: int = number(10, "sessions in the mean", 2, 120)
    lower: float = number(3.0, "percent below the mean where the zone to buy in begins", 0.1, 50)
    upper: float = number(3.0, "percent above the mean where the zone to sell in begins", 0.1, 50)
    holding: int = number(10, "sessions after the last purchase when it is sold; 0: only in the zone", 0, 250)

    def __post_init__(self) -> None:
        check(self)

    def signals(self, history: PriceHistory) -> Signals:
        away = self._away(history)
        signals = (away <= -self.lower).astype(np.int8)
        signals[away >= self.upper] = -1
        if self.holding:
            bought = np.flatnonzero(signals == 1)
            rows = np.arange(len(signals))
            place = np.searchsorted(bought, rows, side="right") - 1
            since = rows - bought[np.maximum(place, 0)] if len(bought) else np.zeros(len(rows), np.intp)
            signals[(place >= 0) & (since >= self.holding)] = -1
        return signals

    def explain(self, history: PriceHistory, row: int) -> str:
        away = float(self._away(history)[row])
        if np.isnan(away):
            return f"Zone reversal: fewer than {self.window} sessions."
        zones = f"(zones from -{self.lower:g} % and +{self.upper:g} %)"
        said = verb(int(self.signals(history)[row]))
        return f"The close stands {away:+.2f} % from its {self.window}-session mean {zones}: {said}."

    def _away(self, history: PriceHistory) -> Floats:
        close = indicators.prices(history.close)
        return (close / indicators.sma(close, self.window) - 1) * 100
