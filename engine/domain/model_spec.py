"""Model specs, such as `openai:MODEL`, as values: nothing is chosen or connected here."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

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
