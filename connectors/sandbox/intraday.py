"""A price path within a session from a daily bar's four prices, so that it has a price at every moment.

The path goes in straight lines from the open through the low and the high (on a falling day through the high and the
low) to the close, a third of the session each. It starts at the bar's open, ends at its close, and never leaves its
range; the bar says no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isnan

from engine.domain.market import NANO, PriceHistory

_CENT = NANO // 100
_STEP = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candle:
    """Prices and volume of a period, in nano-units.

    start: UTC.
    volume: shares; zero where unknown.
    """

    start: datetime
    open: int
    high: int
    low: int
    close: int
    volume: float


@dataclass(frozen=True, slots=True)
class SessionPath:
    """One session of a symbol, from its open to its close (UTC)."""

    opens: datetime
    closes: datetime
    anchors: tuple[int, int, int, int]
    volume: float

    @classmethod
    def of(cls, history: PriceHistory, row: int, opens: datetime, closes: datetime) -> SessionPath:
        """The path of a bar."""
        first, last = history.open[row], history.close[row]
        low, high = history.low[row], history.high[row]
        middle = (low, high) if last >= first else (high, low)
        volume = history.volume[row]
        return cls(opens, closes, (first, *middle, last), 0.0 if isnan(volume) else volume)

    def price(self, moment: datetime) -> int:
        """The price at a moment; before the open it is the open, after the close the close.

        Between the known prices it is in whole cents (below a dollar in hundredths of a cent).
        """
        spent, length = self._elapsed(moment)
        third, rest = divmod(3 * spent, length)
        if third >= 3:
            return self.anchors[3]
        here, there = self.anchors[third], self.anchors[third + 1]
        if not rest:
            return here
        exact = here + (there - here) * rest // length
        step = _CENT if exact >= NANO else _CENT // 100
        rounded = (exact + step // 2) // step * step
        return min(max(rounded, min(here, there)), max(here, there))

    def candle(self, start: datetime, end: datetime) -> Candle:
        """The candle from one moment of the session to a later one."""
        start, end = max(start, self.opens), min(end, self.closes)
        (begun, length), (ended, _) = self._elapsed(start), self._elapsed(end)
        seen = [
            self.price(start),
            *(self.anchors[n] for n in (1, 2) if 3 * begun < n * length < 3 * ended),
            self.price(end),
        ]
        share = (ended - begun) / length
        return Candle(
            start=start, open=seen[0], high=max(seen), low=min(seen), close=seen[-1], volume=self.volume * share
        )

    def _elapsed(self, moment: datetime) -> tuple[int, int]:
        length = (self.closes - self.opens) // _STEP
        spent = (moment - self.opens) // _STEP
        return min(max(spent, 0), length), length


def merged(candles: list[Candle]) -> Candle:
    """Neighbouring candles as one."""
    return Candle(
        start=candles[0].start,
        open=candles[0].open,
        high=max(candle.high for candle in candles),
        low=min(candle.low for candle in candles),
        close=candles[-1].close,
        volume=sum(candle.volume for candle in candles),
    )
