"""Constants of each paper's memory: decay, thresholds, purge. Their values are in memory/presets.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from memory.errors import UnknownPreset
from memory.record import Layer

LADDER = (Layer.SHALLOW, Layer.INTERMEDIATE, Layer.DEEP)


class Ranking(StrEnum):
    """Order of recalled records."""

    SUM = "recency + relevancy + importance"
    WEIGHTED = "weighted, each scaled over the layer"
    RELEVANCY = "relevancy alone"


class Relevancy(StrEnum):
    """Measure of what a record has to do with a query."""

    COSINE = "cosine"
    """Of their vectors."""
    LEXICAL = "lexical"
    """BM25 by their words, scaled by the best of the layer; fused with the vectors' cosine by ranks where the embedder
    goes by meaning."""


class Measure(StrEnum):
    """The value that a layer's thresholds bound. Evidence promotes by count and demotes by importance."""

    IMPORTANCE = "importance"
    EVIDENCE = "evidence"
    RETENTION = "retention score"


class Reward(StrEnum):
    """Effect of a known reward on the memories that its decision cited."""

    SIGNED = "up when it paid, down when it cost"
    CUMULATIVE = "by the access count so far, which moves with the sign"
    EITHER = "up for profits and for losses"


class FeedbackRule(StrEnum):
    """Measure of a decision before it rewards what it cited; whoever keeps the memory takes it."""

    DIRECTION = "direction"
    """Direction times the move over the horizon, net of costs, beyond the noise."""
    PROFIT = "profit"
    """The profit of the horizon's sessions."""
    LARGE = "large"
    """As `direction`, for large moves alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRule:
    """Constants of one layer.

    title: the paper's name for it.
    stability: Q of recency, in steps (trading days).
    alpha: decay factor of importance per step.
    draws: initial importances with their probabilities.
    promote_at, demote_below: thresholds in the preset's measure; None: none.
    least_on_entry: lowest importance of a promoted record, well above `demote_below`, so that it does not fall back
        the next day (hysteresis).
    weights: those of recency, relevancy, importance.
    k: records recalled per query; None: the preset's.
    """

    title: str
    stability: float
    alpha: float
    draws: tuple[tuple[float, float], ...]
    promote_at: float | None = None
    demote_below: float | None = None
    least_on_entry: float = 0.0
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    k: int | None = None


@dataclass(frozen=True, slots=True)
class Birth:
    """Initial layer of a kind of source, and its initial importance (None: drawn by the layer's probabilities).

    An item with a rating starts up to `spread` higher or lower, and in the layers of `deeper` from their ratings on.
    """

    layer: Layer
    importance: float | None = None
    spread: float = 0.0
    deeper: tuple[tuple[float, Layer], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPreset:
    """All constants of one memory.

    source: the paper, or what it is made from.
    births: initial layer and importance by kind of source.
    k: records recalled per query of each layer that has no k of its own.
    reward_points: importance that one reward adds.
    penalty_points: importance that a cost takes, where rewards are signed.
    feedback: the rule by which a decision pays or costs.
    feedback_horizon: steps after which it is known; a record is rewarded once in as many.
    feedback_noise: moves that reward nobody, in daily deviations times the root of the horizon.
    feedback_large: moves above which `large` rewards, in daily deviations.
    purge_recency, purge_importance, purge_retention: values below which a record is purged.
    multi_layer_moves: True where a record may pass several layers in one step.
    importance_by_layer: True where a layer sets the importance of whatever enters it.
    renewed_on_demotion: True where recency is 1 again in the layer that a record falls into.
    floor_kinds: kinds that never sink below the layer of their birth.
    relevancy: what a record has to do with a query: the cosine of their vectors, or the words that they share.
    duplicate_similarity: cosine from which recalled records count as duplicates; None: never.
    restated_similarity: cosine from which a reflection says what an earlier one said, which is touched in place of
        storing it; None: never.
    """

    name: str
    title: str
    source: str
    layers: Mapping[Layer, LayerRule]
    births: Mapping[str, Birth]
    k: int
    ranking: Ranking = Ranking.SUM
    relevancy: Relevancy = Relevancy.COSINE
    measure: Measure = Measure.IMPORTANCE
    reward: Reward = Reward.SIGNED
    reward_points: float = 5.0
    penalty_points: float = 5.0
    feedback: FeedbackRule = FeedbackRule.DIRECTION
    feedback_horizon: int = 5
    feedback_noise: float = 0.5
    feedback_large: float = 2.0
    purge_recency: float = 0.05
    purge_importance: float = 5.0
    purge_retention: float = 0.0
    multi_layer_moves: bool = True
    importance_by_layer: bool = False
    renewed_on_demotion: bool = False
    floor_kinds: frozenset[str] = frozenset()
    duplicate_similarity: float | None = None
    restated_similarity: float | None = None

    def rule(self, layer: Layer) -> LayerRule:
        """Constants of a layer. Raises UnknownPreset where the preset has no such layer."""
        if layer not in self.layers:
            raise UnknownPreset(f"preset {self.name} has no layer {layer}; it has {', '.join(self.layers)}")
        return self.layers[layer]

    def birth(self, kind: str) -> Birth:
        """Beginning of a kind of source. Raises UnknownPreset, which names the nearest."""
        if kind not in self.births:
            near = get_close_matches(kind, self.births, 1)
            hint = f"did you mean {near[0]}" if near else f"known are {', '.join(self.births)}"
            raise UnknownPreset(f"preset {self.name} has no place for {kind!r}; {hint}")
        return self.births[kind]

    def changed(self, table: Mapping[str, Any]) -> MemoryPreset:
        """The preset with some of its constants changed. `table` has its fields; `layers` and `births` are tables of
        the changed ones, by layer and by kind of source.

        Raises UnknownPreset for a layer or kind of source that the preset has not.
        """
        layers, births, values = dict(self.layers), dict(self.births), _fields(table)
        for name, rule in values.pop("layers", {}).items():
            layers[Layer(name)] = replace(self.rule(Layer(name)), **_tuples(rule))
        for kind, birth in values.pop("births", {}).items():
            births[kind] = replace(self.birth(kind), **_birth(birth))
        return replace(self, layers=MappingProxyType(layers), births=MappingProxyType(births), **values)

    def initial_state(self, kind: str, rating: float | None, layer: Layer | None, chance: float) -> tuple[Layer, float]:
        """Layer and importance of a new record; `chance` in [0, 1) decides a draw.

        Raises UnknownPreset for an unknown kind of source.
        """
        birth = self.birth(kind)
        place = layer or birth.layer
        if layer is None and rating is not None:
            place = next((deeper for least, deeper in reversed(birth.deeper) if rating >= least), place)
        value = birth.importance if birth.importance is not None else _draw(self.rule(place).draws, chance)
        if rating is not None:
            value += birth.spread * (2 * min(max(rating, 0.0), 1.0) - 1)
        return place, value


def _draw(draws: tuple[tuple[float, float], ...], chance: float) -> float:
    total = 0.0
    for value, probability in draws:
        total += probability
        if chance < total:
            return value
    return draws[-1][0]


def preset_named(name: str) -> MemoryPreset:
    """A preset by its name. Raises UnknownPreset, which names the nearest."""
    if name in PRESETS:
        return PRESETS[name]
    near = get_close_matches(name, PRESETS, 1)
    hint = f"did you mean {near[0]}" if near else f"there are {', '.join(PRESETS)}"
    raise UnknownPreset(f"no memory preset {name!r}; {hint}")


def _presets(tables: dict[str, dict[str, Any]]) -> Mapping[str, MemoryPreset]:
    """The presets of presets.toml, each after its base."""
    presets: dict[str, MemoryPreset] = {}
    for name, table in tables.items():
        base = table.pop("base", None)
        presets[name] = _read(name, table) if base is None else presets[base].changed(table | {"name": name})
    return MappingProxyType(presets)


def _read(name: str, table: dict[str, Any]) -> MemoryPreset:
    """A preset from its table in presets.toml; keys are the fields of the values above."""
    layers = {Layer(layer): LayerRule(**_tuples(rule)) for layer, rule in table.pop("layers").items()}
    births: dict[str, Birth] = {}
    for group in table.pop("births"):
        births |= dict.fromkeys(group.pop("kinds"), Birth(**_birth(group)))
    return MemoryPreset(name=name, layers=MappingProxyType(layers), births=MappingProxyType(births), **_fields(table))


def _birth(table: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(table)
    if "layer" in values:
        values["layer"] = Layer(values["layer"])
    if "deeper" in values:
        values["deeper"] = tuple((least, Layer(layer)) for least, layer in values["deeper"])
    return values


def _fields(table: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(table)
    for key, kind in (
        ("ranking", Ranking),
        ("relevancy", Relevancy),
        ("measure", Measure),
        ("reward", Reward),
        ("feedback", FeedbackRule),
        ("floor_kinds", frozenset),
    ):
        if key in values:
            values[key] = kind(values[key])
    return values


def _tuples(value: Any) -> Any:
    """TOML's lists as tuples, so that the value is frozen through and through."""
    if isinstance(value, dict):
        return {key: _tuples(each) for key, each in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


try:
    _TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
except OSError as error:  # an OSError would be taken for one of a file of the user's
    raise ImportError(f"the installation is broken: {error.filename} is missing or unreadable") from error
PRESETS = _presets(_TABLES)
