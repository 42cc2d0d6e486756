"""Base of the models behind an address: rate limit, deadline, images, price, failures.

A vendor's adapter adds the shape of its requests and replies alone, so that both behave alike in trouble.
"""

from __future__ import annotations

import asyncio
import base64
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal, Required, TypedDict, Unpack

from connectors.llm.answer_json import NotAnAnswer, parse_answer
from connectors.llm.failures import failure_of, one_line, status_of
from connectors.llm.rate_limiter import RateLimiter
from connectors.llm.request_hash import request_hash
from engine.domain.chart import ChartSpec
from engine.domain.model_call import FailureKind, Message, ModelFailure, ModelRequest, ModelResult, Usage
from engine.domain.model_price import PriceTable
from engine.errors import ConfigError, CredentialsRefused, PaperdeskError
from engine.ports import ChartPainter

OnDelta = Callable[[str], None]
Images = Mapping[ChartSpec, bytes]
"""The PNG of every chart in a request; empty for a model without vision."""

_retry_after: ContextVar[list[str]] = ContextVar("retry_after")
"""The Retry-After of the last reply to the call in this context, if that was a 429."""


class CallFailed(Exception):
    """A call to a vendor that failed as `failure` says."""

    def __init__(self, failure: ModelFailure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


async def record_retry_after(response: Any) -> None:
    """An event hook for a vendor's HTTP client.

    The packages wait out a 429 in silence; a deadline that passes meanwhile should be reported as a rate limit.
    """
    recorded = _retry_after.get(None)
    if recorded is not None:
        recorded[:] = [response.headers.get("retry-after", "some")] if response.status_code == 429 else []


@contextmanager
def vendor_errors(name: str, *, key: str, key_variable: str, deadline: float) -> Iterator[None]:
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
            message = f"{name}: the key was refused (HTTP {status_of(error)}); check {key_variable}"
            raise CredentialsRefused(message) from None
        failure = failure_of(error, deadline, recorded[0] if recorded else None, secret=key)
        raise CallFailed(failure) from None
    finally:
        _retry_after.reset(token)


@dataclass(frozen=True, slots=True)
class Reply:
    """A vendor's reply, translated.

    `ending` distinguishes a complete answer from one cut at a limit and a refusal; `cache_write_tokens` is the part of
    the input that the provider wrote to its cache.
    """

    text: str
    ending: Literal["whole", "cut off", "refused"]
    stop_reason: str
    usage: Usage
    cache_write_tokens: int


class ModelOptions(TypedDict, total=False):
    """Options of a remote model.

    api_key: as configured; may be missing where `needs_key` is False.
    prices: the price table.
    painter: renders charts; None: the model gets none.
    limiter: the endpoint's; None: one of its own.
    provider: the vendor, or a configured endpoint's name.
    key_variable: the environment variable of the key, for messages.
    base_url: None: the vendor's own variable, else its own address.
    sees: True for a model with vision.
    needs_key: False for local servers.
    """

    api_key: Required[str | None]
    prices: Required[PriceTable]
    painter: ChartPainter | None
    limiter: RateLimiter | None
    provider: str
    key_variable: str
    base_url: str | None
    sees: bool
    needs_key: bool


class RemoteModel(ABC):
    """A LanguageModel behind an address. One instance belongs to one event loop.

    Subclasses put requests to their vendor's package.
    """

    VENDOR: ClassVar[str]
    KEY_VARIABLE: ClassVar[str]

    def __init__(self, model: str, **options: Unpack[ModelOptions]) -> None:
        """Check the options. Raises CredentialsRefused without a key and ConfigError for an invalid base URL."""
        self.provider = options.get("provider", self.VENDOR)
        self.model = model
        self.spec = f"{self.provider}:{model}"
        self.label = f"{model} ({self.provider})"
        self._painter = options.get("painter")
        self.sees = options.get("sees", True) and self._painter is not None
        self._key_variable = options.get("key_variable", self.KEY_VARIABLE)
        self._key = checked_key(options["api_key"], self._key_variable, self.spec, options.get("needs_key", True))
        self._base_url = checked_url(options.get("base_url"), self.spec)
        self._price = options["prices"].find(self.provider, model)
        self._limiter = options.get("limiter") or RateLimiter()
        self._opening = asyncio.Lock()
        self._client: Any = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r})"

    async def answer(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResult:
        """Answer one request. The deadline of the settings starts when the rate limit admits the call.

        Raises CredentialsRefused for a key that the endpoint refuses and ConfigError for a sampling value that the user
        insists on and the model does not take; any other trouble is a failure in the result.
        """
        digest = request_hash(
            self.provider, self.model, request, self._painter.version if self.sees and self._painter else None
        )
        notes: list[str] = []
        images = await self._paint(request, notes)
        reply: Reply | None = None
        answer: Mapping[str, Any] | None = None
        failure: ModelFailure | None = None
        async with self._limiter.slot():
            started = time.perf_counter()
            try:
                reply = await self._call(request, images, on_delta, notes)
            except CallFailed as error:
                failure = error.failure
            latency = time.perf_counter() - started
        if reply is not None:
            answer, failure = _read(reply)
        return ModelResult(
            model=self.spec,
            answer=answer,
            failure=failure,
            text=reply.text if reply else "",
            stop_reason=reply.stop_reason if reply else "",
            usage=reply.usage if reply else Usage(),
            cost=self._cost(reply),
            latency=latency,
            request_hash=digest,
            notes=tuple(notes),
        )

    async def aclose(self) -> None:
        """Close connections; afterwards the model answers no more."""
        if self._client is not None:
            await self._client.close()

    @abstractmethod
    def _make_client(self) -> Any:
        """Import the vendor's package and make its client; runs once, in a thread, as the import takes seconds."""

    @abstractmethod
    def _parameters(self, request: ModelRequest, images: Images, notes: list[str]) -> dict[str, Any]:
        """Parameters of the vendor's call; `notes` gets a line for whatever is left out of them."""

    @abstractmethod
    async def _complete(self, parameters: dict[str, Any], timeout: float) -> Reply:
        """Call for a reply in one piece; may raise any error of the package."""

    @abstractmethod
    async def _stream(self, parameters: dict[str, Any], timeout: float, on_delta: OnDelta) -> Reply:
        """Call for a streamed reply; may raise any error of the package."""

    @abstractmethod
    def _leave_out(self, error: Exception, parameters: dict[str, Any]) -> bool:
        """Leave out, from now on, the parameter that an error refuses; False where it names none."""

    async def _call(self, request: ModelRequest, images: Images, on_delta: OnDelta | None, notes: list[str]) -> Reply:
        deadline = request.settings.timeout
        with vendor_errors(self.spec, key=self._key, key_variable=self._key_variable, deadline=deadline):
            async with self._opening:
                if self._client is None:
                    self._client = await asyncio.to_thread(self._make_client)
            async with asyncio.timeout(deadline):
                return await self._ask(request, images, on_delta, notes)

    async def _ask(self, request: ModelRequest, images: Images, on_delta: OnDelta | None, notes: list[str]) -> Reply:
        timeout = request.settings.timeout
        while True:
            call_notes: list[str] = []
            parameters = self._parameters(request, images, call_notes)
            try:
                if on_delta is None:
                    reply = await self._complete(parameters, timeout)
                else:
                    reply = await self._stream(parameters, timeout, on_delta)
            except Exception as error:
                if not self._leave_out(error, parameters):
                    raise
                continue
            notes.extend(call_notes)
            return reply

    async def _paint(self, request: ModelRequest, notes: list[str]) -> Images:
        charts = [chart for message in request.messages for chart in message.charts]
        if not charts:
            return {}
        if not self.sees or self._painter is None:
            notes.append(f"{len(charts)} chart(s) not shown: {self.model} takes no pictures")
            return {}
        painted = await asyncio.gather(*(self._painter.paint(chart) for chart in charts))
        return dict(zip(charts, painted, strict=True))

    def _cost(self, reply: Reply | None) -> Decimal | None:
        if reply is None or self._price is None:
            return None
        return self._price.cost(reply.usage, reply.cache_write_tokens)

    def _refuse_or_drop_temperature(self, request: ModelRequest, notes: list[str]) -> None:
        """Drop the temperature with a note, or raise ConfigError where the user insists on it."""
        value = request.settings.temperature
        if request.settings.insist:
            raise ConfigError(f"{self.spec} takes no temperature ({value:g} is set); remove it or name another model")
        notes.append(f"temperature {value:g} not sent: {self.model} takes none")


def content_parts(
    turn: Message, images: Images, image_part: Callable[[str], dict[str, Any]]
) -> str | list[dict[str, Any]]:
    """Content of a turn: its text, or a title and an image (`image_part` of its base64) per chart before it.

    Images go with the user's turns only; no vendor takes them from the assistant.
    """
    charts = [chart for chart in turn.charts if chart in images] if turn.role == "user" else []
    if not charts:
        return turn.text
    parts: list[dict[str, Any]] = []
    for chart in charts:
        parts.append({"type": "text", "text": f"Chart: {chart.title}"})
        parts.append(image_part(base64.b64encode(images[chart]).decode("ascii")))
    return [*parts, {"type": "text", "text": turn.text}]


def checked_key(key: str | None, variable: str, spec: str, needed: bool) -> str:
    """The key as it is sent; empty where none is needed. Raises CredentialsRefused."""
    key = (key or "").strip()
    if needed and not key:
        raise CredentialsRefused(f"{spec} needs a key: set {variable}")
    if not (key.isascii() and key.isprintable()):
        raise CredentialsRefused(f"{variable} holds characters that no key has; set it again")
    return key


def checked_url(url: str | None, spec: str) -> str | None:
    """The base URL as given. Raises ConfigError for one without http:// or https://."""
    if url is not None and not url.startswith(("http://", "https://")):
        raise ConfigError(f"the base URL of {spec} should start with http:// or https://, not {url!r}")
    return url


def _read(reply: Reply) -> tuple[Mapping[str, Any] | None, ModelFailure | None]:
    """The answer in a reply, or the failure."""
    if reply.ending == "refused":
        said = one_line(reply.text) or f"no reason given ({reply.stop_reason})"
        return None, ModelFailure(FailureKind.REFUSED, f"the model declined: {said}")
    if reply.ending == "cut off":
        limit = f"cut at the token limit after {reply.usage.output_tokens} tokens ({reply.stop_reason})"
        return None, ModelFailure(FailureKind.CUT_OFF, limit)
    try:
        return parse_answer(reply.text), None
    except NotAnAnswer as error:
        return None, ModelFailure(FailureKind.MALFORMED, str(error))
