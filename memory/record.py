"""What is remembered: records that never change, and touches that say how each of them fared."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from memory.errors import InvalidRecord

Vector = npt.NDArray[np.float32]

MARKET = "*"
"""Symbol of what concerns all symbols alike, such as a macro series: recalled with every symbol."""

DEFAULT_OWNER = "desk"
"""Owner of the memories of a desk with a single character."""


class Layer(StrEnum):
    """Where a record stands. The first three form a ladder; reflections keep to themselves.

    The papers' short, middle and long are shallow, intermediate and deep. Source: InvestorBench §3 [I1],
    TradingGPT §4.1.1 [G1].
    """

    SHALLOW = "shallow"
    INTERMEDIATE = "intermediate"
    DEEP = "deep"
    REFLECTION = "reflection"


class Cause(StrEnum):
    """Why a record's state changed."""

    BORN = "born"
    PROMOTED = "promoted"
    DEMOTED = "demoted"
    PURGED = "purged"
    CITED = "cited"
    PAID = "paid"
    COST = "cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How a record stands from `step` on; its scores at any later step follow in closed form (memory/scoring.py).

    Steps are trading days of the agent's clock, possibly fractions. `layer` None: purged. `importance` is the value
    at `importance_step`, before any scaling. `access_count` counts rewards as the preset's rule says.
    """

    step: float
    layer: Layer | None
    importance: float
    importance_step: float
    recency_step: float
    access_count: int = 0


@dataclass(frozen=True, slots=True)
class Touch:
    """One change of one record. `key` says by what (a decision, for instance): the same touch is written once.

    `sequence` counts what the store wrote, records and touches together; order is (step, sequence).
    """

    record_id: str
    cause: Cause
    state: State
    key: str = ""
    sequence: int = field(default=0, compare=False)

    @property
    def name(self) -> tuple[str, float, Cause, str]:
        """What `id` is the hash of: equal for the same touch."""
        return self.record_id, float(self.state.step), self.cause, self.key

    @property
    def id(self) -> str:
        """Equal for equal record, step, cause and key: writing it again is harmless."""
        return _hash(self.record_id, repr(float(self.state.step)), self.cause, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something to remember. `rating` in [0, 1] is a model's own judgement of its weight, where there is one.

    `query_text` is what it is to be found by, if that is not the text (Source: FinAgent §4.1, §4.2 [A2, A6]).
    `seen_until` marks hindsight: the step at which the latest bar that it saw has closed. `layer` and `importance`
    overrule the preset. `rests_on` are the ids of the memories it was drawn from, `labels` its retrieval types.
    """

    symbol: str
    kind: str
    text: str
    source: str = ""
    query_text: str = ""
    owner: str = DEFAULT_OWNER
    rating: float | None = None
    layer: Layer | None = None
    importance: float | None = None
    seen_until: float | None = None
    rests_on: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """One remembered text, as it was born; it is never rewritten.

    `born_step` is when it was written, `available_at` the first step at which it may be recalled: later for a record
    that was written with hindsight. `importance` is the initial one, before any scaling. `vector` is finite, float32,
    of the embedder's dimension. `sequence` as in Touch.
    """

    id: str
    owner: str
    symbol: str
    kind: str
    text: str
    query_text: str
    source: str
    born_step: float
    available_at: float
    hindsight: bool
    birth_layer: Layer
    importance: float
    rests_on: tuple[str, ...]
    labels: tuple[str, ...]
    vector: Vector = field(compare=False, repr=False)
    sequence: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        """Refuses what no later step could mend: InvalidRecord."""
        named = f"{self.kind or 'record'} of {self.symbol or 'no symbol'} from {self.source or 'no source'}"
        if not self.text.strip():
            raise InvalidRecord(f"{named}: the text is empty; an answer that failed is not remembered")
        if not self.symbol or not self.owner or not self.kind:
            raise InvalidRecord(f"{named}: symbol, owner and kind have to be said")
        for name, value in (("born_step", self.born_step), ("available_at", self.available_at)):
            if not math.isfinite(value):
                raise InvalidRecord(f"{named}: {name} is {value}; give a step of the agent's clock")
        if not math.isfinite(self.importance) or self.importance < 0:
            raise InvalidRecord(f"{named}: importance is {self.importance}; give a number from 0 on")
        if self.available_at < self.born_step:
            raise InvalidRecord(f"{named}: available at {self.available_at}, before it is written at {self.born_step}")
        # The square of its length tells in a tenth of the time; only what is huge or not finite needs a closer look.
        if self.vector.ndim != 1 or not (
            math.isfinite(np.dot(self.vector, self.vector)) or np.isfinite(self.vector).all()
        ):
            raise InvalidRecord(f"{named}: its vector is not a row of finite numbers; look at the embedder")

    @property
    def birth(self) -> State:
        """The state before any touch: no touch is needed for it, so a record is written whole or not at all."""
        return State(
            step=self.born_step,
            layer=self.birth_layer,
            importance=self.importance,
            importance_step=self.born_step,
            recency_step=self.born_step,
        )


def record_id(item: Item, step: float) -> str:
    """The id of an item written at this step, a hash of owner, symbol, kind, step, source and text.

    Writing the same again changes nothing, and equal texts of two days stay two records.
    """
    return _hash(item.owner, item.symbol, item.kind, repr(float(step)), item.source, item.text)


def _hash(*parts: str) -> str:
    # Lengths keep ("ab", "c") and ("a", "bc") apart.
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]
