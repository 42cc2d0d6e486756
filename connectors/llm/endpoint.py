"""Endpoints of models and embeddings: address, key, limits, and the vendors' exceptions as our own failures."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectors.llm.gate import CallFailed, Gate
from connectors.llm.service_reply import ErrorReply, exhausted_for, limits_of, one_line
from connectors.llm.slots import Slots
from connectors.llm.warm_prefixes import WarmPrefixes
from engine.domain.model_call import FailureKind, ModelFailure
from engine.errors import ConfigError, CredentialsRefused, PaperdeskError
from engine.settings import places

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

BASE_URL_VARIABLES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
"""Environment variables of the vendors' packages that take the place of their own address."""
_SHORTEST_SECRET = 8
"""Length from which a key is a secret: local servers take any text for a key."""
_PICTURE = re.compile(r"image|vision|picture|multi-?modal", re.IGNORECASE)
_SCHEMA = re.compile(
    r"schema|response.?format|output.?(config|format)|structured.?output|json_object|json mode|grammar", re.IGNORECASE
)
_NO_SERVICE = re.compile(r"WRONG_VERSION_NUMBER|CERTIFICATE_VERIFY_FAILED|illegal status line", re.IGNORECASE)
"""Words of the network for an address at which somebody else answers."""
_STREAM = re.compile(r"\bstream(ed|ing)?\b", re.IGNORECASE)
_TRANSPORT_TIMEOUTS = frozenset({"APITimeoutError", "ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout"})
_TRANSPORT_ERRORS = frozenset({"APIError", "TransportError", "StreamError", "DecodingError", "OSError", "StreamCut"})
_BROKEN_BODY = (AttributeError, TypeError, KeyError, IndexError, ValueError)
"""Exceptions of a package for vectors of an unexpected shape."""


def names_parameter(error: Exception, *names: str) -> bool:
    """True where an endpoint refuses a request because of one of these parameters."""
    return _refuses(error, {200, 400, 404, 422}) and any(name in str(error) for name in names)


def has_no_capacity(error: Exception) -> bool:
    """True where a tier of a service has no room at present; a limit of one's own is another thing."""
    return _refuses(error, {429, 503}) and bool(re.search(r"resource.?unavailable|capacity", str(error), re.IGNORECASE))


def refuses_schema(error: Exception) -> bool:
    """True where an endpoint refuses a request because of the schema of its answer, or of a keyword in it."""
    return _refuses(error, {200, 400, 404, 422, 500, 501}) and bool(_SCHEMA.search(str(error)))


def refuses_image(error: Exception) -> bool:
    """True where an endpoint refuses a request because of its pictures; local servers may say so with 500."""
    if not _PICTURE.search(str(error)):
        return False
    return _refuses(error, {200, 400, 404, 415, 422}) or (_refuses(error, {500, 501}) and "support" in str(error))


def refuses_stream(error: Exception) -> bool:
    """True where an endpoint refuses a request because its answer should be streamed."""
    return _refuses(error, {200, 400, 404, 405, 422, 501}) and bool(_STREAM.search(str(error)))


def _refuses(error: Exception, statuses: Collection[int]) -> bool:
    return isinstance(error, ErrorReply) and error.status in statuses


def _kind_of_error(error: Exception) -> FailureKind | None:
    """The failure of an error without a reply."""
    names = {base.__name__ for base in type(error).__mro__}
    if isinstance(error, TimeoutError) or names & _TRANSPORT_TIMEOUTS:
        return FailureKind.TIMED_OUT
    invalid = {type(error).__name__, type(error.__cause__).__name__} & {"InvalidURL", "UnsupportedProtocol"}
    if invalid or _NO_SERVICE.search(f"{error} {error.__cause__}"):
        return FailureKind.NOT_CONFIGURED
    if names & _TRANSPORT_ERRORS:
        return FailureKind.UNAVAILABLE
    return FailureKind.MALFORMED if isinstance(error, _BROKEN_BODY) else None


def without_password(address: str) -> str:
    """An address without the user that it may name."""
    return re.sub(r"//[^/@]*@", "//", address)


class RateLimiter:
    """At most `concurrency` calls at once, and at most so many requests and tokens a minute (None: no limit); the
    number of calls begins with `begin` and adapts, and what a vendor's headers say is left is not gone beyond.

    One limiter per endpoint, shared by the models behind it, within one event loop.
    """

    def __init__(
        self,
        concurrency: int = 16,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        begin: int | None = None,
    ) -> None:
        self.slots = Slots(concurrency, begin)
        self.told: dict[str, int] = {}
        self._opens_at = float("-inf")
        self._rates = {"requests": requests_per_minute, "tokens": tokens_per_minute}
        self._limiters: dict[str, AsyncLimiter] = {}

    @asynccontextmanager
    async def slot(self, tokens: int = 0, longest: float = float("inf")) -> AsyncIterator[None]:
        """Wait for a slot and for the rates, given the tokens to send; the slot is released at the end of the block.
        Raises CallFailed where the vendor has nothing left for more than `longest` seconds, as when a day's allowance
        is used up."""
        async with self.slots.slot():
            wait = self._opens_at - asyncio.get_running_loop().time()
            if wait > longest:
                detail = f"the service says that its allowance is used up for {wait:,.0f} s"
                raise CallFailed(ModelFailure(FailureKind.RATE_LIMITED, detail), wait)
            await asyncio.sleep(wait)
            await self._spend("requests", 1)
            await self.spend(tokens)
            yield

    def heed(self, headers: Mapping[str, str]) -> None:
        """Wait with the next calls until the vendor has requests or tokens left, where its headers say that it has
        none."""
        self.told |= limits_of(headers)
        wait = exhausted_for(headers)
        if wait is not None:
            self._opens_at = max(self._opens_at, asyncio.get_running_loop().time() + wait)

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
    limiter, gate, prefixes: shared by everything that asks this endpoint.
    max_output_tokens: most tokens of an answer; None: as the request says.
    thinking_tokens: added to the limit of an answer, as thinking counts against it.
    """

    provider: str
    key_variable: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    limiter: RateLimiter = field(default_factory=RateLimiter)
    gate: Gate = field(default_factory=Gate)
    prefixes: WarmPrefixes = field(default_factory=WarmPrefixes)
    max_output_tokens: int | None = None
    thinking_tokens: int = 0

    @property
    def address(self) -> str:
        """Its address as messages name it."""
        own = self.base_url or os.environ.get(BASE_URL_VARIABLES.get(self.provider, ""))
        return without_password(own) if own else f"the address of {self.provider}"

    def key(self, spec: str) -> str:
        """The key as it is sent; empty where none is needed. Raises CredentialsRefused; `spec` names the model."""
        key = (self.api_key or "").strip()
        if self.key_variable and not key:
            known = f"set {self.key_variable}, or write it into {places.keys_file()}"
            raise CredentialsRefused(f"{spec} needs a key: {known}")
        if not (key.isascii() and key.isprintable()):
            raise CredentialsRefused(f"{self.key_variable} contains characters that no key has; set it again")
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
        except (PaperdeskError, CallFailed):
            raise
        except Exception as caught:
            error = ErrorReply.of(caught)
            if error is None:
                raise CallFailed(self._failure(caught, deadline)) from None
            status = f" (HTTP {error.status})" if error.status >= 400 else ""
            at = f" at {self.address}" if error.is_elsewhere else ""
            said = one_line(self._without_key(error.vendor_text))
            words = f"{said}{status}{at}"
            if error.kind is None:
                what, check = "access" if error.status == 403 else "the key", self.key_variable
                check = check or f"key_env of [endpoints.{self.provider}]"
                raise CredentialsRefused(f"{name}: {what} was refused{status}: {said}{at}; check {check}") from None
            if error.kind is FailureKind.TIMED_OUT:
                words = f"no answer within {deadline:g} s: {words}"
            if error.kind is FailureKind.NO_CREDIT:
                account = f"the account of {self.key_variable}" if self.key_variable else "the account"
                words = f"{account} at {self.provider}: {words}"
            elif error.wait is not None:
                words = f"{words}; asked to wait {error.wait:g} s"
            raise CallFailed(ModelFailure(error.kind, words), error.wait) from None

    def _failure(self, error: Exception, deadline: float) -> ModelFailure:
        """The failure of an error without a reply. One that is neither the endpoint's nor the network's is a bug of
        ours and is raised again."""
        kind = _kind_of_error(error)
        if kind is None:
            raise error
        if kind is FailureKind.TIMED_OUT:
            return ModelFailure(kind, f"no answer within {deadline:g} s")
        if kind is FailureKind.MALFORMED:
            return ModelFailure(kind, f"the endpoint's reply is not the API's JSON ({type(error).__name__})")
        # "Connection error." alone helps nobody.
        words = (str(one) or type(one).__name__ for one in (error, error.__cause__) if one is not None)
        at = f" at {self.address}" if error.__cause__ is not None else ""
        return ModelFailure(kind, one_line(self._without_key(" ".join(dict.fromkeys(words)))) + at)

    def _without_key(self, text: str) -> str:
        """A text without the key: an endpoint may echo what it was sent."""
        key = (self.api_key or "").strip()
        return text.replace(key, "[key]") if len(key) >= _SHORTEST_SECRET else text
