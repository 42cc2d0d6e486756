"""HTTP replies of model services, judged by what they are: an answer, a stream, an error in any vendor's shape, a page.

The vendors' packages take every body with 200 for an answer, so they are asked for the bytes alone.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from connectors.text import plain
from engine.clock import LiveClock
from engine.domain.model_call import FailureKind

_LONGEST_DETAIL = 240
_DEEPEST = 8
"""Levels of an error body that are read."""
_MOST_TOKENS = 100_000_000
"""Tokens of one call from which a count is no count."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_STREAM_LINE = re.compile(r"(data|event|id|retry)?:")
_PAGE = re.compile(r"\s*<(!doctype|\?xml|!--|[a-z])", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_WORDS = (
    *("message", "msg", "error_message", "errormessage", "error_msg", "status_msg", "error_description"),
    *("detail", "faultstring", "error", "raw", "title", "reason"),
)
"""Keys of an error body that hold the vendor's words, the best first."""
_CODES = frozenset({"code", "type", "status", "reason", "error_code", "errorcode", "status_code", "error", "param"})
_FILTERED = re.compile(r"content.?(filter|policy)|input was flagged", re.IGNORECASE)
_SPENT = re.compile(
    r"insufficient.?(quota|credit|balance|fund)|billing_|credit balance|more credits|payment required", re.IGNORECASE
)
_QUOTA = re.compile(r"(exceeded|out of|no) (your |remaining )?(current )?quota|billing details", re.IGNORECASE)
_KEY = re.compile(
    r"(api|access|secret|subscription)[ _-]?(key|token)|credential|authenticat|unauthori[sz]ed"
    r"|permission.?(denied|error)",
    re.IGNORECASE,
)
_RATE = re.compile(r"rate.?limit|too.?many.?requests|resource.?exhausted|throttl|\bquota\b", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context.?(length|window|size)|(prompt|input|request|messages?)([ _]is)?[ _]too[ _](long|large)"
    r"|too many (input )?tokens"
    r"|maximum prompt length|length of the messages|token count.{0,40}exceeds",
    re.IGNORECASE,
)
_REFUSED_REQUEST = re.compile(
    r"not.?found|does not exist|no such|unknown (model|name|field|param)|invalid|incorrect|expired|unsupported"
    r"|not (valid|supported|permitted|allowed)",
    re.IGNORECASE,
)
_TRY_AGAIN = re.compile(r"(?:again|retry|wait)(?: in| after| for)? ((?:\d+(?:\.\d+)?\s?[a-z]+\s?)+)", re.IGNORECASE)
_DURATION = re.compile(
    r"(\d+(?:\.\d+)?)\s?(ms|milli|s|m|h|d)(?:econds?|ecs?|seconds?|ins?|inutes?|ours?|rs?|ays?)?(?![a-z])",
    re.IGNORECASE,
)
_SECONDS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class StreamCut(Exception):
    """A reply that ended without a stop reason."""


class ErrorReply(Exception):
    """A reply that is no model's answer: `body` is its JSON, or its text where it has none."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        self.body, self.headers = body, headers or {}
        self._told = [] if isinstance(body, str) else list(_told(body))
        codes = (int(value) for key, value in self._told if key in _CODES and re.fullmatch(r"[45]\d\d", value))
        self.status = status if status >= 400 else next(codes, status)
        super().__init__(self.text)

    @classmethod
    def of(cls, error: Exception) -> ErrorReply | None:
        """The reply behind a package's error; None where there was none."""
        if isinstance(error, cls):
            return error
        response, status = getattr(error, "response", None), getattr(error, "status_code", None)
        if response is None or not isinstance(status, int):
            return None
        return cls(status, _parsed(response.text), response.headers)

    @property
    def _is_text(self) -> bool:
        return isinstance(self.body, str) and bool(self.body.strip())

    @property
    def _is_html(self) -> bool:
        return isinstance(self.body, str) and bool(_PAGE.match(self.body))

    @property
    def text(self) -> str:
        """All that the reply says, for a search."""
        return self.body if isinstance(self.body, str) else " ".join(value for _, value in self._told)

    @property
    def vendor_text(self) -> str:
        """The vendor's own words; what kind of reply it is where it has none."""
        if not isinstance(self.body, str):
            said = [next((value for key, value in self._told if key == name), "") for name in _WORDS]
            raw = said[_WORDS.index("raw")]
            first = next(filter(None, said), "")
            return (f"{first}: {raw}" if raw and raw != first else first) or self._shape()
        if not self._is_html:
            return self.body.strip() or "an empty reply"
        title = _TITLE.search(self.body)
        shown = one_line(plain(title[1] if title else self.body))
        return "a page of HTML, not a model's answer" + (f": {shown}" if shown else "")

    @property
    def kind(self) -> FailureKind | None:
        """The failure; None for a refused key."""
        status, told = self.status, "" if self._is_html else f"{self.vendor_text} {self.text}"
        names_key = status != 404 and _KEY.search(told) and (status < 500 or _REFUSED_REQUEST.search(told))
        spent = _SPENT.search(told) or (_QUOTA.search(told) and self.wait is None)
        # 400, 404, 422: the request or the model's name does not fit this endpoint, or the address is another's.
        refused = status >= 400 or self._is_text or _REFUSED_REQUEST.search(told)
        kinds: tuple[tuple[object, FailureKind | None], ...] = (
            (_FILTERED.search(told), FailureKind.REFUSED),
            (status == 402 or spent, FailureKind.NO_CREDIT),
            (status == 429, FailureKind.RATE_LIMITED),
            (status in {401, 403} or names_key, None),
            (status in {408, 504}, FailureKind.TIMED_OUT),
            (status == 413 or _TOO_LONG.search(told), FailureKind.TOO_LONG),
            (status == 409 or status >= 500, FailureKind.UNAVAILABLE),
            (status < 400 and _RATE.search(told), FailureKind.RATE_LIMITED),
            (refused, FailureKind.NOT_CONFIGURED),
            (True, FailureKind.UNAVAILABLE),
        )
        return next(kind for applies, kind in kinds if applies)

    @property
    def is_elsewhere(self) -> bool:
        """True where the address may be the trouble."""
        return self._is_text or self.status in {404, 405}

    @property
    def wait(self) -> float | None:
        """The seconds that the reply asks to wait; None where it asks for nothing."""
        milliseconds = _number(self.headers.get("retry-after-ms"))
        header = self.headers.get("retry-after", "")
        asked = [None if milliseconds is None else milliseconds / 1000, _number(header), _until(header, self.headers)]
        for key, value in self._told:
            if key.replace("_", "") in {"retrydelay", "retryafter"}:
                asked += [_number(value), _duration(value)]
        said = _TRY_AGAIN.search(self.text)
        asked.append(None if said is None else _duration(said[1]))
        return next((max(one, 0.0) for one in asked if one is not None), None)

    def _shape(self) -> str:
        kind = {list: "a list", dict: "an object", type(None): "null"}.get(type(self.body), "a single value")
        return f"{kind} that is no model's answer"


def _told(body: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every text and number of an error body under its key in lower case, those of the outer levels first."""
    if isinstance(body, Mapping | list) and depth < _DEEPEST:
        parts = (
            [(str(k).lower(), v) for k, v in body.items()] if isinstance(body, Mapping) else [(key, v) for v in body]
        )
        for inner in (False, True):
            for name, value in parts:
                if isinstance(value, Mapping | list) is inner:
                    yield from _told(value, name, depth + 1)
    elif isinstance(body, str | int | float) and not isinstance(body, bool):
        yield key, str(body)


def _number(text: Any) -> float | None:
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _until(text: str, headers: Mapping[str, str]) -> float | None:
    """The seconds until an HTTP date or a stamp of RFC 3339, by the clock of whoever replied."""
    try:
        until = datetime.fromisoformat(text) if text[:1].isdigit() else parsedate_to_datetime(text)
        sent = headers.get("date")
        return (until - (parsedate_to_datetime(sent) if sent else LiveClock().now())).total_seconds()
    except (TypeError, ValueError):
        return None


def exhausted_for(headers: Mapping[str, str]) -> float | None:
    """The seconds until a vendor takes requests again of which its headers say that none are left; None where some are,
    or it does not say. A time is the stamp of an HTTP date, of RFC 3339, or a duration."""
    waits = []
    for name, value in headers.items():
        remaining = re.fullmatch(r"(?:x-ratelimit|anthropic-ratelimit)-(.*-)?remaining(-.*)?", name.lower())
        if remaining is not None and _number(value) == 0:
            reset = headers.get(name.lower().replace("remaining", "reset"), "")
            until = _until(reset, headers)
            waits.append(_duration(reset) if until is None else until)
    return max((max(wait, 0.0) for wait in waits if wait is not None), default=None)


def limits_of(headers: Mapping[str, str]) -> dict[str, int]:
    """The requests and tokens that a vendor's headers allow, those that they tell."""
    told = {}
    for name, value in headers.items():
        found = re.fullmatch(r"(?:x-ratelimit-limit|anthropic-ratelimit)-(requests|tokens)(?:-limit)?", name.lower())
        if found is not None and (number := _number(value)):
            told[found[1]] = int(number)
    return told


def _duration(text: str) -> float | None:
    """Seconds of a text such as `7s`, `1m30.5s`, `20ms`, `2 minutes`."""
    parts = _DURATION.findall(text)
    return sum(float(number) * _SECONDS[unit.lower()] for number, unit in parts) if parts else None


def one_line(text: str) -> str:
    """Foreign text cut to one line for a person."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= _LONGEST_DETAIL else line[: _LONGEST_DETAIL - 1] + "…"


async def read_reply(response: Any, on_event: Callable[[Mapping[str, Any]], None]) -> Any:
    """The JSON of a whole reply; None for a stream, whose events have gone to `on_event` one by one. What was asked for
    does not matter. Raises ErrorReply, StreamCut, and what the connection raises."""
    lines, read = _lines(response.iter_bytes()), ""
    async for line in lines:
        read += line
        if read.strip():
            break
    if not _STREAM_LINE.match(read):
        body = _json("\n".join([read, *[line async for line in lines]]), response)
        return body[0] if isinstance(body, list) and len(body) == 1 else body
    async for name, text in _events(read, lines):
        if text.strip() == "[DONE]":
            return None
        event = _json(text, response)
        if name == "error" or names_error(event) or not isinstance(event, Mapping):
            raise ErrorReply(response.status_code, event)
        on_event(event)
    return None


async def _events(line: str, lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str]]:
    """The name and the data of every event of a stream that begins with a line."""
    data, name = list[str](), ""
    while True:
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif field == "event":
            name = value.strip()
        following = await anext(lines, None)
        if data and not following:
            yield name, "\n".join(data)
            data, name = [], ""
        if following is None:
            return
        line = following


def _parsed(text: str) -> Any:
    """The JSON of a text; the text itself where it is none."""
    with suppress(ValueError, RecursionError):
        return json.loads(text, parse_int=_whole)
    return text


def _json(text: str, response: Any) -> Any:
    value = _parsed(text)
    if isinstance(value, Mapping | list):
        return value
    if text.lstrip()[:1] in ("{", "["):
        raise StreamCut("the reply ended within its JSON")
    raise ErrorReply(response.status_code, value, response.headers)


def names_error(value: Any) -> bool:
    """True for a body that says that it is an error, or says something in place of an answer."""
    if isinstance(value, list):
        return any(map(names_error, value))
    if not isinstance(value, Mapping):
        return False
    says = any(isinstance(value.get(name), str) for name in ("message", "msg", "detail", "error_msg"))
    return says or bool(value.get("error")) or "error" in (value.get("type"), value.get("object"))


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The lines of a body; those of the standard library break at characters that JSON may hold."""
    rest = bytearray()
    async for chunk in chunks:
        rest += chunk
        if b"\n" in chunk:
            *lines, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for line in lines:
                yield line.decode(errors="replace").removesuffix("\r").removeprefix("\ufeff")
    if rest:
        yield rest.decode(errors="replace").removesuffix("\r").removeprefix("\ufeff")


def _whole(digits: str) -> float:
    """A number without a fraction; one of thousands of digits is infinite, and no error."""
    return int(digits) if len(digits) < 20 else float(digits)


def text_of(value: Any) -> str:
    """The text of an answer: as it is, in parts, or as the object that a server has parsed already."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return "".join(part.get("text") or "" for part in value if isinstance(part, Mapping) and _is_text(part))
    return json.dumps(value)


def _is_text(part: Mapping[str, Any]) -> bool:
    return part.get("type") in ("text", None) and isinstance(part.get("text"), str)


def token_count(usage: Any, *path: str) -> int | None:
    """A whole number of tokens under a path of keys, else None; whoever tells parts of tokens has not counted them."""
    value = usage
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    number = None if isinstance(value, bool) else _number(value)
    return None if number is None or number % 1 or not 0 <= number <= _MOST_TOKENS else int(number)
