"""The leaning of agents' reports, whether a model or a rule wrote them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.agents.chart import ChartReading
from engine.agents.reflections import PerformanceReflection, SignalReflection

_DENIED = r"(?<!\bno )(?<!\bnot )(?<!\bnot yet )(?<!\bno clear )(?<!\bwithout )"
_STRONG = re.compile(rf"{_DENIED}\bstrong(?:ly)?\s+(?P<way>up|down|bullish|bearish|ris|fall|rall)", re.IGNORECASE)
_RISING = re.compile(rf"{_DENIED}\b(?:uptrend|upward|bullish|rising|rally\w*|recovery|higher highs?)\b", re.IGNORECASE)
_FALLING = re.compile(
    rf"{_DENIED}\b(?:downtrend|downward|bearish|falling|pullback|breakdown|lower lows?)\b", re.IGNORECASE
)
_BUY = re.compile(rf"{_DENIED}\b(?:buy|accumulate|go long|bullish cross\w*)\b", re.IGNORECASE)
_SELL = re.compile(rf"{_DENIED}\b(?:sell|take profits?|go short|bearish cross\w*|exit)\b", re.IGNORECASE)
_OVERBOUGHT = re.compile(rf"{_DENIED}\boverbought\b", re.IGNORECASE)
_OVERSOLD = re.compile(rf"{_DENIED}\b(?:oversold|dip)\b", re.IGNORECASE)
_POOR = re.compile(r"\b(?:ineffective|poor\w*|weak\w*|mostly wrong|losing|unprofitable|not effective)\b", re.IGNORECASE)
_GOOD = re.compile(rf"{_DENIED}\b(?:effective|good|well|strong\w*|mostly right|profitable|successful)\b", re.IGNORECASE)
_FALLING_RETURN = re.compile(r"\b(?:falling|declin\w+|negative|downward|dropping)\b", re.IGNORECASE)
_SOLD_EARLY = re.compile(r"\bsold too early|premature\w* s(?:e|o)l|early sell", re.IGNORECASE)
_BOUGHT_EARLY = re.compile(r"\bbought too early|premature\w* b(?:uy|ought)|early buy", re.IGNORECASE)
_MISSED_RISE = re.compile(r"\bmissed (?:a |the )?(?:\w+ )?(?:rise|rally|buy\w*|gain|upside)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChartLeaning:
    """`trend` from about -4 to 4, `signal` buys less sells of the three readings, and the number of readings that
    call the price overbought or oversold."""

    trend: int = 0
    signal: int = 0
    overbought: int = 0
    oversold: int = 0


@dataclass(frozen=True, slots=True)
class Lessons:
    """The lessons of reflections: `caution` above 0 asks for smaller trades, below for larger ones; the others are
    mistakes to avoid."""

    caution: int = 0
    sells_too_early: bool = False
    buys_too_early: bool = False
    misses_rises: bool = False


def of_chart(reading: ChartReading | None) -> ChartLeaning:
    """The leaning of a chart reading."""
    if reading is None:
        return ChartLeaning()
    readings = [read for read in (reading.macd, reading.kdj_rsi, reading.bollinger) if read is not None]
    both = [f"{read.trend} {read.signal}" for read in readings]
    return _leaning([read.trend for read in readings], [read.signal for read in readings], both)


def of_words(texts: Sequence[str]) -> ChartLeaning:
    """The leaning of sentences about the price."""
    return _leaning(texts, texts, texts)


def of_reflections(
    short: PerformanceReflection | None, medium: PerformanceReflection | None, signals: SignalReflection | None
) -> Lessons:
    """The lessons of the reflections. The short term counts double, because it is the more recent."""
    caution = 2 * _caution(short) + _caution(medium)
    if signals is None:
        return Lessons(caution)
    return of_mistakes(signals.missed, caution + _poor_or_good(signals.effectiveness))


def of_mistakes(mistakes: Sequence[str], caution: int = 0) -> Lessons:
    """The lessons of named mistakes."""
    text = " ".join(mistakes)
    return Lessons(
        caution,
        _SOLD_EARLY.search(text) is not None,
        _BOUGHT_EARLY.search(text) is not None,
        _MISSED_RISE.search(text) is not None,
    )


def _leaning(trends: Sequence[str], signals: Sequence[str], texts: Sequence[str]) -> ChartLeaning:
    return ChartLeaning(
        sum(_direction(text) for text in trends),
        sum(_hit(_BUY, text) - _hit(_SELL, text) for text in signals),
        sum(_hit(_OVERBOUGHT, text) for text in texts),
        sum(_hit(_OVERSOLD, text) for text in texts),
    )


def _caution(reflection: PerformanceReflection | None) -> int:
    if reflection is None:
        return 0
    return _poor_or_good(reflection.effectiveness) + _hit(_FALLING_RETURN, reflection.return_trend)


def _poor_or_good(text: str) -> int:
    return 1 if _POOR.search(text) else -1 if _GOOD.search(text) else 0


def _direction(text: str) -> int:
    strong = _STRONG.search(text)
    if strong is not None:
        return 2 if strong["way"].lower() in ("up", "bullish", "ris", "rall") else -2
    return _hit(_RISING, text) - _hit(_FALLING, text)


def _hit(pattern: re.Pattern[str], text: str) -> int:
    return 1 if pattern.search(text) else 0
