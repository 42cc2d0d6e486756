"""Building blocks of Alpaca's protocol: requests, responses, times as text, JSON, and errors with their codes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

NEW_YORK = ZoneInfo("America/New_York")
_NAMESPACE = UUID("6e1b7f42-6a4e-5a3b-9d5e-2f8c3a1d7b60")
_STEP = timedelta(microseconds=1)


class ApiError(Exception):
    """An error response: an HTTP status and Alpaca's error body. `extra` are the figures that some bodies add."""

    def __init__(self, status: int, code: int | None, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = ({} if code is None else {"code": code}) | {"message": message} | extra


def invalid(message: str) -> ApiError:
    """The error for an invalid request, or for an id used twice."""
    return ApiError(422, 40010001, message)


def forbidden(message: str, **extra: Any) -> ApiError:
    """The error for an order that the account may not place: funds, shares, a wash trade, a block."""
    return ApiError(403, 40310000, message, **extra)


def not_found(message: str) -> ApiError:
    """The error for an unknown id."""
    return ApiError(404, 40410000, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request.

    query: the last value of each name.
    parts: values of the route's pattern.
    """

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    parts: dict[str, str] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """The body as a JSON object; numbers with a point stay exact. Raises ApiError."""
        try:
            document = json.loads(self.body or b"{}", parse_float=Decimal)
        except ValueError:
            raise ApiError(400, 40010000, "request body format is invalid") from None
        if not isinstance(document, dict):
            raise ApiError(400, 40010000, "request body format is invalid")
        return document

    def number(self, name: str, default: int, most: int) -> int:
        """A whole number of the query from 1 to `most`. Raises ApiError."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
            raise invalid(f"invalid {name}: it has to be between 1 and {most}")
        return int(text)

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        """A value of the query from a list, in lower case. Raises ApiError."""
        word = self.query.get(name) or default
        if word.lower() not in choices:
            raise invalid(f"invalid {name}: {word}")
        return word.lower()

    def values(self, name: str) -> list[str]:
        """A list of the query, written with commas."""
        return [word for word in self.query.get(name, "").split(",") if word]

    def moment(self, name: str, *, end_of_day: bool = False) -> datetime | None:
        """A date or time of the query, as `moment_of` reads it."""
        text = self.query.get(name)
        return moment_of(text, name, end_of_day=end_of_day) if text else None

    def day(self, name: str) -> date | None:
        """A date of the query, or that of a time. Raises ApiError."""
        text = self.query.get(name)
        if not text:
            return None
        try:
            return date.fromisoformat(text[:10])
        except ValueError:
            raise invalid(f"invalid {name}: {text[:40]}") from None


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response; `document` is written as JSON, None as no body at all."""

    status: int
    document: Any = None


def moment_of(text: str, name: str, *, end_of_day: bool = False) -> datetime:
    """A time (RFC 3339; without an offset it is UTC) in UTC; a bare date is its beginning, or its last moment. Raises
    ApiError."""
    try:
        if len(text) == 10:
            day = datetime.combine(date.fromisoformat(text), time(0, tzinfo=UTC))
            return day + timedelta(days=1) - _STEP if end_of_day else day
        moment = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        raise invalid(f"invalid {name}: {text[:40]}") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def stamp(moment: datetime) -> str:
    """RFC 3339 in UTC, with as many decimals of a second as there are."""
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{text.rstrip('0') if '.' in text else text}Z"


def stamp_or_none(moment: datetime | None) -> str | None:
    """RFC 3339 in UTC; None stays None."""
    return None if moment is None else stamp(moment)


def new_york_time(moment: datetime) -> str:
    """RFC 3339 with New York's offset, as of the market clock."""
    return moment.astimezone(NEW_YORK).isoformat()


def stable_id(*names: object) -> str:
    """A UUID that is always the same for the same names."""
    return str(uuid5(_NAMESPACE, "/".join(map(str, names))))


def to_json(document: Any) -> bytes:
    """A JSON document in UTF-8; times are written as by `stamp`."""
    return json.dumps(document, default=_plain, allow_nan=False, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} is no part of a JSON document")
