"""Endpoints of models and embeddings: address, key, limits, and the errors of the vendors' packages as our own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectors.llm.failures import failure_of, status_of
from engine.domain.model_call import ModelFailure
from engine.errors import ConfigError, CredentialsRefused, PaperdeskError

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

_retry_after: ContextVar[list[str]] = ContextVar("retry_after")
"""The Retry-After of the last reply to the call in this context, if that was a 429."""


class CallFailed(Exception):
    """A call to a vendor that failed as `failure` says."""

    def __init__(self, failure: ModelFailure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


class RateLimiter:
    """At most `concurrency` calls at once, and at most so many requests a minute (None: no limit).

    One limiter per endpoint, shared by the models behind it, within one event loop.
    """

    def __init__(self, concurrency: int = 4, requests_per_minute: int | None = None) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._requests_per_minute = requests_per_minute
        self._requests: AsyncLimiter | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot and for the rate limit; the slot is released at the end of the block."""
        if self._requests is None and self._requests_per_minute is not None:
            # aiolimiter is imported with the first call, so that commands without calls do not load it.
            from aiolimiter import AsyncLimiter

            self._requests = AsyncLimiter(self._requests_per_minute, 60)
        async with self._slots:
            if self._requests is not None:
                await self._requests.acquire()
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A vendor's own service, or a configured one with the same interface.

    provider: the vendor's name, or the endpoint's.
    key_variable: the environment variable of the key; empty where none is needed.
    api_key: as it is in the environment.
    base_url: None: the vendor's own variable, else its own address.
    limiter: shared by everything that asks this endpoint.
    """

    provider: str
    key_variable: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    limiter: RateLimiter = field(default_factory=RateLimiter)

    def key(self, spec: str) -> str:
        """The key as it is sent; empty where none is needed. Raises CredentialsRefused; `spec` names the model."""
        key = (self.api_key or "").strip()
        if self.key_variable and not key:
            raise CredentialsRefused(f"{spec} needs a key: set {self.key_variable}")
        if not (key.isascii() and key.isprintable()):
            raise CredentialsRefused(f"{self.key_variable} holds characters that no key has; set it again")
        return key

    def check(self, spec: str) -> None:
        """Raise CredentialsRefused without a key and ConfigError for an address without http:// or https://."""
        self.key(spec)
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(f"the base URL of {spec} should start with http:// or https://, not {self.base_url!r}")

    def client(self, spec: str, make: Callable[..., Any], make_http: Callable[..., Any]) -> Any:
        """A client of a vendor's package, over that package's HTTP client. Raises as `check`."""
        self.check(spec)
        http = make_http(event_hooks={"response": [_record_retry_after]})
        return make(api_key=self.key(spec) or "none", base_url=self.base_url, http_client=http)

    @contextmanager
    def errors(self, name: str, deadline: float) -> Iterator[None]:
        """Translate a vendor's errors in this block to CallFailed, a refused key to CredentialsRefused.

        `name` is the model's or embedder's in messages; `deadline`, in seconds, is the call's own.
        """
        recorded: list[str] = []
        token = _retry_after.set(recorded)
        try:
            yield
        except PaperdeskError:
            raise
        except Exception as error:
            if status_of(error) in {401, 403}:
                message = f"{name}: the key was refused (HTTP {status_of(error)}); check {self.key_variable}"
                raise CredentialsRefused(message) from None
            retry_after = recorded[0] if recorded else None
            raise CallFailed(failure_of(error, deadline, retry_after, secret=self.key(name))) from None
        finally:
            _retry_after.reset(token)


async def _record_retry_after(response: Any) -> None:
    """An event hook for a vendor's HTTP client.

    The packages wait out a 429 in silence; a deadline that passes meanwhile should be reported as a rate limit.
    """
    recorded = _retry_after.get(None)
    if recorded is not None:
        recorded[:] = [response.headers.get("retry-after", "some")] if response.status_code == 429 else []
