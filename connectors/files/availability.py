"""Availability of a news item or a filing, from the dates and times in its file."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from engine.domain.market import Symbol, is_crypto
from engine.ports import Calendar

_END_OF_DAY = time(23, 59, 59, 999_000, tzinfo=UTC)


class Availability:
    """Times (UTC) from which one symbol's items may be seen."""

    def __init__(self, symbol: Symbol, calendar: Calendar) -> None:
        self._crypto = is_crypto(symbol)
        self._calendar = calendar
        self._known: dict[date, datetime] = {}

    def of(self, stamp: date | datetime) -> datetime:
        """A time is itself; a date is the close of its session, on a day without one the day's end, for crypto the next
        midnight.

        So a dated item reaches the next decision. All in UTC.
        """
        if isinstance(stamp, datetime):
            return stamp
        if stamp not in self._known:
            self._known[stamp] = self._end_of(stamp)
        return self._known[stamp]

    def _end_of(self, day: date) -> datetime:
        if self._crypto:
            return datetime.combine(day, time(0, tzinfo=UTC)) + timedelta(days=1)
        if self._calendar.sessions(day, day):
            return self._calendar.closes_at(day)
        return datetime.combine(day, _END_OF_DAY)


def parse_stamp(text: str) -> date | datetime:
    """A date (YYYY-MM-DD), or a time (ISO 8601; UTC without an offset) converted to UTC. Raises ValueError with the
    remedy."""
    try:
        if len(text) < 10 or text[4] != "-" or text[7] != "-":
            raise ValueError
        if len(text) == 10:
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is no date; write YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ") from None


def parse_time(day: date, text: str) -> datetime:
    """The UTC time of a time of day (HH:MM, HH:MM:SS, UTC without an offset) on a date. Raises ValueError with the
    remedy."""
    try:
        moment = datetime.combine(day, time.fromisoformat(text))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is no time of day; write HH:MM:SS, or null") from None
