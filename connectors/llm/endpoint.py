"""Endpoints of models and embeddings: address, key, limits, and the vendors' exceptions as our own failures."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from connectors.llm.gate import CallFailed, Gate
from engine import places
from engine.domain.model_call import FailureKind, ModelFailure
from engine.errors import ConfigError, CredentialsRefused, PaperdeskError

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

_LONGEST_DETAIL = 240
_SHORTEST_SECRET = 8
"""Length from which a key is a secret: local servers take any text for a key."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_SPENT = re.compile(r"insufficient_quota|billing_|credit balance|insufficient credit", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"(prompt|input|request) is too long|context (length|window|size)|too many tokens", re.IGNORECASE
)
_PICTURE = re.compile(r"image|vision|picture|multi-?modal", re.IGNORECASE)
_STREAM = re.compile(r"\bstream(ed|ing)?\b", re.IGNORECASE)
_TRANSPORT_TIMEOUTS = frozenset({"APITimeoutError", "ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout"})
_BROKEN_BODY = (AttributeError, TypeError, KeyError, IndexError, ValueError)
"""Exceptions of the packages for an unexpected body.

HTML with 200 is an AttributeError, a truncated body a bare JSONDecodeError, an odd one a ValidationError (a
ValueError).
"""


class StreamCut(Exception):
    """A stream that ended without a stop reason."""


def status_of(error: Exception) -> int | None:
    """HTTP status of an error, or None where no error status was received."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) and status >= 400 else None


def names_parameter(error: Exception, *names: str) -> bool:
    """True where an endpoint refuses a request (400, 422) because of one of these parameters."""
    if status_of(error) not in {400, 422}:
        return False
    text = f"{getattr(error, 'param', None) or ''} {error}"
    return any(name in text for name in names)


def refuses_image(error: Exception) -> bool:
    """True where an endpoint refuses a request because of its pictures; local servers may say so with 500."""
    status = status_of(error)
    if status in {500, 501}:
        return bool(_PICTURE.search(str(error))) and "support" in str(error)
    return status in {400, 404, 415, 422} and bool(_PICTURE.search(str(error)))


def refuses_stream(error: Exception) -> bool:
    """True where an endpoint refuses a request because its answer should be streamed."""
    text = f"{getattr(error, 'param', None) or ''} {error}"
    return status_of(error) in {400, 404, 405, 422, 501} and bool(_STREAM.search(text))


def failure_of(error: Exception, deadline: float, secret: str = "") -> ModelFailure:
    """The failure of a call's error.

    `deadline` is the call's, in seconds. `secret` is the key, which the detail must not hold. An error that is neither
    the endpoint's nor the network's is a bug of ours and is raised again.
    """
    status = status_of(error)
    kind = _kind_of_error(error) if status is None else _kind_of_status(status, error)
    if kind is None:
        raise error
    if kind is FailureKind.TIMED_OUT:
        return ModelFailure(kind, f"no answer within {deadline:g} s")
    if kind is FailureKind.MALFORMED:
        return ModelFailure(kind, f"the endpoint's reply is not the API's JSON ({type(error).__name__})")
    message = _message(error)
    if len(secret) >= _SHORTEST_SECRET:
        # An endpoint may echo what it was sent.
        message = message.replace(secret, "[key]")
    return ModelFailure(kind, one_line(message))


def _kind_of_error(error: Exception) -> FailureKind | None:
    """The failure of an error without an HTTP status."""
    names = {base.__name__ for base in type(error).__mro__}
    if isinstance(error, TimeoutError) or names & _TRANSPORT_TIMEOUTS:
        return FailureKind.TIMED_OUT
    if {type(error).__name__, type(error.__cause__).__name__} & {"InvalidURL", "UnsupportedProtocol"}:
        return FailureKind.NOT_CONFIGURED
    if "APIResponseValidationError" in names or isinstance(error, json.JSONDecodeError):
        return FailureKind.MALFORMED
    if "APIError" in names:
        # An error event inside a stream that had begun with 200, or a connection that failed.
        if _is_spent(error):
            return FailureKind.NO_CREDIT
        return FailureKind.RATE_LIMITED if "rate_limit" in _codes(error) else FailureKind.UNAVAILABLE
    if names & {"TransportError", "StreamError", "DecodingError", "OSError", "StreamCut"}:
        return FailureKind.UNAVAILABLE
    return FailureKind.MALFORMED if isinstance(error, _BROKEN_BODY) else None


def _kind_of_status(status: int, error: Exception) -> FailureKind:
    if "content_filter" in _codes(error) or "content_policy" in _codes(error):
        return FailureKind.REFUSED
    if status == 429:
        # An account without credit is told by the same status; waiting does not help it.
        return FailureKind.NO_CREDIT if _is_spent(error) else FailureKind.RATE_LIMITED
    if status in {408, 504}:
        return FailureKind.TIMED_OUT
    if status == 409 or status >= 500:
        return FailureKind.UNAVAILABLE
    if status == 402 or _is_spent(error):
        return FailureKind.NO_CREDIT
    if status == 413 or "context_length" in _codes(error) or _TOO_LONG.search(str(error)):
        return FailureKind.TOO_LONG
    # 400, 404, 422: the request or the model's name does not fit this endpoint.
    return FailureKind.NOT_CONFIGURED


def _is_spent(error: Exception) -> bool:
    """True where an account has no credit left; Anthropic says so in words alone."""
    return bool(_SPENT.search(f"{_codes(error)} {error}"))


def _codes(error: Exception) -> str:
    return " ".join(str(getattr(error, name, None) or "") for name in ("code", "type", "error_code"))


def _message(error: Exception) -> str:
    """The vendor's own sentence, else the package's."""
    body = getattr(error, "body", None)
    while isinstance(body, dict):
        inner = body.get("error", body.get("message"))
        if isinstance(inner, str):
            status = status_of(error)
            return f"{inner} (HTTP {status})" if status else inner
        body = inner
    if error.__cause__ is not None and status_of(error) is None:
        # "Connection error." alone helps nobody.
        return f"{error} {error.__cause__ or type(error.__cause__).__name__}"
    return str(error) or type(error).__name__


def one_line(text: str) -> str:
    """Foreign text cut to one line for a person."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= _LONGEST_DETAIL else line[: _LONGEST_DETAIL - 1] + "…"


class RateLimiter:
    """At most `concurrency` calls at once, and at most so many requests and tokens a minute (None: no limit).

    One limiter per endpoint, shared by the models behind it, within one event loop.
    """

    def __init__(
        self, concurrency: int = 4, requests_per_minute: int | None = None, tokens_per_minute: int | None = None
    ) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._rates = {"requests": requests_per_minute, "tokens": tokens_per_minute}
        self._limiters: dict[str, AsyncLimiter] = {}

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[None]:
        """Wait for a slot and for the rates, given the tokens to send; the slot is released at the end of the block."""
        async with self._slots:
            await self._spend("requests", 1)
            await self.spend(tokens)
            yield

    async def spend(self, tokens: int) -> None:
        """Wait until the rate allows tokens: those to send, or those that an answer has cost."""
        await self._spend("tokens", tokens)

    async def _spend(self, what: str, amount: int) -> None:
        rate = self._rates[what]
        if rate is None:
            return
        if what not in self._limiters:
            # aiolimiter is imported with the first call, so that commands without calls do not load it.
            from aiolimiter import AsyncLimiter

            self._limiters[what] = AsyncLimiter(rate, 60)
        # What is more than a minute's allowance takes the whole of it.
        await self._limiters[what].acquire(min(amount, rate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A vendor's own service, or a configured one with the same interface.

    provider: the vendor's name, or the endpoint's.
    key_variable: the environment variable of the key; empty where none is needed.
    api_key: as it is in the environment.
    base_url: None: the vendor's own variable, else its own address.
    limiter, gate: shared by everything that asks this endpoint.
    max_output_tokens: most tokens of an answer; None: as the request says.
    thinking_tokens: added to the limit of an answer, as thinking counts against it.
    """

    provider: str
    key_variable: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    limiter: RateLimiter = field(default_factory=RateLimiter)
    gate: Gate = field(default_factory=Gate)
    max_output_tokens: int | None = None
    thinking_tokens: int = 0

    def key(self, spec: str) -> str:
        """The key as it is sent; empty where none is needed. Raises CredentialsRefused; `spec` names the model."""
        key = (self.api_key or "").strip()
        if self.key_variable and not key:
            known = f"set {self.key_variable}, or write it into {places.keys_file()}"
            raise CredentialsRefused(f"{spec} needs a key: {known}")
        if not (key.isascii() and key.isprintable()):
            raise CredentialsRefused(f"{self.key_variable} holds characters that no key has; set it again")
        return key

    def check(self, spec: str) -> None:
        """Raise CredentialsRefused without a key and ConfigError for an address without http:// or https://."""
        self.key(spec)
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(f"the base URL of {spec} should start with http:// or https://, not {self.base_url!r}")

    def client(self, spec: str, make: Callable[..., Any]) -> Any:
        """A client of a vendor's package that retries nothing: the gate does. Raises as `check`."""
        self.check(spec)
        return make(api_key=self.key(spec) or "none", base_url=self.base_url, max_retries=0)

    @contextmanager
    def errors(self, name: str, deadline: float) -> Iterator[None]:
        """Translate a vendor's errors in this block to CallFailed, a refused key to CredentialsRefused.

        `name` is the model's or embedder's in messages; `deadline`, in seconds, is the call's own.
        """
        try:
            yield
        except PaperdeskError:
            raise
        except Exception as error:
            if status_of(error) in {401, 403}:
                message = f"{name}: the key was refused (HTTP {status_of(error)}); check {self.key_variable}"
                raise CredentialsRefused(message) from None
            failure, wait = failure_of(error, deadline, secret=self.key(name)), _retry_after(error)
            if failure.kind is FailureKind.NO_CREDIT:
                account = f"the account of {self.key_variable}" if self.key_variable else "the account"
                failure = replace(failure, detail=f"{account} at {self.provider}: {failure.detail}")
            elif wait is not None:
                failure = replace(failure, detail=f"{failure.detail}; asked to wait {wait:g} s")
            raise CallFailed(failure, wait) from None


def _retry_after(error: Exception) -> float | None:
    """The seconds that a reply asks to wait, as a number or as a time; None where it asks for nothing."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    text = headers.get("retry-after", "")
    try:
        return max(float(text), 0.0)
    except ValueError:
        pass
    try:
        until, now = parsedate_to_datetime(text), parsedate_to_datetime(headers.get("date", ""))
        return max((until - now).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None
