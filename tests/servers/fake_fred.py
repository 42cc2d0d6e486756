"""FRED and its archive on loopback: invented series, cut to the asked real-time period as FRED cuts them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from tests.servers.fake_web import Asked, FakeWeb, Page, fake_web

KEY = "abcdefghijklmnopqrstuvwxyz123456"
FOR_EVER = "9999-12-31"


@dataclass(frozen=True)
class Release:
    """On a day, a series' value of a date came out, new or revised; None where it was withdrawn to a point."""

    day: date
    date: date
    value: str


Archive = Mapping[str, Sequence[Release]]

CLAIMS = (
    Release(date(2023, 6, 1), date(2023, 5, 27), "232000"),
    Release(date(2023, 6, 8), date(2023, 5, 27), "233000"),
    Release(date(2023, 6, 8), date(2023, 6, 3), "261000"),
    Release(date(2023, 6, 15), date(2023, 6, 3), "262000"),
    Release(date(2023, 6, 15), date(2023, 6, 10), "262000"),
)
HOURS = (
    Release(date(2023, 6, 2), date(2023, 5, 1), "40.1"),
    Release(date(2023, 7, 7), date(2023, 5, 1), "40.2"),
    Release(date(2023, 7, 7), date(2023, 6, 1), "."),
)


def _rows(releases: Sequence[Release], start: str, end: str) -> list[dict[str, str]]:
    """Observations by real-time period, the periods cut to the asked one."""
    rows = []
    for day in sorted({one.date for one in releases}):
        versions = sorted((one for one in releases if one.date == day), key=lambda one: one.day)
        for at, one in enumerate(versions):
            last = versions[at + 1].day - timedelta(days=1) if at + 1 < len(versions) else None
            known, until = one.day.isoformat(), FOR_EVER if last is None else last.isoformat()
            if known <= end and until >= start:
                row = {"realtime_start": max(known, start), "realtime_end": min(until, end)}
                rows.append({**row, "date": day.isoformat(), "value": one.value})
    return rows


def _refused(message: str) -> Page:
    return Page(body=json.dumps({"error_code": 400, "error_message": f"Bad Request.  {message}"}).encode(), status=400)


@contextmanager
def fake_fred(archive: Archive | None = None, most_vintages: int = 2000) -> Iterator[FakeWeb]:
    """The service with these series; `CURRENT` is on FRED but has no archive."""
    series: Archive = {"ICSA": CLAIMS, "AWHMAN": HOURS} if archive is None else archive

    def answer(asked: Asked) -> Page:
        query = asked.query
        if query.get("api_key") != KEY:
            return _refused("The value for variable api_key is not registered.")
        name = query["series_id"]
        if name == "CURRENT":
            return _refused("The series does not exist in ALFRED but may exist in FRED.")
        if name not in series:
            return _refused("The series does not exist.")
        days = sorted({one.day.isoformat() for one in series[name]})
        limit, offset = int(query["limit"]), int(query["offset"])
        found: list[Any] = days
        if asked.path == "/fred/series/observations":
            start, end = query["realtime_start"], query["realtime_end"]
            inside = sum(start <= day <= end for day in days)
            if inside > most_vintages:
                return _refused(
                    f"There are {inside} vintage dates in the specified real-time period: {start} to {end}.  "
                    f"This exceeds the maximum number of vintage dates allowed ({most_vintages})."
                )
            found = _rows(series[name], start, end)
            key = "observations"
        elif asked.path == "/fred/series/vintagedates":
            key = "vintage_dates"
        else:
            return Page(body=b"not found", status=404)
        return Page(body=json.dumps({"count": len(found), key: found[offset : offset + limit]}).encode())

    with fake_web(answer) as web:
        yield web
