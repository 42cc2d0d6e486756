"""Model specs, such as `openai:MODEL`, as values: nothing is chosen or connected here.

Prices of models: the cost of a call by the vendor's rates.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum

from engine.domain.model_call import Usage
from engine.errors import UsageError


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
    names = [entry.partition(":")[0] for entry in possible]
    near = difflib.get_close_matches(head.lower(), names, n=1)
    hint = f"did you mean {possible[names.index(near[0])]!r}? " if near else ""
    raise UsageError(f"unknown model spec {text!r}: {hint}possible are {', '.join(possible)}")


STALE_DAYS = 120
"""Days after which vendors' prices have probably changed."""
_MILLION = Decimal(1_000_000)
_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates in USD per million tokens."""

    input: Decimal
    output: Decimal
    cached_input: Decimal
    cache_write: Decimal


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

    def models(self) -> list[tuple[str, str]]:
        """All pairs of provider and model with a price, sorted."""
        return sorted(self._prices)
