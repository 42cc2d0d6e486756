"""Figures of the economy with when each became known: they are revised, and a decision may see only its own day's
vintage."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

_MIDNIGHT_IN_ST_LOUIS = time(6, tzinfo=UTC)  # in summer an hour after it
_A_YEAR = timedelta(days=364)  # 52 weeks; of monthly figures it finds the same month

TITLES = {"ICSA": "Initial claims for unemployment insurance", "AWHMAN": "Average weekly hours in manufacturing"}
"""What the series are called that are read unless others are chosen. Source: TradingGPT §4.1.1 [G2]."""


@dataclass(frozen=True, slots=True)
class MacroObservation:
    """What a series said of one period. `date` is the period's day (FRED's convention: its first, for weekly claims
    the week's last), `known_from` (UTC) when this value could first be known: a revision is an observation of the
    same date with a later `known_from`."""

    date: date
    value: Decimal
    known_from: datetime


@dataclass(frozen=True, slots=True)
class MacroRelease:
    """What a series said when it last said something new, in a sentence; visible from `available_at` (UTC)."""

    id: str
    series: str
    date: date
    available_at: datetime
    summary: str


@dataclass(frozen=True, slots=True)
class MacroSeries:
    """All vintages of a series, ordered by date and then by when they became known; see `MacroSeries.of`. `moments`
    are those at which anything became known, in order."""

    name: str
    observations: tuple[MacroObservation, ...]
    moments: tuple[datetime, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "moments", tuple(sorted({item.known_from for item in self.observations})))

    @classmethod
    def of(cls, name: str, observations: Iterable[MacroObservation]) -> MacroSeries:
        """A series from observations in any order; a vintage that repeats the value before it says nothing new and is
        left out. Raises ValueError where two values of one date became known at once."""
        kept: list[MacroObservation] = []
        seen: dict[tuple[date, datetime], Decimal] = {}
        for item in sorted(observations, key=lambda o: (o.date, o.known_from)):
            if seen.setdefault((item.date, item.known_from), item.value) != item.value:
                raise ValueError(f"{item.date} has two values known from {item.known_from}; keep one of them")
            if not kept or (kept[-1].date, kept[-1].value) != (item.date, item.value):
                kept.append(item)
        return cls(name, tuple(kept))

    def known_at(self, moment: datetime) -> MacroObservation | None:
        """The latest observation as it stood at a moment, or None where nothing was known yet."""
        known = (item for item in self.observations if item.known_from <= moment)
        return max(known, key=lambda item: (item.date, item.known_from), default=None)

    def history_at(self, moment: datetime) -> tuple[MacroObservation, ...]:
        """One observation per date, as the whole series stood at a moment, oldest first."""
        latest = {item.date: item for item in self.observations if item.known_from <= moment}
        return tuple(latest.values())

    def cut(self, moment: datetime) -> MacroSeries:
        """The series with everything removed that became known later."""
        return replace(self, observations=tuple(o for o in self.observations if o.known_from <= moment))

    def release(self, after: datetime | None, until: datetime) -> MacroRelease | None:
        """What the series says at a moment, where its latest figure is another than it was `after` a moment before
        (None: whatever it is); a revision of older figures alone is no news."""
        known = bisect_right(self.moments, until)
        if not known or (after is not None and bisect_right(self.moments, after) == known):
            return None
        shown = self.history_at(until)
        latest = shown[-1]
        if after is not None and self.known_at(after) == latest:
            return None
        name = f"{self.name} {latest.date} {latest.known_from:%Y-%m-%d}"
        return MacroRelease(name, self.name, latest.date, latest.known_from, _told(self, shown))


def _told(series: MacroSeries, shown: tuple[MacroObservation, ...]) -> str:
    """The last figure with its change against the one before and against a year before."""
    latest = shown[-1]
    title = TITLES.get(series.name)
    parts = [f"{f'{title} ({series.name})' if title else series.name}: {latest.value:f} for {latest.date}"]
    if len(shown) > 1:
        parts.append(f"{_against(latest, shown[-2])} before")
    year_ago = next((o for o in reversed(shown) if o.date <= latest.date - _A_YEAR), None)
    if year_ago is not None:
        parts.append(f"{_against(latest, year_ago)} a year before")
    first = next(o for o in series.observations if o.date == latest.date)
    if first != latest:
        parts.append(f"revised from {first.value:f}")
    return ", ".join(parts) + "."


def _against(latest: MacroObservation, other: MacroObservation) -> str:
    change = latest.value - other.value
    moved = f"{change:+f}" if other.value <= 0 else f"{change / other.value * 100:+.2f}%"
    return f"{moved} against {other.value:f}"


def end_of_vintage(day: date) -> datetime:
    """When a value is surely known of which only the day is known on which it came out (UTC).

    Most releases come in the morning, but some are posted after the stock market's close; so a day's values count
    from the end of the day at FRED's place and reach the next decision, never one too early.
    """
    return datetime.combine(day + timedelta(days=1), _MIDNIGHT_IN_ST_LOUIS)
