"""Stamps as vendors write them: days, moments with their zone, epochs; a time without a zone is asked for."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from engine.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((10**11, 1), (10**14, 10**3), (10**17, 10**6), (10**20, 10**9))
"""Magnitudes of an epoch up to which it is in seconds, milliseconds, microseconds and nanoseconds, and how many of
them are in a second."""


def zone_named(name: str) -> ZoneInfo:
    """A time zone by its name. Raises UsageError for an unknown one."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"--tz {name[:40]} is no time zone; write one such as America/New_York or UTC") from None


def read_stamp(text: str, zone: tzinfo | None) -> date | datetime:
    """A day, or a moment with its zone: `zone` is that of a time that has none, whose midnight is a day.

    Reads ISO 8601, 20250102, RFC 822 and epochs. Raises ValueError with the remedy.
    """
    try:
        found = _parsed(text)
    except (ValueError, OverflowError, TypeError):
        raise ValueError(f"{text[:40]!r} is no date; write YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ") from None
    if not isinstance(found, datetime) or found.tzinfo is not None:
        return found
    if found.time() == time():
        return found.date()
    if zone is None:
        raise ValueError(f"{text[:40]!r} is a time without a zone; say which it is in with --tz ZONE, such as UTC")
    return found.replace(tzinfo=zone)


def stamp_text(text: str, zone: tzinfo | None) -> str:
    """A stamp as the data folder has it: YYYY-MM-DD, or a time in UTC; one that is written so already stays. Raises
    ValueError."""
    found = read_stamp(text, zone)
    if not isinstance(found, datetime):
        return found.isoformat()
    if re.match(r"\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$", text):
        return text
    return f"{found.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


def session_of(stamp: date | datetime, zone: tzinfo) -> date:
    """The day that a daily bar's stamp means: midnight as written is that day, any other moment its day in the zone of
    the market (midnight in Tokyo is 15:00 UTC of the day before)."""
    if not isinstance(stamp, datetime):
        return stamp
    return stamp.date() if stamp.time() == time() else stamp.astimezone(zone).date()


def _parsed(text: str) -> date | datetime:
    if re.fullmatch(r"\d{8}", text):
        return date.fromisoformat(text)
    if re.fullmatch(r"\d{9,19}(\.\d+)?", text):
        seconds = float(text) if "." in text else int(text)
        unit = next(unit for most, unit in _UNITS if seconds < most)
        return _EPOCH + timedelta(seconds=seconds / unit)
    if re.match(r"\d{4}[-/]\d\d[-/]\d\d$", text):
        return date.fromisoformat(text.replace("/", "-"))
    if re.match(r"\d{4}", text):
        return datetime.fromisoformat(text.replace("/", "-"))
    return parsedate_to_datetime(text)
