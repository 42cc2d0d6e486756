"""Building blocks of Alpaca's protocol: requests and their routing, times as text, JSON, page tokens, error codes."""

from __future__ import annotations

import json
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

from engine.domain.text import plain
from engine.program_files import program_text

NEW_YORK = ZoneInfo("America/New_York")
INSTANT = timedelta(microseconds=1)
"""The smallest step of time."""
FIXED_FIELDS: Mapping[str, dict[str, Any]] = json.loads(program_text(Path(__file__).with_name("fixed_fields.json")))
"""Fields that Alpaca always sends and that never change here, and the configurations of a new account."""

_NAMESPACE = UUID("6e1b7f42-6a4e-5a3b-9d5e-2f8c3a1d7b60")


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
        value = self.query.get(name) or default
        if value.lower() not in choices:
            raise invalid(f"invalid {name}: {value}")
        return value.lower()

    def newest_first(self, name: str, default: str) -> bool:
        """True where a part of the query requests descending order. Raises ApiError."""
        return self.choice(name, default, ("asc", "desc")) == "desc"

    def values(self, name: str) -> list[str]:
        """A list of the query, written with commas."""
        return [value for value in self.query.get(name, "").split(",") if value]

    def page_token(self) -> list[str] | None:
        """The texts of the query's token, as `page_token` encoded them; None where it has none. Raises ApiError."""
        text = self.query.get("page_token")
        if not text:
            return None
        try:
            parts = b64decode(text, altchars=b"-_", validate=True).decode().split("\x1f")
        except ValueError:
            raise invalid("invalid page_token") from None
        return [*parts, ""]

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


Handler = Callable[[Request], Any]
H = TypeVar("H", bound=Callable[..., Any])


def route(method: str, *patterns: str, status: int = 200) -> Callable[[H], H]:
    """Mark a method as the handler of requests, whose result is the JSON document of a response with this status.

    Router.serve registers it. Patterns are such as `/v2/orders/{order}`: a part in braces matches anything up to the
    next slash, and the last one anything at all (BTC/USD).
    """

    def marked(handler: H) -> H:
        handler.__dict__["routes"] = [(method, pattern, status) for pattern in patterns]
        return handler

    return marked


class Router:
    """Handlers by method and pattern; the first match answers."""

    def __init__(self) -> None:
        self.routes: list[tuple[str, str, int, Handler]] = []

    def serve(self, api: object) -> None:
        """Register the marked methods of an object."""
        for name, member in vars(type(api)).items():
            self.routes += [(*one, getattr(api, name)) for one in getattr(member, "routes", ())]

    def answer(self, request: Request) -> tuple[int, Any]:
        """Status and document of a request's handler. Raises ApiError."""
        known = False
        for method, pattern, status, handler in self.routes:
            match = _expression(pattern).fullmatch(request.path)
            if match is not None and method == request.method:
                return status, handler(replace(request, parts=match.groupdict()))
            known = known or match is not None
        if known:
            raise ApiError(405, 40510000, "method not allowed")
        raise not_found("endpoint not found")


@lru_cache
def _expression(pattern: str) -> re.Pattern[str]:
    text = re.sub(r"\{(\w+)\}$", r"(?P<\1>.+)", pattern)
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", text))


def page_token(*parts: str) -> str:
    """A token of texts, encoded so that no client relies on its content."""
    return urlsafe_b64encode("\x1f".join(parts).encode()).decode()


def moment_of(text: str, name: str, *, end_of_day: bool = False) -> datetime:
    """A time (RFC 3339; without an offset it is UTC) in UTC; a bare date is its beginning, or its last moment. Raises
    ApiError."""
    try:
        if len(text) == 10:
            day = datetime.combine(date.fromisoformat(text), time(0, tzinfo=UTC))
            return day + timedelta(days=1) - INSTANT if end_of_day else day
        moment = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        raise invalid(f"invalid {name}: {text[:40]}") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def stamp(moment: datetime) -> str:
    """RFC 3339 in UTC, with as many decimals of a second as there are."""
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{text.rstrip('0') if '.' in text else text}Z"


def new_york_time(moment: datetime) -> str:
    """RFC 3339 with New York's offset, as of the market clock."""
    return moment.astimezone(NEW_YORK).isoformat()


@lru_cache(4096)
def stable_id(*names: object) -> str:
    """A UUID that is always the same for the same names."""
    return str(uuid5(_NAMESPACE, "/".join(map(str, names))))


def texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a document with its amounts and times as text."""
    return {name: _text(value) for name, value in values.items()}


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return stamp(value)
    return plain(value) if isinstance(value, Decimal) else value


def to_json(document: Any) -> bytes:
    """A JSON document in UTF-8; times are written as by `stamp`."""
    return json.dumps(document, default=json_value, allow_nan=False, separators=(",", ":")).encode()


def json_value(value: object) -> object:
    """An amount or a time as a value of JSON or MessagePack. Raises TypeError for anything else."""
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} is no part of a JSON document")
