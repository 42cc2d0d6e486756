"""Recency + importance of many records of one layer at any step, without a power of each.

Within a layer all records fade alike: what a record has at an anchor step, times one factor for all, is what it has at
another step. Single precision, for ranking; what comes first is scored again as memory/scoring.py says.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from memory.presets import LayerRule
from memory.scoring import FULL_IMPORTANCE, Floats

Singles = npt.NDArray[np.float32]

_REACH = 20.0
"""Powers of e between the anchor and a step asked for, from which the anchor is set anew: far from any overflow."""

_LIMIT = 3 * _REACH
"""The same between the anchor and a record's own step: what is further off is not alive yet where it is asked for."""

_BLOCK = 16_384


class Fading:
    """What the rows of a growing table of one layer have at the anchor: recency, and importance on [0, 1] or above.

    A row that is gone has -inf.
    """

    def __init__(self, rule: LayerRule) -> None:
        self._stability = rule.stability
        self._decay = -math.log(rule.alpha)
        self._anchor = 0.0
        self._recency = np.empty(0, np.float32)
        self._weight = np.empty(0, np.float32)

    def write(
        self, rows: slice | npt.NDArray[np.intp], importance: Floats, importance_step: Floats, recency_step: Floats
    ) -> None:
        """Puts states into rows; room has been made for them (`resize`)."""
        # Never upward of the limit: what is that far in the future is seen after the anchor has been moved.
        self._recency[rows] = np.exp(np.minimum((recency_step - self._anchor) / self._stability, _LIMIT))
        unit = np.maximum(importance, 0) / FULL_IMPORTANCE
        self._weight[rows] = unit * np.exp(np.minimum((importance_step - self._anchor) * self._decay, _LIMIT))

    def remove(self, rows: int | npt.NDArray[np.intp]) -> None:
        """These rows are gone."""
        self._recency[rows] = -np.inf

    def resize(self, room: int) -> None:
        """Makes room for so many rows; those that are there, and find room, stay."""
        for name in ("_recency", "_weight"):
            grown = np.empty(room, np.float32)
            old = getattr(self, name)[:room]
            grown[: len(old)] = old
            setattr(self, name, grown)

    def reaches(self, now: float) -> bool:
        """Whether the anchor is near enough for this step; if not, `anchor` has to move it and all is written anew."""
        return abs(now - self._anchor) * max(1 / self._stability, self._decay) <= _REACH

    def anchor(self, now: float) -> None:
        """Moves the anchor."""
        self._anchor = now

    def strength(self, now: float, size: int, padded: int) -> Singles:
        """Recency + importance on [0, 1] of the first `size` rows, and -inf behind them; shape (padded,)."""
        found = np.empty(padded, np.float32)
        found[size:] = -np.inf
        recency = np.float32(math.exp((self._anchor - now) / self._stability))
        weight = np.float32(math.exp((self._anchor - now) * self._decay))
        room = np.empty(min(size, _BLOCK), np.float32)
        for start in range(0, size, _BLOCK):
            some = slice(start, min(start + _BLOCK, size))
            made, other = found[some], room[: some.stop - start]
            np.multiply(self._recency[some], recency, out=made)
            np.multiply(self._weight[some], weight, out=other)
            np.minimum(other, 1, out=other)
            made += other
        return found
