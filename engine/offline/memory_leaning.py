"""The leaning of memories, layer by layer, and the memories that support a decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.agents.citing import by_layer
from engine.domain.recollection import Recollection
from engine.offline.past import is_reflection, read_memory

LAYER_WEIGHT: Mapping[str, float] = {"shallow": 1.0, "intermediate": 1.5, "deep": 1.5, "reflection": 1.0}
USUAL, SPREAD = 0.4, 1.5
"""Mean worth of news and filings (0.36 to 0.49 over four real feeds): companies write favourably about themselves, so
only what exceeds it counts. The owner's reflections and macro releases have no such bias."""
LEANS = 0.3
"""Smallest sum over the layers at which the memories together take a side."""


@dataclass(frozen=True, slots=True)
class LayerLeaning:
    """A layer's memories in the order of recall with the worth of each, from -1 to 1; `lean` is their mean less the
    usual worth of texts of their kind."""

    layer: str
    rows: tuple[tuple[Recollection, float], ...]

    @property
    def lean(self) -> float:
        beyond_usual = (worth if unbiased(memory) else SPREAD * (worth - USUAL) for memory, worth in self.rows)
        return sum(beyond_usual) / len(self.rows)

    @property
    def weighed(self) -> float:
        """The lean by the layer's weight."""
        return LAYER_WEIGHT.get(self.layer, 1.0) * self.lean

    def strongest(self, direction: int, count: int) -> list[Recollection]:
        """Up to so many memories of a direction, the strongest first; with direction 0 the strongest of either."""
        fit = [(m, worth) for m, worth in self.rows if worth and (worth * direction > 0 or not direction)]
        return [memory for memory, _ in sorted(fit, key=lambda pair: -abs(pair[1]))[:count]]


def unbiased(memory: Recollection) -> bool:
    """True for a memory that no company wrote about itself."""
    return memory.kind == "macro" or is_reflection(memory)


def lean_by_layer(memories: Iterable[Recollection]) -> Sequence[LayerLeaning]:
    """The leaning of each layer that holds something; a memory that comes twice counts once."""
    once = {memory.id: memory for memory in memories}.values()
    return [
        LayerLeaning(layer, tuple((memory, read_memory(memory).worth) for memory in rows))
        for layer, rows in by_layer(once).items()
    ]


def side_of(leanings: Iterable[LayerLeaning]) -> int:
    """The side of all memories: 1 positive, -1 negative, 0 neither."""
    total = sum(layer.weighed for layer in leanings)
    return (total > LEANS) - (total < -LEANS)
