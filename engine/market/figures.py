"""Figures of the price that every decision is given: it may quote only what it was given.

Price moves: session by session, over fixed horizons, and as momentum.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from math import isnan, log

from engine.domain.market import NANO, PriceHistory, from_nano
from engine.market.indicators import Floats, atr, prices, rsi

SPANS = (1, 5, 20)
"""Sessions of the changes: a day, a week and a month of trading."""


@dataclass(frozen=True, slots=True)
class PriceFigures:
    """The last close, its change over 1, 5 and 20 sessions as far as the bars reach, and over 14 sessions the RSI
    (0 to 100) and the average true range; None where there are too few bars. Prices in the quote currency. `session` is
    that of the last close."""

    close: Decimal
    moves: tuple[PriceMove, ...] = ()
    rsi: float | None = None
    atr: Decimal | None = None
    session: date | None = None


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
        session=bars.session(last),
    )


def _last(values: Floats) -> float | None:
    value = float(values[-1])
    return None if isnan(value) else value


HORIZONS = (1, 7, 14)
"""Sessions of the short, the medium and the long horizon. Source: FinAgent appendix C [A4]."""
MOMENTUM_SESSIONS = 3
"""Source: InvestorBench appendix D [I5]."""


@dataclass(frozen=True, slots=True)
class PriceMove:
    """Change of the close over a horizon in sessions, as a fraction of the first close.

    With `hindsight` it is the move that followed, which only training may show; otherwise the move up to now.
    """

    horizon_days: int
    change: float
    hindsight: bool = False


@dataclass(frozen=True, slots=True)
class SessionMove:
    """One session's close in the quote currency and its change from the close before, as a fraction."""

    session: date
    close: float
    change: float


def moves_up_to(bars: PriceHistory) -> tuple[PriceMove, ...]:
    """Moves up to the last bar, one per horizon within the bars."""
    last = len(bars) - 1
    return tuple(
        PriceMove(span, bars.close[last] / bars.close[last - span] - 1) for span in HORIZONS if 0 < span <= last
    )


def moves_after(bars: PriceHistory, session: date) -> tuple[PriceMove, ...]:
    """Moves after a session, marked as hindsight, one per horizon within the bars; none without a bar of the session.

    For training alone. Source: FinAgent appendix C [A9].
    """
    row = bars.index(session)
    if row is None:
        return ()
    return tuple(
        PriceMove(span, bars.close[row + span] / bars.close[row] - 1, hindsight=True)
        for span in HORIZONS
        if 0 < span < len(bars) - row
    )


def last_sessions(bars: PriceHistory, count: int = 5) -> tuple[SessionMove, ...]:
    """The last sessions with one before them, oldest first."""
    rows = range(max(1, len(bars) - count), len(bars))
    closes = bars.close
    return tuple(SessionMove(bars.session(n), closes[n] / NANO, closes[n] / closes[n - 1] - 1) for n in rows)


def momentum(bars: PriceHistory) -> float | None:
    """The cumulative log return of the last sessions; None where there are too few. Source: InvestorBench A.1 [I5]."""
    if len(bars) <= MOMENTUM_SESSIONS:
        return None
    return log(bars.close[-1] / bars.close[-1 - MOMENTUM_SESSIONS])
