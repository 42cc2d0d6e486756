"""Macro series of the demo market: weekly claims and monthly hours, each figure published and revised once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal

from connectors.demo.price_path import FactorMove
from connectors.demo.seeded_random import SeededRandom
from engine.domain.macro import MacroObservation, MacroSeries, end_of_vintage

CLAIMS, HOURS = "ICSA", "AWHMAN"
SERIES = (CLAIMS, HOURS)
"""Initial claims and average weekly hours in manufacturing, under their FRED ids. Source: TradingGPT §4.1.1 [G2]."""

_MILLION = 1_000_000
_MOOD = 60  # sessions over which the market's mood shows in the economy
_WEEK = timedelta(days=7)


def economy(
    seed: int, name: str, epoch: date, through: date, *, sessions: Sequence[int], moves: Sequence[FactorMove]
) -> MacroSeries:
    """A series of the seed as published through a day; a later day adds to it and changes nothing.

    `moves` are the market factor's, over sessions given as ordinals: an economy does worse while its market falls.
    """

    def mood(day: date) -> int:
        """The market's move of the last sessions before a day, in parts per million, within a third of all."""
        stop = bisect_right(sessions, day.toordinal())
        moved = sum(move.overnight + move.intraday for move in moves[max(0, stop - _MOOD) : stop])
        return max(-_MILLION // 3, min(_MILLION // 3, moved))

    published = _claims if name == CLAIMS else _hours
    days = published(seed, epoch, through, mood)
    return MacroSeries.of(name, (item for item in days if item.known_from <= end_of_vintage(through)))


def _claims(seed: int, epoch: date, through: date, mood: Callable[[date], int]) -> Iterator[MacroObservation]:
    """Claims of the weeks that end on Saturdays: published on the Thursday after, revised a week later."""
    day = epoch + timedelta(days=(5 - epoch.weekday()) % 7)
    level = 225_000
    while day <= through:
        random = SeededRandom(seed, CLAIMS, day.toordinal())
        usual = 225_000 - mood(day) * 180_000 // _MILLION
        level += (usual - level) // 8 + random.normal() * 6_500 // 1000
        level = max(level, 150_000)
        first = level + random.normal() * 1_500 // 1000
        out = day + timedelta(days=5)
        yield MacroObservation(day, Decimal(first // 1000 * 1000), end_of_vintage(out))
        yield MacroObservation(day, Decimal(level // 1000 * 1000), end_of_vintage(out + _WEEK))
        day += _WEEK


def _hours(seed: int, epoch: date, through: date, mood: Callable[[date], int]) -> Iterator[MacroObservation]:
    """Hours of a month: published on the first Friday of the next one, revised a month later."""
    month = epoch.replace(day=1)
    level = 4_070  # hundredths of an hour
    while month <= through:
        following = _next_month(month)
        random = SeededRandom(seed, HOURS, month.toordinal())
        usual = 4_070 + mood(following) * 180 // _MILLION
        level += (usual - level) // 4 + random.normal() * 12 // 1000
        first = level + random.normal() * 6 // 1000
        yield MacroObservation(month, _tenths(first), end_of_vintage(_first_friday(following)))
        yield MacroObservation(month, _tenths(level), end_of_vintage(_first_friday(_next_month(following))))
        month = following


def _tenths(hundredths: int) -> Decimal:
    return Decimal((hundredths + 5) // 10).scaleb(-1)


def _next_month(month: date) -> date:
    return (month + timedelta(days=31)).replace(day=1)


def _first_friday(month: date) -> date:
    return month + timedelta(days=(4 - month.weekday()) % 7)
