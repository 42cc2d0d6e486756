"""Stamps as vendors write them: days, moments with their zone, epochs; a time without a zone is asked for."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connectors.files.columns import MONTHS
from engine.errors import UsageError

ORDERS = ("ymd", "mdy", "dmy")
"""Orders of year, month and day in a date of figures."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXCEL = date(1899, 12, 30)
"""The day from which spreadsheets count."""
_UNITS = ((10**11, 1), (10**14, 10**3), (10**17, 10**6), (10**20, 10**9))
"""Magnitudes of an epoch up to which it is in seconds, milliseconds, microseconds and nanoseconds, and how many of
them are in a second."""
_FIGURES = re.compile(r"(\d{1,4})\s?([-/. ])\s?(\d{1,2})\s?\2\s?(\d{4}|\d{1,2})(?!\d)\.?(.*)")
_SIGNS = re.compile(r"(\d{4})[年년]\s?(\d{1,2})[月월]\s?(\d{1,2})[日일](.*)")
_NAME = r"(?P<m>[^\W\d_]{3,})\.?"
_YEAR = r"'?(?P<y>\d{4}|\d\d)(?![\d:])"
_NAMED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<d>\d\d?)(?:st|nd|rd|th|\.)?[-/ ]*(?:de )?{_NAME}[-/, ]*(?:de )?{_YEAR}(?P<rest>.*)",
        rf"{_NAME}[-/ ]*(?P<d>\d\d?)(?:st|nd|rd|th)?[-/, ]+{_YEAR}(?P<rest>.*)",
        rf"(?P<y>\d{{4}})[-/. ]*{_NAME}[-/ ]*(?P<d>\d\d?)(?!\d)(?P<rest>.*)",
    )
)
"""Dates with the name of a month."""
_CLOCK = re.compile(
    r"(?:[T ,]|at\b)*(\d{1,2}):(\d\d)(?::(\d\d)(\.\d+)?)?\s*([AaPp])?\.?(?(5)[Mm]\.?)\s*"
    r"(?:(?:UTC|GMT)?\s?([+-]\d\d?):?(\d\d)?|([A-Za-z]+))?"
)
_ZONES = dict.fromkeys(("Z", "UTC", "GMT", "UT"), "Z") | {
    "EST": "-05:00",
    "EDT": "-04:00",
    "MST": "-07:00",
    "MDT": "-06:00",
    "PST": "-08:00",
    "PDT": "-07:00",
}
"""Zones that are written as words; CST is that of Chicago or of China, so it is none."""
_TAIWAN = 1911
"""The year before the first one of three figures."""
_CENTURY = 70
"""Years of two figures are from 1970 to 2069."""


def zone_named(name: str) -> ZoneInfo:
    """A time zone by its name. Raises UsageError for an unknown one."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"--tz {name[:40]} is not a time zone; write one such as America/New_York or UTC") from None


def day_by_order(text: str) -> dict[str, date]:
    """The days that a date of figures may be, by the orders in which there is such a day; none for another stamp, and
    for one whose year comes first in four figures."""
    found = _FIGURES.fullmatch(_normal(text))
    if found is None or len(found[1]) > 2:
        return {}
    return {order: day for order in ORDERS if (day := _day_of(found, order)) is not None}


def iso_stamp(text: str, order: str | None) -> str:
    """A stamp as ISO 8601, whose date may be in figures in an order of ORDERS, or have a month's name; any other as it
    is."""
    with suppress(ValueError):
        datetime.fromisoformat(text)
        return text
    plain = _normal(text)
    day, rest = _dated(plain, order)
    if day is None or not rest.strip(" ,"):
        return text if day is None else day.isoformat()
    found = _CLOCK.fullmatch(rest)
    return (found and _moment(day, found)) or text


def read_stamp(text: str, zone: tzinfo | None) -> date | datetime:
    """A day, or a moment with its zone: `zone` is that of a time that has none, whose midnight is a day.

    Reads ISO 8601, 20250102, RFC 822 and epochs. Raises ValueError with the remedy.
    """
    try:
        found = _parsed(text)
    except (ValueError, OverflowError, TypeError):
        raise ValueError(f"{text[:40]!r} is not a date; write YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ") from None
    if not isinstance(found, datetime) or found.tzinfo is not None:
        return found
    if found.time() == time():
        return found.date()
    if zone is None:
        raise ValueError(f"{text[:40]!r} is a time without a time zone; give one with --tz ZONE, such as UTC")
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


def _normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _day_of(figures: re.Match[str], order: str | None) -> date | None:
    if order is None or (order == "ymd" and len(figures[4]) == 4):
        return None
    parts = dict(zip(order, (figures[1], figures[3], figures[4]), strict=True))
    return _date(parts["y"], parts["m"], parts["d"])


def _date(year: str, month: str, day: str) -> date | None:
    since = {2: 1900 if int(year) >= _CENTURY else 2000, 3: _TAIWAN, 4: 0}.get(len(year))
    try:
        return None if since is None else date(since + int(year), int(month), int(day))
    except ValueError:
        return None


def _dated(text: str, order: str | None) -> tuple[date | None, str]:
    """The day that a stamp begins with, if it can be read, and what stands after it."""
    if found := _FIGURES.fullmatch(text):
        return _day_of(found, "ymd" if len(found[1]) > 2 else order), found[5]
    if found := _SIGNS.fullmatch(text):
        return _date(found[1], found[2], found[3]), found[4]
    # A weekday may stand before it.
    for one in (text, text.partition(" ")[2]):
        for pattern in _NAMED:
            found = pattern.fullmatch(one)
            month = found and next((n for n, names in MONTHS.items() if found["m"].casefold().startswith(names)), None)
            if found and month:
                return _date(found["y"], month, found["d"]), found["rest"]
    return None, ""


def _moment(day: date, found: re.Match[str]) -> str | None:
    """A day and a time of it, with its zone where it has one; None for a zone that is not known."""
    hour, half, word = int(found[1]), (found[5] or "").upper(), (found[8] or "").upper()
    if half:
        hour = hour % 12 + (12 if half == "P" else 0)
    clock = f"{day} {hour:02d}:{found[2]}:{found[3] or '00'}{found[4] or ''}"
    if found[6]:
        return f"{clock}{found[6][0]}{int(found[6][1:]):02d}:{found[7] or '00'}"
    if word == "ET":
        return datetime.fromisoformat(clock).replace(tzinfo=ZoneInfo("America/New_York")).isoformat(" ")
    if not word:
        return clock
    return f"{clock}{_ZONES[word]}" if word in _ZONES else None


def _parsed(text: str) -> date | datetime:
    if re.fullmatch(r"\d{8}(\.0)?", text):
        return date.fromisoformat(text[:8])
    if re.fullmatch(r"\d{9,19}(\.\d+)?", text):
        seconds = float(text) if "." in text else int(text)
        unit = next(unit for most, unit in _UNITS if seconds < most)
        return _EPOCH + timedelta(seconds=seconds / unit)
    if re.fullmatch(r"[234]\d{4}", text):
        return _EXCEL + timedelta(days=int(text))
    if re.match(r"\d{4}[-/]\d\d[-/]\d\d$", text):
        return date.fromisoformat(text.replace("/", "-"))
    if re.match(r"\d{4}", text):
        return datetime.fromisoformat(text.replace("/", "-"))
    return parsedate_to_datetime(text)
