"""What memories lean to, layer by layer, and which of them bear a decision out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.agents.citing import by_layer
from engine.domain.recollection import Recollection
from engine.offline.past import is_reflection, read_memory

LAYER_WEIGHT: Mapping[str, float] = {"shallow": 1.0, "intermediate": 1.5, "deep": 1.5, "reflection": 1.0}
USUAL, SPREAD = 0.4, 1.5
"""What news and filings are worth on average (0.36 to 0.49 over four real feeds): companies write kindly about
themselves, so that only what goes beyond it says anything. One's own reflections do not, nor do figures."""
LEANS = 0.3
"""From this sum over the layers on the memories together lean to a side."""


@dataclass(frozen=True, slots=True)
class LayerLeaning:
    """A layer's memories with what each is worth, from -1 to 1, as retrieved; `lean` is the mean of what each says
    beyond what texts of its kind are usually worth."""

    layer: str
    rows: tuple[tuple[Recollection, float], ...]

    @property
    def lean(self) -> float:
        said = (worth if unbiased(memory) else SPREAD * (worth - USUAL) for memory, worth in self.rows)
        return sum(said) / len(self.rows)

    @property
    def weighed(self) -> float:
        """The lean by the layer's weight."""
        return LAYER_WEIGHT.get(self.layer, 1.0) * self.lean

    def strongest(self, direction: int, count: int) -> list[Recollection]:
        """Up to so many memories that speak in a direction, the ones that say most first; with direction 0 those that
        say most, whatever it is."""
        fit = [(m, worth) for m, worth in self.rows if worth and (worth * direction > 0 or not direction)]
        return [memory for memory, _ in sorted(fit, key=lambda pair: -abs(pair[1]))[:count]]


def unbiased(memory: Recollection) -> bool:
    """Whether nobody who wants to look well wrote it, in whichever layer it lies by now."""
    return memory.kind == "macro" or is_reflection(memory)


def lean_by_layer(memories: Iterable[Recollection]) -> Sequence[LayerLeaning]:
    """The leaning of each layer that holds something; a memory that comes twice counts once."""
    once = {memory.id: memory for memory in memories}.values()
    return [
        LayerLeaning(layer, tuple((memory, read_memory(memory).worth) for memory in rows))
        for layer, rows in by_layer(once).items()
    ]


def side_of(leanings: Iterable[LayerLeaning]) -> int:
    """1 where the memories together speak for the share, -1 against it, 0 where they take no side."""
    total = sum(layer.weighed for layer in leanings)
    return (total > LEANS) - (total < -LEANS)
