"""How the sandbox writes what Alpaca writes: times as text, JSON documents, and refusals with their codes."""

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


class Refusal(Exception):
    """An answer that is no: an HTTP status and Alpaca's error body. `extra` are the figures that some bodies add."""

    def __init__(self, status: int, code: int | None, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = ({} if code is None else {"code": code}) | {"message": message} | extra


def invalid(message: str) -> Refusal:
    """The answer to a request that means nothing, or that uses an id a second time."""
    return Refusal(422, 40010001, message)


def denied(message: str, **extra: Any) -> Refusal:
    """The answer to an order that the account may not have: funds, shares, a wash trade, a block."""
    return Refusal(403, 40310000, message, **extra)


def not_found(message: str) -> Refusal:
    """The answer to an id that does not exist."""
    return Refusal(404, 40410000, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request; `query` holds the last value of each name, `parts` what the route's pattern matched."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    parts: dict[str, str] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """The body, which has to be a JSON object; numbers with a point stay exact. Raises Refusal."""
        try:
            document = json.loads(self.body or b"{}", parse_float=Decimal)
        except ValueError:
            raise Refusal(400, 40010000, "request body format is invalid") from None
        if not isinstance(document, dict):
            raise Refusal(400, 40010000, "request body format is invalid")
        return document

    def number(self, name: str, default: int, most: int) -> int:
        """A whole number of the query from 1 to `most`. Raises Refusal."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
            raise invalid(f"invalid {name}: it has to be between 1 and {most}")
        return int(text)

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        """A word of the query. Raises Refusal."""
        word = self.query.get(name) or default
        if word.lower() not in choices:
            raise invalid(f"invalid {name}: {word}")
        return word.lower()

    def words(self, name: str) -> list[str]:
        """A list of the query, written with commas."""
        return [word for word in self.query.get(name, "").split(",") if word]

    def moment(self, name: str, *, end_of_day: bool = False) -> datetime | None:
        """A date or a moment of the query, as `moment_of` reads it."""
        text = self.query.get(name)
        return moment_of(text, name, end_of_day=end_of_day) if text else None

    def day(self, name: str) -> date | None:
        """A date of the query; of a moment the date that it names. Raises Refusal."""
        text = self.query.get(name)
        if not text:
            return None
        try:
            return date.fromisoformat(text[:10])
        except ValueError:
            raise invalid(f"invalid {name}: {text[:40]}") from None


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP answer; `document` is written as JSON, None as no body at all."""

    status: int
    document: Any = None


def moment_of(text: str, name: str, *, end_of_day: bool = False) -> datetime:
    """A moment (RFC 3339; without an offset it is UTC) in UTC; a bare date is its beginning, or its last moment.
    Raises Refusal."""
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
    """As `stamp`; None stays None."""
    return None if moment is None else stamp(moment)


def eastern(moment: datetime) -> str:
    """RFC 3339 with New York's offset, as the market clock writes it."""
    return moment.astimezone(NEW_YORK).isoformat()


def identity(*names: object) -> str:
    """A UUID that is always the same for the same names."""
    return str(uuid5(_NAMESPACE, "/".join(map(str, names))))


def encoded(document: Any) -> bytes:
    """A JSON document in UTF-8; moments are written as `stamp` does."""
    return json.dumps(document, default=_plain, allow_nan=False, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} is no part of a JSON document")
