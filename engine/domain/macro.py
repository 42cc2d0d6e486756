"""Macro series with all vintages: figures are revised, and a decision may see only those of its own day."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

_MIDNIGHT_IN_ST_LOUIS = time(6, tzinfo=UTC)  # in summer an hour after it
_A_YEAR = timedelta(days=364)  # 52 weeks; of monthly figures it finds the same month

TITLES = {
    "ICSA": "Initial claims for unemployment insurance",
    "AWHMAN": "Average weekly hours in manufacturing",
    "ISM_DELIVERIES": "Supplier deliveries, ISM services index",
}
"""Titles of the series of TradingGPT; FRED has not the last one, so it is imported. Source: TradingGPT §4.1.1 [G2]."""


@dataclass(frozen=True, slots=True)
class MacroObservation:
    """A value of a series for one period.

    `date` is the period's day (FRED's convention: its first, for weekly claims the week's last). `known_from` (UTC) is
    the time from which the value could be known; a revision is an observation of the same date with a later
    `known_from`.
    """

    date: date
    value: Decimal
    known_from: datetime


@dataclass(frozen=True, slots=True)
class MacroRelease:
    """A new figure of a series as a sentence; visible from `available_at` (UTC)."""

    id: str
    series: str
    date: date
    available_at: datetime
    summary: str


@dataclass(frozen=True, slots=True)
class MacroSeries:
    """All vintages of a series, ordered by date and then by `known_from`; made by `MacroSeries.of`.

    `moments` are the times at which a value became known, in order.
    """

    name: str
    observations: tuple[MacroObservation, ...]
    moments: tuple[datetime, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "moments", tuple(sorted({item.known_from for item in self.observations})))

    @classmethod
    def of(cls, name: str, observations: Iterable[MacroObservation]) -> MacroSeries:
        """Build a series from observations in any order. A vintage that repeats the value before it is left out.

        Raises ValueError where two values of one date became known at once.
        """
        kept: list[MacroObservation] = []
        seen: dict[tuple[date, datetime], Decimal] = {}
        for item in sorted(observations, key=lambda o: (o.date, o.known_from)):
            if seen.setdefault((item.date, item.known_from), item.value) != item.value:
                raise ValueError(f"{item.date} has two values known from {item.known_from}; keep one of them")
            if not kept or (kept[-1].date, kept[-1].value) != (item.date, item.value):
                kept.append(item)
        return cls(name, tuple(kept))

    def known_at(self, moment: datetime) -> MacroObservation | None:
        """The latest observation known at a moment, or None."""
        known = (item for item in self.observations if item.known_from <= moment)
        return max(known, key=lambda item: (item.date, item.known_from), default=None)

    def history_at(self, moment: datetime) -> tuple[MacroObservation, ...]:
        """One observation per date as known at a moment, oldest first."""
        latest = {item.date: item for item in self.observations if item.known_from <= moment}
        return tuple(latest.values())

    def cut(self, moment: datetime) -> MacroSeries:
        """The series without observations that became known later."""
        return replace(self, observations=tuple(o for o in self.observations if o.known_from <= moment))

    def release(self, after: datetime | None, until: datetime) -> MacroRelease | None:
        """The release of the latest figure at `until`, where it differs from the latest one at `after` (None: any
        figure).

        A revision of older figures alone is no release.
        """
        known = bisect_right(self.moments, until)
        if not known or (after is not None and bisect_right(self.moments, after) == known):
            return None
        shown = self.history_at(until)
        latest = shown[-1]
        if after is not None and self.known_at(after) == latest:
            return None
        name = f"{self.name} {latest.date} {latest.known_from:%Y-%m-%d}"
        return MacroRelease(name, self.name, latest.date, latest.known_from, _summary(self, shown))


def _summary(series: MacroSeries, shown: tuple[MacroObservation, ...]) -> str:
    """The last figure with its change against the previous one and against a year before."""
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
    """The time (UTC) from which a value is surely known, where only the day of its release is known.

    Most releases come in the morning, but some after the stock market's close. So a day's values count from the end of
    the day at FRED's place and reach the next decision, never one too early.
    """
    return datetime.combine(day + timedelta(days=1), _MIDNIGHT_IN_ST_LOUIS)
