"""Base of the models behind an address: rate limit, deadline, images, price, failures.

A vendor's adapter adds the shape of its requests and replies alone, so that both behave alike in trouble.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from connectors.llm.answer_json import NotAnAnswer, parse_answer
from connectors.llm.endpoint import Endpoint, has_no_capacity, names_parameter, refuses_image, refuses_stream
from connectors.llm.gate import CallFailed
from connectors.llm.paid_results import StoredBatch, request_hash
from connectors.llm.service_reply import ErrorReply, StreamCut, one_line
from connectors.llm.warm_prefixes import prefix_key
from engine.domain.chart import ChartSpec
from engine.domain.model_call import (
    BATCH,
    REPAIRED,
    TIERS,
    VENDORS,
    AnswerOptions,
    FailureKind,
    Message,
    ModelFailure,
    ModelRequest,
    ModelResult,
    PriceTable,
    UnansweredCall,
    Usage,
)
from engine.errors import BudgetReached, ConfigError, TryAgainLater
from engine.ports import ChartPainter

_LARGER = 4
"""Factor of the token limit when an answer was cut at it."""
_CHARACTERS = 4
"""Characters of a token, about."""
_LONGEST_ANSWER = 100_000
"""Characters that are read and stored of an answer: the longest of the schemas take about half of them."""

_CHART_TOKENS = 1500
"""About what a chart costs a model that sees."""
_OVERHEAD_TOKENS = 100
"""Tokens of a request's frame: roles, names, format."""

TIER, FLEX, FULL_PRICE = "service_tier", "flex", "default"
"""OpenAI's parameter of its tiers, and two of its values."""
_FLEX_DEADLINE = 900.0
"""Seconds that the vendor asks to wait for an answer at its flex tier."""
_BATCH_DEADLINE = 600.0
"""Seconds for what a vendor says of a batch, and for sending it: pictures make it large."""
CLOCKS_APART = timedelta(minutes=10)
"""The most by which a vendor's clock and ours differ."""
LIMIT_NAMES = frozenset({"max_tokens", "max_completion_tokens"})
"""The vendors' parameters of the longest answer."""
_SMALLEST_CONTEXT = 256
"""Tokens that no service cuts."""

T = TypeVar("T")

TOOL_CALL = "an answer as a tool call"
"""The repair of an answer that came as the arguments of a tool."""

OnDelta = Callable[[str], None]
Images = Mapping[ChartSpec, bytes]
"""The PNG of every chart in a request; empty for a model without vision."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A vendor's reply, translated.

    `ending` distinguishes a complete answer from one cut at a limit and a refusal; `cache_write_tokens` is the part of
    the input that the provider wrote to its cache; `called` is True where the answer came as the arguments of a tool.
    """

    text: str
    ending: Literal["whole", "cut off", "refused"]
    stop_reason: str
    usage: Usage
    cache_write_tokens: int
    tier: str = ""
    called: bool = False


class Allowance(Protocol):
    """The allowance of the calls for one question."""

    async def cover(self, taken: Usage, limit: int) -> int:
        """Reserve a call with an answer of up to `limit` tokens, beside what calls before it have taken; the limit that
        there is room for. Raises BudgetReached."""

    def saw(self, usage: Usage) -> None:
        """Learn from what the service has counted."""


@dataclass(slots=True)
class _Call:
    """One question on its way.

    request, images: the question.
    requested: about its tokens.
    allowance: what its calls may cost; None where nothing limits them.
    on_delta: receives the reply as it streams.
    notes: lines for a person.
    failed: the calls for it that failed.
    full_price: True once the flex tier had no capacity for it.
    begun: True once a stream has begun that has not ended.
    received: characters of it.
    spent: tokens of replies that were not enough.
    """

    request: ModelRequest
    images: Images
    requested: int
    on_delta: OnDelta | None
    allowance: Allowance | None = None
    notes: list[str] = field(default_factory=list)
    failed: list[UnansweredCall] = field(default_factory=list)
    full_price: bool = False
    begun: bool = False
    received: int = 0
    spent: Usage = field(default_factory=Usage)

    def receive(self, text: str) -> None:
        """Pass on a piece of the reply, and count it."""
        self.begun = True
        self.received += len(text)
        if self.on_delta is not None:
            self.on_delta(text)

    @property
    def taken(self) -> Usage:
        """The tokens of the calls before this one."""
        return sum((Usage(one.input_tokens, 0, one.output_tokens) for one in self.failed), self.spent)

    def used(self) -> Usage:
        """The tokens of a call that failed: those of a stream that was cut are an estimate."""
        if not self.begun:
            return self.spent
        return self.spent + Usage(self.requested, 0, self.received // _CHARACTERS)


class BatchRefused(TryAgainLater):
    """A batch that its vendor has not begun: nothing of it is answered or paid."""


class _ImageRefused(Exception):
    """A refusal of the pictures in a request."""


def without_images(spec: str, digest: str) -> ModelResult:
    """The result of a question with pictures to a model that takes none."""
    return ModelResult(
        model=spec,
        failure=ModelFailure(FailureKind.NO_IMAGES, "the question has pictures"),
        cost=Decimal(0),
        request_hash=digest,
        notes=(f"figures in place of the image: {spec} takes no images",),
    )


class RemoteModel(ABC):
    """A LanguageModel behind an address. One instance belongs to one event loop.

    Subclasses put requests to their vendor's package. Refused pictures and streams are not tried a second time.
    """

    OPTIONS: ClassVar[Mapping[str, str]]
    """The vendor's parameters by the options that they answer to."""
    _takes_images = True
    _streams = True
    by_tool = False
    """True where the answer is asked for as the arguments of a tool, which a trial alone does."""

    def __init__(self, model: str, endpoint: Endpoint, prices: PriceTable, painter: ChartPainter | None = None) -> None:
        """Connect nothing yet; without a painter the model is shown no charts."""
        self.model = model
        self.spec = f"{endpoint.provider}:{model}"
        self.label = f"{model} ({endpoint.provider})"
        self.sees = painter is not None
        self._endpoint = endpoint
        self._price = prices.find(endpoint.provider, model)
        self._painter = painter
        self._opening = asyncio.Lock()
        self._client: Any = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r})"

    @property
    def limits(self) -> Mapping[str, int]:
        """Requests and tokens a minute that the service's headers have told so far."""
        return self._endpoint.limiter.told

    async def answer(
        self, request: ModelRequest, on_delta: OnDelta | None = None, allowance: Allowance | None = None
    ) -> ModelResult:
        """Answer one request. The deadline of the settings starts when the rate limit admits the call.

        Raises CredentialsRefused without a key and for one that the endpoint refuses, ConfigError for an invalid
        address and for a sampling value that the user insists on and the model does not take; any other trouble is a
        failure in the result.
        """
        painter_version = None if self._painter is None else self._painter.version
        digest = request_hash(self._endpoint.provider, self.model, request, painter_version)
        if not self._takes_images and any(message.charts for message in request.messages):
            return without_images(self.spec, digest)
        call = _Call(request, {}, self.estimated_tokens(request), on_delta, allowance)
        call.images = await self._paint(request, call.notes)
        prefix = prefix_key(request.system, self.model)
        limiter, longest, started = self._endpoint.limiter, deadline(request), time.perf_counter()
        try:
            async with self._endpoint.prefixes.after_the_first(prefix), limiter.slot(call.requested, longest):
                started = time.perf_counter()
                reply = await self._endpoint.gate.call(partial(self._call, call), longest)
                await limiter.spend(reply.usage.output_tokens)
                result = self._result(reply, digest, call.notes)
        except CallFailed as error:
            notes = tuple(call.notes)
            result = ModelResult(
                model=self.spec, failure=error.failure, request_hash=digest, cost=Decimal(0), notes=notes
            )
        except _ImageRefused:
            return replace(without_images(self.spec, digest), failed=tuple(call.failed))
        return replace(result, latency=time.perf_counter() - started, failed=tuple(call.failed))

    def _result(self, reply: Reply, digest: str, notes: Sequence[str]) -> ModelResult:
        """The result that a reply is."""
        answer, failure, repairs = _read(reply)
        return ModelResult(
            model=self.spec,
            answer=answer,
            failure=failure,
            text=_storable(reply.text),
            stop_reason=reply.stop_reason,
            tier=reply.tier,
            usage=reply.usage,
            cost=self._cost(reply),
            request_hash=digest,
            notes=(*notes, *(f"{REPAIRED}{repair}" for repair in repairs)),
        )

    def _cost(self, reply: Reply) -> Decimal | None:
        """USD of a reply; None where the price is not known, or the tokens are not and the model is not free."""
        if self._price is None or not (reply.usage.counted or self._price.is_free):
            return None
        share = TIERS.get(reply.tier)
        return None if share is None else share * self._price.cost(reply.usage, reply.cache_write_tokens)

    def _failed(self, call: _Call, failure: ModelFailure, latency: float) -> UnansweredCall:
        used, cost = call.used(), Decimal(0)
        return UnansweredCall(
            model=self.spec,
            kind=failure.kind,
            attempt=len(call.failed) + 1,
            detail=failure.detail,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            estimated=call.begun,
            cost=cost if not used.counted else None if self._price is None else self._price.cost(used),
            latency=latency,
        )

    @property
    def takes_batches(self) -> bool:
        """True at a vendor, False at an endpoint that has its interface."""
        return self._endpoint.provider in VENDORS

    async def batch_lines(self, part: Mapping[str, tuple[ModelRequest, int]]) -> dict[str, Mapping[str, Any]]:
        """The parameters of the calls of a batch, by name, of questions that each have a limit for their answer."""
        lines: dict[str, Mapping[str, Any]] = {}
        for name, (request, limit) in part.items():
            line = self._parameters(request, await self._paint(request, []), [])
            line.pop(TIER, None)
            lines[name] = {word: min(value, limit) if word in LIMIT_NAMES else value for word, value in line.items()}
        return lines

    def batched_result(self, reply: Reply, digest: str, request: ModelRequest | None) -> ModelResult:
        """The result of a question, where it is known, by the reply that came in a batch."""
        notes: list[str] = []
        if request is not None:
            self._parameters(request, {}, notes)
        return self._result(replace(reply, tier=BATCH), digest, notes)

    async def about_batch(self, ask: Callable[[], Awaitable[T]], *, once: bool = False) -> T:
        """The vendor's word on a batch, requested `once` alone where a second time would be another batch. Raises
        TryAgainLater, ConfigError and CredentialsRefused."""

        async def told(timeout: float) -> T:
            with self._endpoint.errors(self.spec, _BATCH_DEADLINE):
                await self._open()
                async with asyncio.timeout(timeout):
                    return await ask()

        try:
            return await (told(_BATCH_DEADLINE) if once else self._endpoint.gate.call(told, _BATCH_DEADLINE))
        except CallFailed as error:
            said = f"{self.spec}, asked for a batch: {error.failure.kind}: {error.failure.detail}"
            if error.failure.kind is FailureKind.NOT_CONFIGURED:
                raise ConfigError(f"{said}; start a new run without --batch, which reuses recorded answers") from None
            raise TryAgainLater(f"{said}; try again later, nothing is sent twice") from None

    @abstractmethod
    async def send_batch(self, key: str, lines: Mapping[str, Mapping[str, Any]]) -> str:
        """Send calls as one batch, by our name for it where the vendor keeps one; the vendor's id for it."""

    @abstractmethod
    async def find_batch(self, batch: StoredBatch, known_ids: Collection[str | None]) -> str | None:
        """The vendor's id for a batch that was about to be sent, None where it did not; `known_ids` are others."""

    @abstractmethod
    async def batch_replies(self, name: str) -> dict[str, Reply] | None:
        """The replies of a batch by the names of their calls, without those that failed or expired; None while it is
        under way. Raises BatchRefused."""

    async def aclose(self) -> None:
        """Close connections; afterwards the model answers no more."""
        if self._client is not None:
            await self._client.close()

    @abstractmethod
    def _make_client(self) -> Any:
        """Import the vendor's package and make its client; runs once, in a thread, as the import takes seconds."""

    @abstractmethod
    def _image(self, data: str) -> dict[str, Any]:
        """The part of a turn that shows a PNG, given in base64."""

    @abstractmethod
    def _parameters(self, request: ModelRequest, images: Images, notes: list[str]) -> dict[str, Any]:
        """Parameters of the vendor's call; `notes` gets a line for whatever is left out of them."""

    @property
    def _streamed(self) -> Mapping[str, Any]:
        """Parameters of a call whose reply is streamed."""
        return {"stream": True}

    @abstractmethod
    async def _received(self, parameters: dict[str, Any], timeout: float, on_delta: OnDelta) -> Reply:
        """Call for a reply, which comes whole or in pieces; may raise any error of the package."""

    @abstractmethod
    def _leave_out(self, error: Exception, parameters: dict[str, Any]) -> bool:
        """Leave out, from now on, the parameter that an error refuses; False where it names none."""

    async def _open(self) -> None:
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._make_client)

    async def _call(self, call: _Call, timeout: float) -> Reply:
        """Make one attempt; one that fails is kept with the call."""
        call.begun, call.received, call.spent = False, 0, Usage()
        slots, began, started = self._endpoint.limiter.slots, _now(), time.perf_counter()
        try:
            with self._endpoint.errors(self.spec, deadline(call.request)):
                await self._open()
                began = _now()
                async with asyncio.timeout(timeout):
                    reply = await self._ask_whole(call, timeout)
                slots.answered(call.request.purpose, began, _now())
                return reply
        except (CallFailed, BudgetReached) as error:
            # There was room for the first call: what had no room is a further one, and the first is paid.
            failed = (
                error if isinstance(error, CallFailed) else CallFailed(ModelFailure(FailureKind.NO_CREDIT, str(error)))
            )
            call.failed.append(self._failed(call, failed.failure, time.perf_counter() - started))
            if failed.failure.kind is FailureKind.RATE_LIMITED:
                slots.refused(began, _now())
            raise failed from None

    async def _ask_whole(self, call: _Call, timeout: float) -> Reply:
        """Ask, and once more with a larger limit where the answer was cut."""
        request, reply = call.request, await self._ask(call, timeout)
        larger = _with_larger_limit(request)
        if reply.ending != "cut off" or self.output_limit(larger) == self.output_limit(request):
            return reply
        try:
            call.spent = reply.usage
            again = await self._send(self._parameters_at_tier(call, larger, []), timeout, call)
        except ErrorReply as error:
            if error.status not in {400, 422} and not has_no_capacity(error):
                raise
            return reply  # the endpoint allows no larger limit, or its tier has no capacity any more
        call.notes.append(
            f"cut at {reply.usage.output_tokens} tokens, asked once more with {self.output_limit(larger)} tokens"
        )
        written = reply.cache_write_tokens + again.cache_write_tokens
        return replace(again, usage=reply.usage + again.usage, cache_write_tokens=written)

    async def _ask(self, call: _Call, timeout: float) -> Reply:
        while True:
            notes: list[str] = []
            parameters = self._parameters_at_tier(call, call.request, notes)
            streamed = call.on_delta is not None and self._streams
            try:
                reply = await self._send(parameters, timeout, call)
            except Exception as error:
                if parameters.get(TIER) == FLEX and has_no_capacity(error):
                    call.full_price = True
                    call.notes.append(f"asked at the standard tier: {self.model} had no capacity at the flex tier")
                    continue
                self._check_options(error, call.request.options)
                if self._leave_out(error, parameters):
                    continue
                if call.images and refuses_image(error):
                    self._takes_images = False
                    raise _ImageRefused from error
                if not streamed or not refuses_stream(error):
                    raise
                self._streams = False
                continue
            call.notes.extend(notes)
            return reply

    def _parameters_at_tier(self, call: _Call, request: ModelRequest, notes: list[str]) -> dict[str, Any]:
        """The parameters of a call, at full price where the flex tier had no capacity for its question."""
        parameters = self._parameters(request, call.images, notes)
        return {**parameters, TIER: FULL_PRICE} if call.full_price else parameters

    def _check_options(self, error: Exception, options: AnswerOptions) -> None:
        """Raise ConfigError where an error refuses an option of the question."""
        for name, parameter in self.OPTIONS.items():
            value = getattr(options, name)
            if value is not None and names_parameter(error, parameter):
                words = f"{self.spec} does not take {name} = {value}: {one_line(str(error))}"
                raise ConfigError(f"{words}; remove it or name another model")

    async def _send(self, parameters: dict[str, Any], timeout: float, call: _Call) -> Reply:
        """Call once, within what it may cost. Raises ErrorReply for a reply that is no answer, CallFailed for an answer
        to a part of the question alone, BudgetReached."""
        if call.allowance is None:
            reply = await self._sent(parameters, timeout, call)
        else:
            for name in LIMIT_NAMES & set(parameters):
                parameters[name] = await call.allowance.cover(call.taken, parameters[name])
            reply = await self._sent(parameters, timeout, call)
            call.allowance.saw(reply.usage)
        _check_uncut(parameters, reply.usage, call)
        return reply

    async def _sent(self, parameters: dict[str, Any], timeout: float, call: _Call) -> Reply:
        """Call once, streamed where there is a receiver and the model is not known to refuse it."""
        try:
            if call.on_delta is not None and self._streams:
                parameters |= self._streamed
                reply = await self._received(parameters, timeout, call.receive)
                call.begun, call.received = False, 0
                return reply
            reply = await self._received(parameters, timeout, lambda text: None)
        except StreamCut:
            call.begun = call.on_delta is not None
            raise
        except Exception as error:
            if (said := ErrorReply.of(error)) is None:
                raise
            raise said from None
        if call.on_delta is not None:
            call.on_delta(reply.text)
        return reply

    async def _paint(self, request: ModelRequest, notes: list[str]) -> Images:
        charts = [chart for message in request.messages for chart in message.charts]
        if charts and self._painter is None:
            notes.append(f"{len(charts)} chart(s) not shown: {self.model} takes no images")
        if not charts or self._painter is None:
            return {}
        painted = await asyncio.gather(*(self._painter.paint(chart) for chart in charts))
        return dict(zip(charts, painted, strict=True))

    def _turns(self, request: ModelRequest, images: Images) -> list[dict[str, Any]]:
        """The conversation: text, then a title and an image per chart.

        Images go with the user's turns only; no vendor takes them from the assistant.
        """

        def content(turn: Message) -> str | list[dict[str, Any]]:
            charts = [chart for chart in turn.charts if chart in images] if turn.role == "user" else []
            if not charts:
                return turn.text
            parts: list[dict[str, Any]] = []
            for chart in charts:
                parts.append({"type": "text", "text": f"Chart: {chart.title}"})
                parts.append(self._image(base64.b64encode(images[chart]).decode("ascii")))
            return [{"type": "text", "text": turn.text}, *parts]

        return [{"role": turn.role, "content": content(turn)} for turn in request.messages]

    def output_limit(self, request: ModelRequest) -> int:
        """The token limit of a call: of the answer and of the thinking before it."""
        wished, most = request.settings.max_output_tokens, self._endpoint.max_output_tokens
        return (wished if most is None else min(wished, most)) + self._endpoint.thinking_tokens

    def estimated_tokens(self, request: ModelRequest) -> int:
        """About the tokens that a service counts for a question: of four bytes each, with its schema and pictures."""
        texts = [request.system, *(message.text for message in request.messages), json.dumps(request.schema)]
        charts = sum(len(message.charts) for message in request.messages) if self.sees else 0
        asked = sum(len(text.encode(errors="replace")) for text in texts) // _CHARACTERS
        return asked + charts * _CHART_TOKENS + _OVERHEAD_TOKENS

    def _refuse_or_drop_temperature(self, request: ModelRequest, notes: list[str]) -> None:
        """Drop the temperature with a note, or raise ConfigError where the user insists on it."""
        value = request.settings.temperature
        if request.settings.insist:
            raise ConfigError(f"{self.spec} takes no temperature ({value:g} is set); remove it or name another model")
        notes.append(f"temperature {value:g} not sent: {self.model} takes none")


def deadline(request: ModelRequest) -> float:
    """Seconds after which a question is given up: the flex tier may take minutes."""
    longest = request.settings.timeout
    return max(longest, _FLEX_DEADLINE) if request.options.tier == FLEX else longest


def _now() -> float:
    return asyncio.get_running_loop().time()


def _with_larger_limit(request: ModelRequest) -> ModelRequest:
    """The question as it is asked once more where its answer was cut at the limit."""
    limit = _LARGER * request.settings.max_output_tokens
    return replace(request, settings=replace(request.settings, max_output_tokens=limit))


def _check_uncut(parameters: Mapping[str, Any], usage: Usage, call: _Call) -> None:
    """Raise CallFailed where a service counted less than half of the tokens that were sent: it has cut the prompt."""
    sent = sum(map(len, _texts((parameters.get("system"), parameters.get("messages"))))) // _CHARACTERS
    if sent >= _SMALLEST_CONTEXT and usage.counted and 2 * usage.input_tokens < sent:
        call.spent = call.spent + usage
        raise CallFailed(
            ModelFailure(
                FailureKind.NOT_CONFIGURED,
                f"the service counted {usage.input_tokens:,} tokens of a prompt of about {sent:,}: it truncated "
                "the prompt because its context window is too small; raise it on the model server (num_ctx, "
                "--ctx-size, n_ctx, max_model_len)",
            )
        )


def _texts(content: Any) -> Iterator[str]:
    """The texts of a system prompt or of turns, pictures apart."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        yield from _texts(content.get("text") or content.get("content"))
    elif isinstance(content, list | tuple):
        for part in content:
            yield from _texts(part)


def used(
    requested: int | None, made: int | None, *, cached: int | None, written: int | None, reasoned: int | None
) -> tuple[Usage, int]:
    """The tokens of a reply, and those of its input that were written to a cache; none where a count is unknown."""
    if not requested or made is None:
        return Usage(), 0
    read = min(cached or 0, requested)
    return Usage(requested, read, made, min(reasoned or 0, made)), min(written or 0, requested - read)


def _storable(text: str) -> str:
    """The text up to its limit, without halves of characters (lone surrogates): JSON can spell them, no file takes
    them."""
    return text[:_LONGEST_ANSWER].encode(errors="replace").decode()


def _read(reply: Reply) -> tuple[Mapping[str, Any] | None, ModelFailure | None, tuple[str, ...]]:
    """The answer in a reply, or the failure, and what was repaired of the answer."""
    if reply.ending == "refused":
        reason = one_line(_storable(reply.text)) or f"no reason given ({reply.stop_reason})"
        return None, ModelFailure(FailureKind.REFUSED, f"the model declined: {reason}"), ()
    if reply.ending == "cut off":
        limit = f"cut at the token limit after {reply.usage.output_tokens} tokens ({reply.stop_reason})"
        return None, ModelFailure(FailureKind.CUT_OFF, limit), ()
    if len(reply.text) > _LONGEST_ANSWER:
        length = f"the answer is too long: {len(reply.text)} characters, {_LONGEST_ANSWER} at most"
        return None, ModelFailure(FailureKind.MALFORMED, length), ()
    try:
        answer, repairs = parse_answer(reply.text)
    except NotAnAnswer as error:
        return None, ModelFailure(FailureKind.MALFORMED, str(error)), ()
    return answer, None, (*([TOOL_CALL] if reply.called else []), *repairs)


@dataclass(slots=True)
class Received:
    """The content of a vendor's reply, of one piece or of many."""

    on_delta: OnDelta
    text: str = ""
    calls: dict[int, str] = field(default_factory=dict)
    stop_reason: str | None = None

    def add_text(self, text: str) -> None:
        """Add a piece of text."""
        self.text += text
        if text:
            self.on_delta(text)

    def add_call(self, place: int, arguments: str) -> None:
        """Add a piece of the arguments of a tool."""
        self.calls[place] = self.calls.get(place, "") + arguments
        self.on_delta(arguments)

    def whole(self) -> tuple[str, bool]:
        """The text and behind it the arguments of the tool that is called, an answer by another road; several calls are
        a list, and no answer. True where there is any."""
        made = [call for call in self.calls.values() if call.strip()]
        called = made[0] if len(made) == 1 else f"[{', '.join(made)}]"
        return (f"{self.text}\n{called}".strip(), True) if made else (self.text, False)
