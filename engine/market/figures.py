"""Figures of the price that every decision is given: it may quote only what it was given."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import isnan

from engine.domain.market import PriceHistory, from_nano
from engine.market.indicators import Floats, atr, prices, rsi
from engine.market.moves import PriceMove

SPANS = (1, 5, 20)
"""Sessions of the changes: a day, a week and a month of trading."""


@dataclass(frozen=True, slots=True)
class PriceFigures:
    """The last close, its change over 1, 5 and 20 sessions as far as the bars reach, and over 14 sessions the RSI
    (0 to 100) and the average true range; None where there are too few bars. Prices in the quote currency."""

    close: Decimal
    moves: tuple[PriceMove, ...] = ()
    rsi: float | None = None
    atr: Decimal | None = None


@lru_cache(maxsize=2)
def price_figures(bars: PriceHistory) -> PriceFigures:
    """The figures after the last bar; cached for the last bars, because owners share them."""
    high, low, close = prices(bars.high), prices(bars.low), prices(bars.close)
    last = len(bars) - 1
    moves = tuple(PriceMove(n, bars.close[last] / bars.close[last - n] - 1) for n in SPANS if n <= last)
    swing = _last(atr(high, low, close))
    return PriceFigures(
        close=from_nano(bars.close[last]),
        moves=moves,
        rsi=_last(rsi(close)),
        atr=None if swing is None else Decimal(f"{swing:.9f}"),
    )


def _last(values: Floats) -> float | None:
    value = float(values[-1])
    return None if isnan(value) else value
