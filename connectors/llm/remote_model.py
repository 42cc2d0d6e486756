"""What every model behind an address has in common: gate, deadline, pictures, price, failures."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from connectors.llm.answer_json import NotAnAnswer, parse_answer
from connectors.llm.call_gate import CallGate
from connectors.llm.failures import failure_of, one_line, status_of
from connectors.llm.request_hash import request_hash
from engine.domain.chart import ChartSpec
from engine.domain.model_call import FailureKind, ModelFailure, ModelRequest, ModelResult, Usage
from engine.domain.model_price import PriceTable
from engine.errors import ConfigError, CredentialsRefused
from engine.ports import ChartPainter

OnDelta = Callable[[str], None]
Pictures = Mapping[ChartSpec, bytes]
"""The PNG of every chart in a request; empty for a model that sees none."""

_retry_after: ContextVar[list[str]] = ContextVar("retry_after")
"""Of the call that runs in this context: the Retry-After of the last reply, if that was a 429."""


async def note_retry_after(response: Any) -> None:
    """An event hook for a vendor's HTTP client: the packages wait out a 429 in silence, and a deadline that
    passes meanwhile should be told as what it is."""
    seen = _retry_after.get(None)
    if seen is not None:
        seen[:] = [response.headers.get("retry-after", "some")] if response.status_code == 429 else []


@contextmanager
def hear_retry_after() -> Iterator[list[str]]:
    """What `note_retry_after` hears during the call in this block; empty but after a 429."""
    asked_to_wait: list[str] = []
    token = _retry_after.set(asked_to_wait)
    try:
        yield asked_to_wait
    finally:
        _retry_after.reset(token)


@dataclass(frozen=True, slots=True)
class Reply:
    """What an endpoint said, in our words. `ending` tells a whole answer from one cut at a limit and a
    refusal; `cache_write_tokens` is the part of the input that the provider wrote to its cache."""

    text: str
    ending: Literal["whole", "cut off", "refused"]
    stop_reason: str
    usage: Usage
    cache_write_tokens: int


class RemoteModel(ABC):
    """A LanguageModel behind an address. One instance belongs to one event loop.

    Subclasses say how a request is put to their vendor's package. Without a painter the model sees no charts.
    """

    def __init__(
        self,
        *,
        provider: str,
        model: str,
        api_key: str | None,
        key_variable: str,
        needs_key: bool,
        base_url: str | None,
        painter: ChartPainter | None,
        prices: PriceTable,
        gate: CallGate | None,
        sees: bool,
    ) -> None:
        self.provider = provider
        self.model = model
        self.spec = f"{provider}:{model}"
        self.label = f"{model} ({provider})"
        self.sees = sees and painter is not None
        self._key = checked_key(api_key, key_variable, self.spec, needs_key)
        self._key_variable = key_variable
        self._base_url = checked_url(base_url, self.spec)
        self._painter = painter
        self._price = prices.find(provider, model)
        self._gate = gate or CallGate()
        self._opening = asyncio.Lock()
        self._opened = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r})"

    async def answer(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResult:
        """Answers one request. The deadline of the settings runs from the moment the gate lets the call
        through.

        Raises CredentialsRefused for a key that the endpoint refuses and ConfigError for a sampling value
        that the user insists on and the model takes not; all other trouble is a failure in the result.
        """
        digest = request_hash(
            self.provider, self.model, request, self._painter.version if self.sees and self._painter else None
        )
        notes: list[str] = []
        pictures = await self._paint(request, notes)
        length = len(request.system) + sum(len(message.text) for message in request.messages)
        async with self._gate.pass_through(length, request.settings.max_output_tokens):
            started = time.perf_counter()
            reply, failure = await self._call(request, pictures, on_delta, notes)
            latency = time.perf_counter() - started
        answer: Mapping[str, Any] | None = None
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

    @abstractmethod
    def _open(self) -> None:
        """Imports the vendor's package and makes its client; runs once, in a thread, as the import takes
        seconds."""

    @abstractmethod
    async def _ask(
        self, request: ModelRequest, pictures: Pictures, on_delta: OnDelta | None, notes: list[str]
    ) -> Reply:
        """Puts one request to the endpoint; may raise whatever the package raises."""

    @abstractmethod
    async def aclose(self) -> None:
        """Closes connections; afterwards the model answers no more."""

    async def _call(
        self, request: ModelRequest, pictures: Pictures, on_delta: OnDelta | None, notes: list[str]
    ) -> tuple[Reply | None, ModelFailure | None]:
        deadline = request.settings.timeout
        with hear_retry_after() as asked_to_wait:
            try:
                async with self._opening:
                    if not self._opened:
                        await asyncio.to_thread(self._open)
                        self._opened = True
                async with asyncio.timeout(deadline):
                    return await self._ask(request, pictures, on_delta, notes), None
            except (CredentialsRefused, ConfigError):
                raise
            except Exception as error:
                if status_of(error) in {401, 403}:
                    raise CredentialsRefused(
                        f"{self.spec}: the key was refused (HTTP {status_of(error)}); check {self._key_variable}"
                    ) from None
                waiting = asked_to_wait[0] if asked_to_wait else None
                return None, failure_of(error, deadline, waiting, secret=self._key)

    async def _paint(self, request: ModelRequest, notes: list[str]) -> Pictures:
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
        """A sampling value is a wish: noted where a model takes none, an error where the user set it."""
        value = request.settings.temperature
        if request.settings.insist:
            raise ConfigError(f"{self.spec} takes no temperature ({value:g} is set); remove it or name another model")
        notes.append(f"temperature {value:g} not sent: {self.model} takes none")


def checked_key(key: str | None, variable: str, spec: str, needed: bool) -> str:
    """The key as it is sent; empty where none is needed. Raises CredentialsRefused."""
    key = (key or "").strip()
    if needed and not key:
        raise CredentialsRefused(f"{spec} needs a key: set {variable}")
    if not (key.isascii() and key.isprintable()):
        raise CredentialsRefused(f"{variable} holds characters that no key has; set it again")
    return key


def checked_url(url: str | None, spec: str) -> str | None:
    """The base URL as it was given. Raises ConfigError for one that is none."""
    if url is not None and not url.startswith(("http://", "https://")):
        raise ConfigError(f"the base URL of {spec} should start with http:// or https://, not {url!r}")
    return url


def _read(reply: Reply) -> tuple[Mapping[str, Any] | None, ModelFailure | None]:
    """The answer that a reply holds, or why it holds none."""
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
