"""FRED as a MacroSource: all vintages that ALFRED, its archive, has of a series."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from connectors.rate_limited_http import HttpError, RateLimitedClient, json_object
from engine.domain.macro import MacroObservation, MacroSeries, end_of_vintage
from engine.errors import ConfigError, CredentialsRefused, MalformedData, MissingData, NetworkError

Row = TypeVar("Row")

KEY_VARIABLE = "FRED_API_KEY"

_SECONDS_BETWEEN = 0.6  # FRED allows 120 requests a minute
_PAGE = 10_000
_ABSENT = "."  # how FRED writes that there is no value
_WITHDRAWN = ("NAPM", "NMF")
"""Prefixes of the ids that the Institute for Supply Management (ISM) published on FRED until 2016."""


class FredMacro:
    """All vintages of FRED's series, each value known from the end of the day of its release.

    Initial claims are ICSA, weekly hours in manufacturing AWHMAN. ISM's supplier deliveries are not on FRED any more:
    put them into the data folder's macro/NAME.csv. One instance belongs to one event loop. Source: TradingGPT [G2]
    (macro variables of the long layer).
    """

    vintages_per_request = 1_000
    """FRED refuses more than 2,000."""

    def __init__(self, api_key: str | None, address: str) -> None:
        """Raise CredentialsRefused without a key."""
        key = (api_key or "").strip()
        if not key:
            raise CredentialsRefused(f"FRED needs a key: set {KEY_VARIABLE} (free at fredaccount.stlouisfed.org)")
        if not (key.isascii() and key.isalnum()):
            raise CredentialsRefused(f"{KEY_VARIABLE} contains characters that no key has; set it again")
        self._key = key
        self._address = address.rstrip("/")
        self.http = RateLimitedClient("FRED", seconds_between=_SECONDS_BETWEEN, timeout=60.0)
        self._hidden = _HideKey(key)
        logging.getLogger("httpx").addFilter(self._hidden)

    async def aclose(self) -> None:
        """Close connections."""
        await self.http.aclose()
        logging.getLogger("httpx").removeFilter(self._hidden)

    async def series(self, name: str) -> MacroSeries:
        """All vintages of a series.

        Raises MissingData for one that FRED does not have, or has without vintages; CredentialsRefused, NetworkError,
        TryAgainLater, MalformedData.
        """
        vintages = await self._pages("series/vintagedates", name, _vintage_dates)
        observations: list[MacroObservation] = []
        for first, last in _windows(vintages, self.vintages_per_request):
            period = {"realtime_start": str(first), "realtime_end": str(last)}
            rows = await self._pages("series/observations", name, _observations, period)
            observations += filter(None, rows)
        if not observations:
            raise MissingData(f"FRED's {name} has no values; choose another series")
        try:
            return MacroSeries.of(name, observations)
        except ValueError as problem:
            raise MalformedData(f"FRED's {name}: {problem}") from None

    async def _pages(
        self, question: str, name: str, read: Callable[[bytes], list[Row]], period: Mapping[str, str] | None = None
    ) -> list[Row]:
        """All rows of a paged response."""
        rows: list[Row] = []
        while True:
            params = {"series_id": name, "file_type": "json", "limit": str(_PAGE), "offset": str(len(rows))}
            params |= {**(period or {}), "api_key": self._key}
            try:
                page = await self.http.get(f"{self._address}/{question}", read, params=params)
            except HttpError as refusal:
                raise self._error_of(refusal, name) from None
            if page is None:
                raise ConfigError(f"no FRED service at {self._address}; correct macro.address")
            rows += page
            if len(page) < _PAGE:
                return rows

    def _error_of(self, refusal: HttpError, name: str) -> Exception:
        message = _message(refusal.text).replace(self._key, "[key]")
        if "api_key" in message or refusal.status in {401, 403}:
            return CredentialsRefused(f"FRED refused the key (HTTP {refusal.status}); check {KEY_VARIABLE}")
        if "does not exist in ALFRED" in message:
            return MissingData(
                f"FRED keeps no vintages of {name}, so point-in-time values are unavailable; choose another series, or "
                f"keep it in macro/{name}.csv"
            )
        if "does not exist" in message:
            where = f"ISM's figures left FRED in 2016; keep them in macro/{name}.csv"
            return MissingData(
                f"FRED has no series {name}; {where if name.startswith(_WITHDRAWN) else 'check macro.series'}"
            )
        return NetworkError(f"FRED refused {name} (HTTP {refusal.status}): {message or 'no reason given'}")


class _HideKey(logging.Filter):
    """A log filter: FRED takes its key in the address, and the HTTP library logs addresses."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                str(arg).replace(self._key, "[key]") if self._key in str(arg) else arg for arg in record.args
            )
        return True


def _windows(vintages: Sequence[date], most: int) -> Iterator[tuple[date, date]]:
    """Real-time periods of at most `most` vintages each.

    Every period begins on a vintage's day, since FRED moves a value known before a period to the period's first day;
    the last one ends with the last vintage.
    """
    for at in range(0, len(vintages), most):
        after = vintages[at + most] - timedelta(days=1) if at + most < len(vintages) else vintages[-1]
        yield vintages[at], after


def _vintage_dates(body: bytes) -> list[date]:
    return [date.fromisoformat(str(day)) for day in _list(body, "vintage_dates")]


def _observations(body: bytes) -> list[MacroObservation | None]:
    """Observations of a page; None for one without a value."""
    try:
        return [_observation(row) for row in _list(body, "observations")]
    except (TypeError, KeyError, InvalidOperation, OverflowError) as error:
        raise ValueError(f"observations in an unexpected format ({type(error).__name__})") from None


def _observation(row: Mapping[str, str]) -> MacroObservation | None:
    if row["value"] == _ABSENT:
        return None
    value, released = Decimal(row["value"]), date.fromisoformat(row["realtime_start"])
    if not value.is_finite():
        raise ValueError(f"value {row['value']!r}")
    return MacroObservation(date.fromisoformat(row["date"]), value, end_of_vintage(released))


def _list(body: bytes, key: str) -> list[Any]:
    rows = json_object(body).get(key)
    if not isinstance(rows, list):
        raise ValueError(f"no {key}")
    return rows


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["error_message"])
    except (ValueError, TypeError, KeyError):
        return " ".join(text.split())[:200]
