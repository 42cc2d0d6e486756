"""Settings of memory: the `[memory]` table of a preset, which changes constants of one of the papers' memories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, model_validator

from engine.settings.values import Frozen
from memory.errors import UnknownPreset
from memory.presets import FeedbackRule, Measure, MemoryPreset, Ranking, Relevancy, Reward, preset_named
from memory.record import Layer

Unit = Annotated[float, Field(ge=0, le=1)]
Importance = Annotated[float, Field(ge=0, le=100)]


class MemoryLayer(Frozen):
    """Constants of one layer of memory; what is left out is the base's."""

    stability: float | None = Field(None, gt=0)
    """Q of recency, in sessions: recency is exp(-age / Q)."""
    alpha: float | None = Field(None, gt=0, le=1)
    """Decay factor of importance per session."""
    draws: tuple[tuple[Importance, Unit], ...] | None = Field(None, min_length=1)
    """Initial importances, each with its probability; they add up to 1."""
    promote_at: float | None = None
    """Value from which a memory goes a layer deeper."""
    demote_below: float | None = None
    """Value below which a memory sinks a layer."""
    least_on_entry: Importance | None = None
    """Lowest importance of a memory that was promoted."""
    weights: tuple[float, float, float] | None = None
    """Weights of recency, relevancy and importance, for the weighted ranking."""
    k: int | None = Field(None, ge=1, le=100)
    """Memories recalled per query of this layer, where they are not as many as of the others."""

    @model_validator(mode="after")
    def _certain(self) -> MemoryLayer:
        if self.draws is not None and abs(sum(chance for _, chance in self.draws) - 1) > 1e-9:
            raise ValueError("the probabilities of draws do not add up to 1")
        return self


class MemoryBirth(Frozen):
    """Beginning of the memories of one kind of source; what is left out is the base's."""

    layer: Layer | None = None
    """Initial layer."""
    importance: Importance | None = None
    """Initial importance, in place of a draw."""
    spread: Importance | None = None
    """Importance that a model's rating adds or takes at most."""
    deeper: tuple[tuple[Unit, Layer], ...] | None = None
    """Ratings, rising, from which a memory begins in another layer."""


class Memory(Frozen):
    """Constants of memory: those of a base and what differs from it; what is left out is the base's."""

    base: str = "desk"
    """The constants that it begins with: `desk`, `investorbench`, `investorbench-code`, `finmem-code`, `tradinggpt` or
    `finagent`."""
    k: int | None = Field(None, ge=1, le=100)
    """Memories recalled per layer and query."""
    ranking: Ranking | None = None
    """Order of recalled memories."""
    relevancy: Relevancy | None = None
    """Measure of what a memory has to do with a query: `cosine` of their vectors (the papers'), or `lexical`, by the
    words that they share, fused with the vectors where memory.embedder goes by meaning."""
    measure: Measure | None = None
    """The value that the thresholds of the layers bound."""
    reward: Reward | None = None
    """Effect of an outcome on the memories that its decision cited."""
    reward_points: float | None = Field(None, ge=0)
    """Importance that one reward adds."""
    penalty_points: float | None = Field(None, ge=0)
    """Importance that a cost takes, where rewards are signed."""
    feedback: FeedbackRule | None = None
    """Measure of a decision before it rewards what it cited: its direction times the move over the horizon beyond the
    noise, the profit of the horizon, or its direction times large moves alone."""
    feedback_horizon: int | None = Field(None, ge=1, le=60)
    """Sessions after which a decision is judged; a memory is rewarded once in as many."""
    feedback_noise: float | None = Field(None, ge=0)
    """Moves that reward nobody, in daily deviations times the root of the horizon."""
    feedback_large: float | None = Field(None, ge=0)
    """Moves above which `large` rewards, in daily deviations."""
    purge_recency: Unit | None = None
    """Recency below which a memory is purged."""
    purge_importance: Importance | None = None
    """Importance below which a memory is purged."""
    purge_retention: Importance | None = None
    """Retention score below which a memory is purged."""
    multi_layer_moves: bool | None = None
    """True where a memory may pass several layers in one session."""
    importance_by_layer: bool | None = None
    """True where a layer sets the importance of whatever enters it."""
    renewed_on_demotion: bool | None = None
    """True where recency is 1 again in the layer that a memory falls into."""
    floor_kinds: tuple[str, ...] | None = None
    """Kinds that never sink below the layer of their birth."""
    duplicate_similarity: Unit | None = None
    """Cosine from which recalled memories count as duplicates."""
    restated_similarity: Unit | None = None
    """Cosine from which a reflection with the same figures says what an earlier one said: it touches the earlier one in
    place of being stored."""
    layers: dict[Layer, MemoryLayer] = {}
    """Constants of the layers that differ."""
    births: dict[str, MemoryBirth] = {}
    """Beginnings of the kinds of sources that differ."""

    @model_validator(mode="after")
    def _of_a_base(self) -> Memory:
        try:
            _ = self.constants
        except UnknownPreset as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def constants(self) -> MemoryPreset:
        """All constants, those of the base included."""
        base, own = preset_named(self.base), self.model_dump(exclude_defaults=True, exclude={"base"})
        names = ", ".join(_keys(own))
        return base.changed(own | {"source": f"{base.source}; changed: {names}"}) if names else base


def _keys(table: dict[str, Any]) -> Iterator[str]:
    """Names of a table's values, those of inner tables with a dot."""
    for key, value in table.items():
        yield from (f"{key}.{inner}" for inner in _keys(value)) if isinstance(value, dict) else (key,)
