"""A rate-limited HTTP client for public services: spaced requests, and retries after faults."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from engine.errors import ConfigError, NetworkError, TryAgainLater

if TYPE_CHECKING:
    import httpx
    from aiolimiter import AsyncLimiter

T = TypeVar("T")

PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses that may pass after a wait."""


class HttpError(Exception):
    """An error status that waiting does not change; the caller knows its meaning."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.text = text


class _Fault(Exception):
    """A failed attempt that may succeed when repeated, after `wait` seconds where the service names them."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.wait = wait


@dataclass(kw_only=True, eq=False, repr=False)
class RateLimitedClient:
    """GET requests to one service. One instance belongs to one event loop; close it with `aclose`.

    service: its name in errors.
    seconds_between: least time between the starts of two requests.
    timeout: seconds for one attempt as a whole.
    headers: headers of every request; they may hold keys.
    attempts: requests until a fault is given up on.
    first_pause: seconds before the second attempt; pauses double, or follow Retry-After or X-RateLimit-Reset.
    longest_wait: seconds; a longer wait is left to the user.
    direct: True to bypass any proxy, for a service on this machine.
    missing: True for the body of a 404 with which the service says that there is no such thing.
    """

    service: str = field(kw_only=False)
    seconds_between: float
    timeout: float
    headers: Mapping[str, str] = field(default_factory=dict)
    attempts: int = 4
    first_pause: float = 0.5
    longest_wait: float = 60.0
    direct: bool = False
    missing: Callable[[str], bool] = lambda text: True
    _client: httpx.AsyncClient | None = field(default=None, init=False)
    _pace: AsyncLimiter | None = field(default=None, init=False)

    async def aclose(self) -> None:
        """Close connections; a later request opens new ones."""
        if self._client is not None:
            await self._client.aclose()
            self._client = self._pace = None

    async def get(self, url: str, read: Callable[[bytes], T], *, params: Mapping[str, str] | None = None) -> T | None:
        """The result of `read` on the response's body, or None for a 404.

        `read` raises ValueError for an unexpected body, which counts as a fault and is requested again. Raises
        HttpError for other statuses of ours, TryAgainLater where the service limits requests, NetworkError where it
        cannot be reached or answers nonsense.
        """
        fault = _Fault("")
        for attempt in range(self.attempts):
            if attempt:
                pause = self.first_pause * 2 ** (attempt - 1)
                await asyncio.sleep(pause if fault.wait is None else fault.wait)
            try:
                return await self._attempt(url, read, params)
            except _Fault as error:
                fault = error
        message = f"{self.service}: {fault.problem}, {self.attempts} times over"
        if fault.problem == "HTTP 429":
            raise TryAgainLater(f"{message}: too many requests; try again later")
        raise NetworkError(f"{message}; check the connection and try again later")

    async def _attempt(self, url: str, read: Callable[[bytes], T], params: Mapping[str, str] | None) -> T | None:
        response = await self._send(url, params)
        status = response.status_code
        if status in PASSING:
            raise self._fault_of(response)
        if status == 404 and self.missing(response.text):
            return None
        if status != 200:
            raise HttpError(status, response.text[:4000])
        try:
            return read(response.content)
        except ValueError as error:
            raise _Fault(f"a response that cannot be read ({error})") from None

    def _fault_of(self, response: httpx.Response) -> _Fault:
        """The fault of a status that may pass. Raises TryAgainLater for too long a wait."""
        status = response.status_code
        wait = retry_after(response.headers)
        if wait is None and status == 429:
            wait = until_reset(response.headers)
        if wait is not None and wait > self.longest_wait:
            raise TryAgainLater(f"{self.service} asks to wait {wait:.0f} s (HTTP {status})")
        return _Fault(f"HTTP {status}", wait)

    async def _send(self, url: str, params: Mapping[str, str] | None) -> httpx.Response:
        """Send one request within the rate limit. Raises ConfigError for an invalid address."""
        import httpx
        from aiolimiter import AsyncLimiter

        if self._client is None or self._pace is None:
            self._client = httpx.AsyncClient(headers=self.headers, timeout=self.timeout, trust_env=not self.direct)
            self._pace = AsyncLimiter(1, self.seconds_between)
        await self._pace.acquire()
        try:
            async with asyncio.timeout(self.timeout):
                return await self._client.get(url, params=params)
        except (httpx.TimeoutException, TimeoutError):
            raise _Fault(f"no answer within {self.timeout:g} s") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise ConfigError(f"the address of {self.service} is no http:// or https:// address; correct it") from None
        except httpx.ConnectError as error:
            reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or "no reason given"
            raise _Fault(f"no connection ({reason})") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise _Fault(f"{type(error).__name__}: {str(error) or 'no reason given'}") from None
        except OSError as error:
            raise _Fault(str(error)) from None


def until_reset(headers: Mapping[str, str]) -> float | None:
    """Seconds until the rate limit is reset, by X-RateLimit-Reset (seconds since 1970) against the response's own Date,
    or None."""
    text = headers.get("x-ratelimit-reset", "").strip()
    try:
        sent_at = parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, float(text) - sent_at.timestamp()) if text.isascii() and text.isdigit() else None
    except (ValueError, TypeError):
        return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by Retry-After (a number, or a date against the response's own Date), or None."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        until: datetime = parsedate_to_datetime(text)
        return max(0.0, (until - parsedate_to_datetime(headers.get("date", ""))).total_seconds())
    except (ValueError, TypeError):
        return None


def json_object(body: bytes) -> dict[str, Any]:
    """A body as a JSON object; numbers with a point stay exact. Raises ValueError."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return value


def parse_json(body: bytes) -> Any:
    """A body as JSON; numbers with a point stay exact. Raises ValueError."""
    return json.loads(body, parse_float=Decimal, parse_constant=_no_number)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} among the numbers")
