"""Recency + importance of many records of one layer at any step, without a power per record.

Within a layer all records decay at the same rate, so their scores at an anchor step times one factor are their scores
at another step. Values are in single precision, for ranking; the first hits are scored again by memory/formulas.py.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from memory.formulas import FULL_IMPORTANCE, Floats
from memory.presets import LayerRule

Singles = npt.NDArray[np.float32]

_REACH = 20.0
"""Largest exponent between the anchor and a requested step; beyond it the anchor is moved, far from any overflow."""

_LIMIT = 3 * _REACH
"""Largest exponent between the anchor and a record's own step; a record further off is not alive at the requested
step."""

_BLOCK = 16_384


class DecayTable:
    """Scores of the rows of one growing layer table at the anchor: recency, and importance on [0, 1] or above.

    A removed row has -inf.
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
        """Write states into rows for which `resize` has made room."""
        # Never upward of the limit: what is that far in the future is seen after the anchor has been moved.
        self._recency[rows] = np.exp(np.minimum((recency_step - self._anchor) / self._stability, _LIMIT))
        unit = np.maximum(importance, 0) / FULL_IMPORTANCE
        self._weight[rows] = unit * np.exp(np.minimum((importance_step - self._anchor) * self._decay, _LIMIT))

    def remove(self, rows: int | npt.NDArray[np.intp]) -> None:
        """Mark rows as removed."""
        self._recency[rows] = -np.inf

    def resize(self, room: int) -> None:
        """Set the capacity in rows; existing rows within it stay."""
        for name in ("_recency", "_weight"):
            grown = np.empty(room, np.float32)
            old = getattr(self, name)[:room]
            grown[: len(old)] = old
            setattr(self, name, grown)

    def in_range(self, now: float) -> bool:
        """Return True while the anchor is near enough to a step; otherwise move the anchor and write all rows again."""
        return abs(now - self._anchor) * max(1 / self._stability, self._decay) <= _REACH

    def move_anchor(self, now: float) -> None:
        """Move the anchor."""
        self._anchor = now

    def strength(self, now: float, size: int, padded: int) -> Singles:
        """Recency + importance on [0, 1] of the first `size` rows, -inf behind them; shape (padded,)."""
        result = np.empty(padded, np.float32)
        result[size:] = -np.inf
        recency = np.float32(math.exp((self._anchor - now) / self._stability))
        weight = np.float32(math.exp((self._anchor - now) * self._decay))
        room = np.empty(min(size, _BLOCK), np.float32)
        for start in range(0, size, _BLOCK):
            some = slice(start, min(start + _BLOCK, size))
            made, other = result[some], room[: some.stop - start]
            np.multiply(self._recency[some], recency, out=made)
            np.multiply(self._weight[some], weight, out=other)
            np.minimum(other, 1, out=other)
            made += other
        return result
