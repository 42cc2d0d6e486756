"""Questions to a language model and its answers, as values: a model gets nothing beyond the request.

Model specs, such as `openai:MODEL`, as values: nothing is chosen or connected here.

Prices of models: the cost of a call by the vendor's rates.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal

from engine.domain.chart import ChartSpec
from engine.domain.decision import DecisionKey
from engine.errors import UsageError

Rule = Callable[[Any], Mapping[str, Any]] | str
"""A function of a view that answers without a model, or `MODULE:FUNCTION` for one that is imported when it is used."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of a question.

    `temperature` is the preset's wish, dropped with a note where the model takes none; with `insist` the user has set
    it and it is kept. `timeout` in seconds bounds the whole call.
    """

    temperature: float | None = None
    max_output_tokens: int = 2048
    timeout: float = 120.0
    insist: bool = False


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Options of an answer beside its sampling; None: the model's own. A value that the model refuses is a
    configuration error.

    effort: of the model's reasoning.
    verbosity: of its answer.
    tier: of the vendor's service.
    mask: the level of what is hidden from the model: 1 tickers, 2 names too, 3 dates too, 4 the price level too.
    thinking: adaptive, enabled or disabled, where a model has it apart from effort.
    """

    effort: str | None = None
    verbosity: str | None = None
    tier: str | None = None
    mask: int | None = None
    thinking: str | None = None


NO_OPTIONS = AnswerOptions()
MASKS = range(5)
"""Levels of a mask; 0 hides nothing, and is None in options."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation; charts are values, rendered only for a model with vision."""

    role: Literal["user", "assistant"]
    text: str
    charts: tuple[ChartSpec, ...] = ()


def prompt_hash(system: str, messages: Sequence[Message]) -> str:
    """SHA-256 of a question, charts by fingerprint: equal questions have equal hashes."""
    return _hash_of(system, tuple((m.role, m.text, tuple(chart.fingerprint() for chart in m.charts)) for m in messages))


@lru_cache(maxsize=16)  # the asker wants it as well as the model
def _hash_of(system: str, turns: tuple[tuple[str, str, tuple[str, ...]], ...]) -> str:
    return hashlib.sha256(json.dumps([system, turns], separators=(",", ":")).encode()).hexdigest()


CACHED_FROM = 4_000
"""Characters from which vendors cache the beginning of a question: about 1,024 tokens."""
_LAST_OF_IT = "\nexample>>>"
"""The closing mark of an example (engine/agents/prompts/answer.md)."""


def beginning(system: str) -> str:
    """The part of a system prompt that is the same for all symbols, sessions and owners of a run: up to the end of its
    examples, all of it where there are none."""
    before, end, after = system.rpartition(_LAST_OF_IT)
    return before + end or after


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question.

    purpose: the agent's step.
    session: the session that is decided.
    view: the frozen value that the prompt was rendered from.
    rule: answers the view where no model is asked.
    schema: the JSON schema of the answer.
    sample: tells repeats of the same question apart.
    ahead: True for one that is asked before its session, for whoever asks it then.
    """

    purpose: str
    symbol: str
    session: date
    owner: str
    system: str
    messages: tuple[Message, ...]
    view: Any
    schema_name: str
    schema: Mapping[str, Any]
    settings: ModelSettings = ModelSettings()
    options: AnswerOptions = NO_OPTIONS
    sample: int = 0
    rule: Rule | None = None
    ahead: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call. `input_tokens` counts all input, `cached_input_tokens` the part read from the provider's cache;
    `output_tokens` all output, `reasoning_tokens` the part that the model wrote for itself."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def counted(self) -> bool:
        """True where the model's service has said how many tokens there were: no call is without any."""
        return self.total > 0

    @property
    def total(self) -> int:
        """All tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


class FailureKind(StrEnum):
    """Ways in which a model gives no answer, whatever its vendor calls them; a refused key is an error of its own."""

    RATE_LIMITED = "rate limited"
    TIMED_OUT = "timed out"
    UNAVAILABLE = "unavailable"
    NO_CREDIT = "no credit"
    REFUSED = "refused"
    CUT_OFF = "cut off"
    MALFORMED = "malformed"
    NOT_CONFIGURED = "not configured"
    NO_IMAGES = "takes no images"
    """The question is asked once more, with figures in place of the picture."""
    TOO_LONG = "too long"


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """Reason of a missing answer; `detail` is one line for a person and holds no key."""

    kind: FailureKind
    detail: str


def one_word(key: str) -> Mapping[str, Any]:
    """The JSON schema of an answer of one text, for a model that is tried."""
    return {"type": "object", "properties": {key: {"type": "string"}}, "required": [key], "additionalProperties": False}


PREFLIGHT = "preflight"
"""Purpose of a question that is asked before a run's first one, and the kind of its call."""
AHEAD = "ahead"
"""The kind of a call that was answered ahead of a session to which the run has not come: whoever goes on finds the
answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnansweredCall:
    """A call of a model that no agent got an answer from: one that failed, or a run's preflight.

    kind: the failure's, PREFLIGHT or AHEAD.
    attempt: counts the calls for one answer that failed, from 1.
    detail: one line for a person.
    estimated: True where the tokens are an estimate, made of what was sent and received: of a stream that was cut.
    cost: USD; None where the price is not known.
    latency: seconds.
    """

    model: str
    kind: str
    attempt: int = 1
    detail: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    cost: Decimal | None = Decimal(0)
    latency: float = 0.0


REPAIRED = "repaired: "
"""The beginning of a note on what was repaired of an answer, one for each manner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResult:
    """Result of a question: exactly one of `answer` and `failure` is set.

    answer: parsed JSON, not yet checked against the agent's rules.
    stop_reason, tier: the vendor's; the tier is that of its service, by which it bills, empty where it names none.
    cost: USD; None where the price is not known.
    latency: seconds.
    request_hash: the key of the recorded answer.
    cached: True for a recorded answer.
    notes: lines for a person, such as a dropped temperature.
    failed: calls that failed before this result came, or with it.
    """

    model: str
    answer: Mapping[str, Any] | None = None
    failure: ModelFailure | None = None
    text: str = ""
    stop_reason: str = ""
    tier: str = ""
    usage: Usage = Usage()
    cost: Decimal | None = None
    latency: float = 0.0
    request_hash: str = ""
    cached: bool = False
    notes: tuple[str, ...] = field(default=())
    failed: tuple[UnansweredCall, ...] = ()

    @property
    def repairs(self) -> int:
        """The number of repairs that the answer needed."""
        return sum(note.startswith(REPAIRED) for note in self.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """One call of a model, whole: the question, the answer, and the use that was made of it.

    key: its `owner` is the one whose agent asked; run and cycle are empty until a run records it.
    agent: its name in the registry.
    step: the question's name in events, as the performance reflection has two; empty in a journal.
    attempt: counts from 1; a bad answer is sent back once.
    prompt_hash: SHA-256 of system part and messages.
    prompt_version: of the agent's prompt, empty where it is not recorded.
    charts: those of the question; `seen` is False where the model read their figures as text instead.
    view: the view in a few words.
    outcome: `answered`, `sent back` (a first bad answer) or `abstained` (a last one).
    reason: why an answer was not taken.
    answer: the checked answer as plain JSON, None where there is none.
    sample: tells repeats of one question apart.
    time: when it was recorded, UTC; None before.
    """

    key: DecisionKey
    agent: str
    attempt: int
    prompt_hash: str
    system: str
    messages: tuple[Message, ...]
    result: ModelResult
    outcome: str
    reason: str = ""
    answer: Mapping[str, Any] | None = None
    charts: tuple[ChartSpec, ...] = ()
    seen: bool = True
    sample: int = 0
    view: str = ""
    prompt_version: str = ""
    step: str = ""
    time: datetime | None = None

    def in_run(self, run: str, cycle: int, time: datetime) -> AnswerRecord:
        """The record of a cycle of a run, as the journal has it."""
        return replace(self, key=replace(self.key, run=run, cycle=cycle), time=time)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """One recorded answer of a model; its hash is its result's.

    provider, model: the names that the hash is made with.
    sees: True where the model was shown charts.
    recorded: when, UTC; None for one that an older program recorded.
    """

    provider: str
    model: str
    sees: bool
    result: ModelResult
    recorded: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswers:
    """The recorded answers of one model.

    failed: those that are no answers: refusals, and prose in the place of one.
    cost: USD, None where that of any is unknown.
    first, last: when they were recorded, None where an older program recorded them.
    """

    spec: str
    answers: int = 0
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = Decimal(0)
    first: datetime | None = None
    last: datetime | None = None

    def with_one(self, one: RecordedAnswer) -> ModelAnswers:
        """These and one more."""
        cost, times = one.result.cost, [time for time in (self.first, self.last, one.recorded) if time is not None]
        return replace(
            self,
            answers=self.answers + 1,
            failed=self.failed + (one.result.failure is not None),
            usage=self.usage + one.result.usage,
            cost=None if cost is None or self.cost is None else self.cost + cost,
            first=min(times, default=None),
            last=max(times, default=None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Abilities of a model's service as a probe reported them; all False where it has not answered.

    enforces_schema: its answer came under an enforced schema.
    sees: it read a word in an image.
    streams: an answer came in pieces.
    reports_usage: an answer came with its tokens counted.
    latency: seconds until the first answer was complete.
    problem: the reason why it has not answered; empty where it has.

    The rest is of a trial at length alone:
    thinks: it thought before it answered.
    calls_tools: it answered by a tool when it was given one.
    context: tokens, about, of the longest prompt of which it read the first line; None where it was not tried.
    counted: the part of these tokens that the service counted; None where it counts none.
    limits: requests and tokens a minute that its headers told.
    cost: of all its questions, USD; None where it is not known.
    """

    enforces_schema: bool = False
    sees: bool = False
    streams: bool = False
    reports_usage: bool = False
    latency: float = 0.0
    problem: str = ""
    thinks: bool = False
    calls_tools: bool = False
    context: int | None = None
    counted: float | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    cost: Decimal | None = None


class ModelKind(StrEnum):
    """Kind of a model's provider."""

    OFFLINE = "offline"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    ENDPOINT = "endpoint"
    REPLAY = "replay"


class ReplayMode(StrEnum):
    """Use of recorded answers: never (but recorded), where there is one, or exclusively."""

    LIVE = "live"
    READ_THROUGH = "read-through"
    REPLAY_ONLY = "replay-only"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A parsed model spec.

    `model` is empty for `offline`, and for `replay` where no run is named whose answers are replayed; `endpoint` is the
    name of an `[endpoints.NAME]` and empty for every other kind.
    """

    kind: ModelKind
    model: str = ""
    endpoint: str = ""

    @property
    def provider(self) -> str:
        """The provider's name for prices and recorded answers: the vendor or the endpoint's name."""
        return self.endpoint or self.kind.value

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}" if self.model else self.provider


_ALONE = (ModelKind.OFFLINE, ModelKind.REPLAY)
VENDORS = (ModelKind.OPENAI, ModelKind.ANTHROPIC)
"""Providers with an address and a key variable of their own."""


_FAMILIES = {
    "openai": r"(chat)?gpt|o\d",
    "anthropic": "claude",
    "google": "gemini",
    "xai": "grok",
    "deepseek": "deepseek",
    "ollama": "llama|qwen|mistral|gemma|phi",
}
"""Beginnings of the names of models, by who serves them."""


def replays(text: str | None) -> bool:
    """True for the value of a flag that has recorded answers alone: `replay`, or `replay:RUN` of one run."""
    return text is not None and text.partition(":")[0] == ModelKind.REPLAY


def parse_model_spec(text: str, endpoints: Collection[str] = ()) -> ModelSpec:
    """Parse `offline`, `replay`, `replay:RUN`, `openai:MODEL`, `anthropic:MODEL` and `NAME:MODEL` for a configured
    endpoint.

    A model's own name may hold colons (`local:qwen3:8b`): only the first one separates. Raises UsageError
    that names the nearest possibility.
    """
    head, colon, model = text.strip().partition(":")
    possible = [*(kind.value for kind in _ALONE), *(f"{kind.value}:MODEL" for kind in VENDORS)]
    possible += [f"{name}:MODEL" for name in sorted(set(endpoints).difference(VENDORS))]
    if not colon and head in _ALONE:
        return ModelSpec(ModelKind(head))
    if head == ModelKind.REPLAY and model.strip():
        return ModelSpec(ModelKind.REPLAY, model.strip())
    if colon and head in _ALONE:
        raise UsageError(f"model spec {text!r}: {head!r} stands alone and takes no model; write {head!r}")
    if head in VENDORS or head in endpoints:
        if not model.strip():
            raise UsageError(f"model spec {text!r} names no model; write '{head}:MODEL'")
        if head in VENDORS:
            return ModelSpec(ModelKind(head), model.strip())
        return ModelSpec(ModelKind.ENDPOINT, model.strip(), head)
    meant = _meant(text.strip(), [entry.partition(":")[0] for entry in possible])
    hint = f"did you mean {meant}? " if meant else ""
    raise UsageError(f"unknown model spec {text!r}: {hint}available: {', '.join(possible)}")


def _meant(text: str, names: Sequence[str]) -> str:
    """The spec that is probably meant by a wrong one: of a model without its provider, or with the provider misspelt;
    empty where none is near."""
    head, separator, model = text.partition(":" if ":" in text else "/")
    family = next((provider for provider, models in _FAMILIES.items() if re.match(models, text, re.IGNORECASE)), "")
    if not separator and family in names:
        return f"{family}:{text}"
    near = difflib.get_close_matches(head.lower(), names, n=1)
    if near:
        return near[0] if near[0] in _ALONE else f"{near[0]}:{model or 'MODEL'}"
    return f"{family}:{text}" if family in names else ""


STALE_DAYS = 30
"""Days after which vendors' prices may well have changed."""
_MILLION = Decimal(1_000_000)
_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates in USD per million tokens."""

    input: Decimal
    output: Decimal
    cached_input: Decimal
    cache_write: Decimal


BATCH = "batch"
"""The tier of an answer that came in a batch."""
TIERS = {name: Decimal(1) for name in ("", "auto", "default", "standard", "standard_only")} | {
    name: Decimal("0.5") for name in ("flex", BATCH)
}
"""The part of the list price that a tier of a vendor's service costs; the price of another tier is not known."""
_FREE = Rates(*[Decimal(0)] * 4)


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """The price of one model.

    Calls with more input than `long_over` tokens pay the `long` rates for all of it. `training_cutoff` is a month
    (YYYY-MM), empty where the vendor names none.
    """

    rates: Rates
    long_over: int | None = None
    long: Rates | None = None
    training_cutoff: str = ""

    @property
    def is_free(self) -> bool:
        """True where no call costs anything, however many tokens it takes."""
        return self.long is None and self.rates == _FREE

    def cost(self, usage: Usage, cache_write_tokens: int = 0) -> Decimal:
        """USD for a call; `cache_write_tokens` is the part of the input that the provider wrote to its cache."""
        long = self.long is not None and self.long_over is not None and usage.input_tokens > self.long_over
        rates = self.long if long and self.long is not None else self.rates
        plain = usage.input_tokens - usage.cached_input_tokens - cache_write_tokens
        total = (
            plain * rates.input
            + usage.cached_input_tokens * rates.cached_input
            + cache_write_tokens * rates.cache_write
            + usage.output_tokens * rates.output
        )
        return total / _MILLION


class PriceTable:
    """Prices by provider and model, valid on `as_of`; a user's own (`with_own`) count as valid always."""

    def __init__(self, prices: Mapping[tuple[str, str], ModelPrice], as_of: date) -> None:
        self.as_of = as_of
        self._prices = dict(prices)
        self._own: dict[tuple[str, str], ModelPrice] = {}

    def with_own(self, prices: Mapping[tuple[str, str], ModelPrice]) -> PriceTable:
        """The table with a user's own prices in the place of its."""
        table = PriceTable({**self._prices, **prices}, self.as_of)
        table._own = dict(prices)
        return table

    def find(self, provider: str, model: str) -> ModelPrice | None:
        """The price of a model, or of the model that it is a dated snapshot of; None where it is unknown."""
        exact = self._prices.get((provider, model))
        return exact or self._prices.get((provider, _SNAPSHOT.sub("", model)))

    def stale(self, provider: str, model: str, today: date) -> bool:
        """True where a model's price is of this table, and the table is old by now."""
        return self.dated(provider, model) and (today - self.as_of).days > STALE_DAYS

    def dated(self, provider: str, model: str) -> bool:
        """True where a model's price is of this table, and no user's own."""
        return (provider, model) not in self._own and self.find(provider, model) is not None

    def meant(self, provider: str, model: str) -> str:
        """The model with a price that is probably meant by one without, such as `openai:gpt-5.4-mini`; else empty."""
        known = [] if self.find(provider, model) else [name for by, name in self._prices if by == provider]
        near = difflib.get_close_matches(model, known, 1, cutoff=0.8)
        return f"{provider}:{near[0]}" if near else ""

    def models(self) -> list[tuple[str, str]]:
        """All pairs of provider and model with a price, as they stand in the table: the newest of a vendor first."""
        return list(self._prices)
