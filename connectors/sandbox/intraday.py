"""Draws a session's prices from its four known ones, so that a daily bar has a price at every moment.

The path goes in straight lines from the open through the low and the high (on a falling day through the high and the
low) to the close, a third of the session each. It starts at the bar's open, ends at its close, and never leaves its
range; that is all that is known, and no more is claimed.
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
    """Prices and volume of a stretch of time that began at `start` (UTC), in nano-units; `volume` is zero where it
    is not known."""

    start: datetime
    open: int
    high: int
    low: int
    close: int
    volume: float


@dataclass(frozen=True, slots=True)
class SessionPath:
    """One session of a symbol, from its opening to its closing moment (UTC)."""

    opens: datetime
    closes: datetime
    knots: tuple[int, int, int, int]
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
        """The price at a moment; before the open it is the open, after the close the close. In whole cents between
        the known prices (under a dollar in hundredths of one)."""
        spent, length = self._spent(moment)
        third, rest = divmod(3 * spent, length)
        if third >= 3:
            return self.knots[3]
        here, there = self.knots[third], self.knots[third + 1]
        if not rest:
            return here
        exact = here + (there - here) * rest // length
        step = _CENT if exact >= NANO else _CENT // 100
        rounded = (exact + step // 2) // step * step
        return min(max(rounded, min(here, there)), max(here, there))

    def candle(self, start: datetime, end: datetime) -> Candle:
        """What happened from one moment of the session to a later one."""
        start, end = max(start, self.opens), min(end, self.closes)
        (begun, length), (ended, _) = self._spent(start), self._spent(end)
        seen = [
            self.price(start),
            *(self.knots[n] for n in (1, 2) if 3 * begun < n * length < 3 * ended),
            self.price(end),
        ]
        share = (ended - begun) / length
        return Candle(
            start=start, open=seen[0], high=max(seen), low=min(seen), close=seen[-1], volume=self.volume * share
        )

    def _spent(self, moment: datetime) -> tuple[int, int]:
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
