"""Asks public services over HTTP as they wish to be asked: at a pace, again after a fault, and never twice for what
does not change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from connectors.response_cache import CachedResponse, ResponseCache
from engine.errors import ConfigError, NetworkError, TryAgainLater

if TYPE_CHECKING:
    import httpx
    from aiolimiter import AsyncLimiter

T = TypeVar("T")

_FAULTS = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses that may pass when one waits."""


class Refused(Exception):
    """The service answered with an error that waiting does not change; the caller knows what it means."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.text = text


class PoliteClient:
    """GET requests to one service. One instance belongs to one event loop; close it with `aclose`."""

    def __init__(
        self,
        service: str,
        *,
        seconds_between: float,
        timeout: float,
        headers: Mapping[str, str] | None = None,
        cache: ResponseCache | None = None,
        attempts: int = 4,
        first_pause: float = 0.5,
        longest_wait: float = 60.0,
        direct: bool = False,
    ) -> None:
        """`service` is its name in errors. Requests start at least `seconds_between` apart; one attempt may take
        `timeout` seconds as a whole. Pauses between attempts double from `first_pause`, or are what Retry-After
        says; a wait longer than `longest_wait` is left to the user. Where the service says that a minute's requests are
        used up (X-RateLimit-Remaining and -Reset), the next one waits for the next minute. `direct` asks past any
        proxy: for a service on this machine."""
        self._service = service
        self._seconds_between = seconds_between
        self._timeout = timeout
        self._headers = dict(headers or {})
        self._cache = cache
        self._attempts = attempts
        self._first_pause = first_pause
        self._longest_wait = longest_wait
        self._direct = direct
        self._resumes = 0.0  # by the event loop's clock
        self._client: httpx.AsyncClient | None = None
        self._pace: AsyncLimiter | None = None

    async def aclose(self) -> None:
        """Closes connections; a later request opens new ones."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def get(
        self,
        url: str,
        read: Callable[[bytes], T],
        *,
        params: Mapping[str, str] | None = None,
        for_ever: bool = False,
    ) -> T | None:
        """What `read` makes of the response's body, or None where there is nothing at the address (404).

        `read` raises ValueError for a body that is not what it should be: that counts as a fault and is asked for
        again. `for_ever` says that the response never changes: once kept, it is not asked for. Others are asked for
        with the date of the kept one. Raises Refused for other errors of ours, TryAgainLater where the service
        wants us to wait, NetworkError where it cannot be reached or answers nonsense.
        """
        kept = None if self._cache is None or params else self._cache.find(url)
        if kept is not None and for_ever:
            try:
                return read(kept.body)
            except ValueError:
                kept = None  # damaged: asked for anew
        problem, wait = "", 0.0
        for attempt in range(self._attempts):
            if attempt:
                await asyncio.sleep(wait)
            wait = self._first_pause * 2**attempt
            try:
                response = await self._send(url, params, kept)
            except TimeoutError:
                problem = f"no answer within {self._timeout:g} s"
                continue
            except OSError as error:
                problem = str(error)
                continue
            if response.status_code in _FAULTS:
                problem = f"HTTP {response.status_code}"
                asked = retry_after(response.headers)
                if asked is None and response.status_code == 429:
                    asked = until_reset(response.headers)
                if asked is not None and asked > self._longest_wait:
                    raise TryAgainLater(f"{self._service} asks to wait {asked:.0f} s (HTTP {response.status_code})")
                wait = wait if asked is None else asked
                continue
            if response.status_code == 404:
                return None
            body = response.content
            if response.status_code == 304 and kept is not None:
                body = kept.body
            elif response.status_code != 200:
                raise Refused(response.status_code, response.text[:4000])
            try:
                result = read(body)
            except ValueError as error:
                problem, kept = f"a response that cannot be read ({error})", None
                continue
            if self._cache is not None and not params and response.status_code == 200:
                marks = response.headers.get("etag"), response.headers.get("last-modified")
                self._cache.keep(url, CachedResponse(body, *marks))
            return result
        said = f"{self._service}: {problem}, {self._attempts} times over"
        if problem == "HTTP 429":
            raise TryAgainLater(f"{said}: too many requests; try again later")
        raise NetworkError(f"{said}; check the connection and try again later")

    async def _send(self, url: str, params: Mapping[str, str] | None, kept: CachedResponse | None) -> httpx.Response:
        """One paced attempt. Raises TimeoutError, OSError for trouble on the way, ConfigError for an address that is
        none."""
        import httpx
        from aiolimiter import AsyncLimiter

        if self._client is None:
            self._client = httpx.AsyncClient(headers=self._headers, timeout=self._timeout, trust_env=not self._direct)
        if self._pace is None:
            self._pace = AsyncLimiter(1, self._seconds_between)
        headers = {}
        if kept is not None and kept.etag:
            headers["if-none-match"] = kept.etag
        elif kept is not None and kept.changed:
            headers["if-modified-since"] = kept.changed
        await self._pace.acquire()
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._resumes - loop.time())
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._client.get(url, params=params, headers=headers)
        except httpx.TimeoutException:
            raise TimeoutError from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise ConfigError(f"the address of {self._service} is no http:// or https:// address; correct it") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise OSError(f"{type(error).__name__}: {str(error) or 'no reason given'}") from None
        if response.headers.get("x-ratelimit-remaining", "").strip() == "0":
            self._resumes = loop.time() + min(until_reset(response.headers) or 0.0, self._longest_wait)
        return response


def until_reset(headers: Mapping[str, str]) -> float | None:
    """Seconds until more may be asked, by X-RateLimit-Reset (seconds since 1970, set against the response's own Date),
    or None."""
    text = headers.get("x-ratelimit-reset", "").strip()
    try:
        said_at = parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, float(text) - said_at.timestamp()) if text.isascii() and text.isdigit() else None
    except (ValueError, TypeError):
        return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by Retry-After (a number, or a date set against the response's own Date), or None."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        until: datetime = parsedate_to_datetime(text)
        return max(0.0, (until - parsedate_to_datetime(headers.get("date", ""))).total_seconds())
    except (ValueError, TypeError):
        return None


def json_object(body: bytes) -> dict[str, Any]:
    """A body that has to be a JSON object; numbers with a point stay exact. Raises ValueError."""
    value = json.loads(body, parse_float=Decimal, parse_constant=_no_number)
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return value


def _no_number(word: str) -> None:
    raise ValueError(f"{word} among the numbers")
