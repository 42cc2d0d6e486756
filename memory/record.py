"""Values of the memory: records, which never change, and touches, which are the changes of their states."""

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
"""Symbol of records that concern all symbols, such as a macro series; they are recalled with every symbol."""

DEFAULT_OWNER = "desk"
"""Owner of the memories of a desk with a single character."""


class Layer(StrEnum):
    """Layer of a record. The first three form a ladder; reflections are apart.

    The papers' short, middle and long are shallow, intermediate and deep. Source: InvestorBench §3 [I1], TradingGPT
    §4.1.1 [G1].
    """

    SHALLOW = "shallow"
    INTERMEDIATE = "intermediate"
    DEEP = "deep"
    REFLECTION = "reflection"


class Cause(StrEnum):
    """Cause of a change of a record's state."""

    BORN = "born"
    PROMOTED = "promoted"
    DEMOTED = "demoted"
    PURGED = "purged"
    CITED = "cited"
    RESTATED = "restated"
    PAID = "paid"
    COST = "cost"
    PINNED = "pinned"
    UNPINNED = "unpinned"
    FORGOTTEN = "forgotten"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State of a record from `step` on; its scores at any later step follow in closed form (memory/formulas.py).

    step: trading day of the agent's clock, possibly a fraction.
    layer: None where it is purged.
    importance: the value at `importance_step`, before any scaling (0 to 100).
    importance_step, recency_step: steps from which the two decay.
    access_count: rewards, counted by the preset's rule.
    """

    step: float
    layer: Layer | None
    importance: float
    importance_step: float
    recency_step: float
    access_count: int = 0


@dataclass(frozen=True, slots=True)
class Touch:
    """One change of one record. `key` names its origin (such as a decision): the same touch is written once.

    `sequence` numbers the rows of the store, records and touches together; order is (step, sequence).
    """

    record_id: str
    cause: Cause
    state: State
    key: str = ""
    sequence: int = field(default=0, compare=False)

    @property
    def identity(self) -> tuple[str, float, Cause, str]:
        """The tuple that `id` is a hash of."""
        return self.record_id, float(self.state.step), self.cause, self.key

    @property
    def id(self) -> str:
        """A hash of record, step, cause and key: writing the same touch again is idempotent."""
        return _hash(self.record_id, repr(float(self.state.step)), self.cause, self.key)


@dataclass(frozen=True, slots=True)
class Head:
    """The last row of a store: its number, which counts records and touches together, and its id, a hash."""

    rows: int
    last: str


NOTHING = Head(0, "")
"""The head of a store without a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item to remember.

    symbol: MARKET where it concerns all symbols.
    kind: kind of source (`news`, `10-K` ...).
    source: its origin, such as a URL.
    query_text: the text to embed, if it is not `text`. Source: FinAgent §4.1, §4.2 [A2, A6].
    rating: a model's own weight of it on [0, 1], if there is one.
    layer, importance: overrule the preset.
    seen_until: marks hindsight: the step of the latest close that it was written with.
    known_step: the step at which it became known, where it is written later: its scores count from there.
    rests_on: ids of the memories it was drawn from.
    labels: its retrieval types; without any it is seen by queries of every type.
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
    known_step: float | None = None
    rests_on: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def born(self, now: float) -> float:
        """The step from which it counts, where it is written at `now`."""
        return now if self.known_step is None else min(self.known_step, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """One remembered text, as it was born; it is never rewritten.

    id: the hash made by `id_of`.
    born_step: the step at which it became known.
    available_at: the first step at which it may be recalled; later than `born_step` where it was written later, or with
        hindsight.
    hindsight: True where it was written with later prices.
    importance: the initial one, before any scaling.
    vector: finite, float32, of the embedder's dimension.
    sequence: as in Touch.
    The other fields are those of Item.
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
        """Raise InvalidRecord for a record that no later step could mend."""
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
            raise InvalidRecord(f"{named}: its vector is not a row of finite numbers; check the embedder")

    @property
    def written_step(self) -> float:
        """The step at which it was written."""
        return self.born_step if self.hindsight else self.available_at

    @property
    def birth(self) -> State:
        """The state before any touch: it needs no touch, so a record is written as a whole or not at all."""
        return State(
            step=self.born_step,
            layer=self.birth_layer,
            importance=self.importance,
            importance_step=self.born_step,
            recency_step=self.born_step,
        )


def id_of(item: Item, step: float) -> str:
    """Id of an item that counts from this step: a hash of owner, symbol, kind, step, source and text.

    Writing the same again is idempotent, and equal texts of two days stay two records.
    """
    return _hash(item.owner, item.symbol, item.kind, repr(float(step)), item.source, item.text)


def _hash(*parts: str) -> str:
    # Lengths keep ("ab", "c") and ("a", "bc") apart.
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]
