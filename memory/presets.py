"""Constants of each paper's memory as frozen data: decay, thresholds, purge.

Gaps of the papers, and constants that come from their programs, are named beside each preset; papers.md has the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType

from memory.errors import UnknownPreset
from memory.record import Layer

LADDER = (Layer.SHALLOW, Layer.INTERMEDIATE, Layer.DEEP)


class Ranking(StrEnum):
    """Order of recalled records."""

    SUM = "recency + relevancy + importance"
    WEIGHTED = "weighted, each scaled over the layer"
    RELEVANCY = "relevancy alone"


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
    """

    title: str
    stability: float
    alpha: float
    draws: tuple[tuple[float, float], ...]
    promote_at: float | None = None
    demote_below: float | None = None
    least_on_entry: float = 0.0
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)


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
    k: records recalled per layer and query.
    reward_points: importance that one reward adds or takes.
    purge_recency, purge_importance, purge_retention: values below which a record is purged.
    multi_layer_moves: True where a record may pass several layers in one step.
    importance_by_layer: True where a layer sets the importance of whatever enters it.
    floor_kinds: kinds that never sink below the layer of their birth.
    duplicate_similarity: cosine from which recalled records count as duplicates; None: never.
    """

    name: str
    title: str
    source: str
    layers: Mapping[Layer, LayerRule]
    births: Mapping[str, Birth]
    k: int
    ranking: Ranking = Ranking.SUM
    measure: Measure = Measure.IMPORTANCE
    reward: Reward = Reward.SIGNED
    reward_points: float = 5.0
    purge_recency: float = 0.05
    purge_importance: float = 5.0
    purge_retention: float = 0.0
    multi_layer_moves: bool = True
    importance_by_layer: bool = False
    floor_kinds: frozenset[str] = frozenset()
    duplicate_similarity: float | None = None

    def rule(self, layer: Layer) -> LayerRule:
        """Constants of a layer. Raises UnknownPreset where the preset has no such layer."""
        if layer not in self.layers:
            raise UnknownPreset(f"preset {self.name} has no layer {layer}; it has {', '.join(self.layers)}")
        return self.layers[layer]

    def initial_state(self, kind: str, rating: float | None, layer: Layer | None, chance: float) -> tuple[Layer, float]:
        """Layer and importance of a new record; `chance` in [0, 1) decides a draw.

        Raises UnknownPreset for an unknown kind of source.
        """
        if kind not in self.births:
            near = get_close_matches(kind, self.births, 1)
            hint = f"did you mean {near[0]}" if near else f"known are {', '.join(self.births)}"
            raise UnknownPreset(f"preset {self.name} has no place for {kind!r}; {hint}")
        birth = self.births[kind]
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


_SHALLOW_DRAWS = ((40.0, 0.80), (60.0, 0.15), (80.0, 0.05))
_INTERMEDIATE_DRAWS = ((40.0, 0.05), (60.0, 0.80), (80.0, 0.15))
_DEEP_DRAWS = ((40.0, 0.05), (60.0, 0.15), (80.0, 0.80))

_THREE_LAYERS = {
    "news": Birth(Layer.SHALLOW),
    "market-intelligence": Birth(Layer.SHALLOW),
    "8-K": Birth(Layer.INTERMEDIATE),
    "10-Q": Birth(Layer.INTERMEDIATE),
    "10-K": Birth(Layer.DEEP),
    "macro": Birth(Layer.DEEP),
    "commentary": Birth(Layer.DEEP),
}
_REFLECTIONS = ("reflection", "extended-reflection", "low-level-reflection", "high-level-reflection", "debate")


def _reflections(birth: Birth) -> dict[str, Birth]:
    return dict.fromkeys(_REFLECTIONS, birth)


INVESTORBENCH = MemoryPreset(
    # Q, alpha, draws, purge and +5 are the paper's; thresholds, demotion, the penalty and K are the programs'.
    # Self-reflections go deep (figure of appendix D); the horizon of a reward is not stated: the next day is ours.
    name="investorbench",
    title="three layers that fade at their own pace; importance decides what moves",
    source="InvestorBench A [I1-I4]",
    layers=MappingProxyType(
        {
            Layer.SHALLOW: LayerRule(title="shallow", stability=14, alpha=0.9, draws=_SHALLOW_DRAWS, promote_at=60),
            Layer.INTERMEDIATE: LayerRule(
                title="intermediate",
                stability=90,
                alpha=0.967,
                draws=_INTERMEDIATE_DRAWS,
                promote_at=80,
                demote_below=60,
            ),
            Layer.DEEP: LayerRule(title="deep", stability=365, alpha=0.988, draws=_DEEP_DRAWS, demote_below=80),
        }
    ),
    births=MappingProxyType(_THREE_LAYERS | _reflections(Birth(Layer.DEEP))),
    k=5,
)

FINMEM_CODE = MemoryPreset(
    name="finmem-code",
    title="the constants that the authors' program runs with, three steps of stability for news",
    source="FinMem, the authors' program",
    layers=MappingProxyType(
        {
            Layer.SHALLOW: LayerRule(
                title="short", stability=3, alpha=0.92, draws=((50.0, 0.50), (70.0, 0.45), (90.0, 0.05)), promote_at=60
            ),
            Layer.INTERMEDIATE: LayerRule(
                title="mid", stability=90, alpha=0.967, draws=_INTERMEDIATE_DRAWS, promote_at=80, demote_below=60
            ),
            Layer.DEEP: LayerRule(title="long", stability=365, alpha=0.988, draws=_DEEP_DRAWS, demote_below=80),
            Layer.REFLECTION: LayerRule(title="reflection", stability=365, alpha=0.988, draws=_DEEP_DRAWS),
        }
    ),
    births=MappingProxyType(_THREE_LAYERS | _reflections(Birth(Layer.REFLECTION))),
    k=3,
    reward=Reward.CUMULATIVE,
)

TRADINGGPT = MemoryPreset(
    # Printed: Q, the scaling, 40 / 60 / 80 and 20. Ours: the constants of importance, the weights (whose sum is 100,
    # as the thresholds need), a lift of 25, one rung at a time, and the reading of 40: a short memory under it has
    # nowhere to sink and is passed over until it is lifted or removed. K is FinAgent's.
    name="tradinggpt",
    title="weighted scores scaled over a layer, held against 40 / 60 / 80",
    source="TradingGPT §4.1.1 [G1]",
    layers=MappingProxyType(
        {
            Layer.SHALLOW: LayerRule(
                title="short",
                stability=3,
                alpha=1,
                draws=((40.0, 1.0),),
                promote_at=60,
                demote_below=40,
                weights=(44, 20, 36),
            ),
            Layer.INTERMEDIATE: LayerRule(
                title="middle",
                stability=90,
                alpha=1,
                draws=((55.0, 1.0),),
                promote_at=80,
                demote_below=60,
                weights=(40, 20, 40),
            ),
            Layer.DEEP: LayerRule(
                title="long", stability=365, alpha=1, draws=((90.0, 1.0),), demote_below=80, weights=(40, 20, 40)
            ),
            Layer.REFLECTION: LayerRule(
                title="reflection", stability=365, alpha=1, draws=((30.0, 1.0),), weights=(40, 20, 40)
            ),
        }
    ),
    births=MappingProxyType(_THREE_LAYERS | _reflections(Birth(Layer.REFLECTION))),
    k=5,
    ranking=Ranking.WEIGHTED,
    measure=Measure.RETENTION,
    reward=Reward.EITHER,
    reward_points=25,
    purge_recency=0,
    purge_importance=0,
    purge_retention=20,
    multi_layer_moves=False,
    importance_by_layer=True,
)

FINAGENT = MemoryPreset(
    # Nothing fades or moves: similarity of query texts alone. The reflections keep apart by their kind.
    name="finagent",
    title="three kinds of memory, found by likeness alone",
    source="FinAgent §4.2 [A2, A6]",
    layers=MappingProxyType(
        {
            Layer.SHALLOW: LayerRule(title="market intelligence", stability=math.inf, alpha=1, draws=((100.0, 1.0),)),
            Layer.REFLECTION: LayerRule(title="reflection", stability=math.inf, alpha=1, draws=((100.0, 1.0),)),
        }
    ),
    births=MappingProxyType(dict.fromkeys(_THREE_LAYERS, Birth(Layer.SHALLOW)) | _reflections(Birth(Layer.REFLECTION))),
    k=5,
    ranking=Ranking.RELEVANCY,
    reward_points=0,
    purge_recency=0,
    purge_importance=0,
)

DESK = MemoryPreset(
    # Repaired: the kind of source and the model's rating say what a record starts with, not a draw; it moves deeper
    # when decisions that cite it have paid, and what it rests on then is new evidence, counted from there. Purge at 4
    # instead of 5: an annual report lives until the next one (258 trading days).
    name="desk",
    title="moves by evidence: what was cited for decisions that paid",
    source="ours, from InvestorBench [I1-I4] and FinAgent [A2]",
    layers=MappingProxyType(
        {
            Layer.SHALLOW: LayerRule(title="shallow", stability=14, alpha=0.9, draws=_SHALLOW_DRAWS, promote_at=2),
            Layer.INTERMEDIATE: LayerRule(
                title="intermediate",
                stability=90,
                alpha=0.967,
                draws=_INTERMEDIATE_DRAWS,
                promote_at=3,
                demote_below=20,
                least_on_entry=50,
            ),
            Layer.DEEP: LayerRule(
                title="deep", stability=365, alpha=0.988, draws=_DEEP_DRAWS, demote_below=35, least_on_entry=70
            ),
            Layer.REFLECTION: LayerRule(title="reflection", stability=365, alpha=0.988, draws=_DEEP_DRAWS),
        }
    ),
    births=MappingProxyType(
        {
            "news": Birth(Layer.SHALLOW, 50, 30, ((0.8, Layer.INTERMEDIATE), (0.95, Layer.DEEP))),
            "market-intelligence": Birth(Layer.SHALLOW, 50, 30, ((0.8, Layer.INTERMEDIATE), (0.95, Layer.DEEP))),
            "8-K": Birth(Layer.INTERMEDIATE, 60, 20),
            "10-Q": Birth(Layer.INTERMEDIATE, 70, 20),
            "10-K": Birth(Layer.DEEP, 90, 10),
            "macro": Birth(Layer.DEEP, 70, 20),
            "commentary": Birth(Layer.DEEP, 60, 20),
        }
        | _reflections(Birth(Layer.REFLECTION, 60, 30))
    ),
    k=5,
    measure=Measure.EVIDENCE,
    purge_importance=4,
    floor_kinds=frozenset({"8-K", "10-Q", "10-K"}),
    duplicate_similarity=0.95,
)

PRESETS: Mapping[str, MemoryPreset] = MappingProxyType(
    {preset.name: preset for preset in (DESK, INVESTORBENCH, FINMEM_CODE, TRADINGGPT, FINAGENT)}
)
