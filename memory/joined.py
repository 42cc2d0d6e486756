"""The partitions that one recall looks at in one layer, as one table whose positions count through all of them.

What it says of a row is in double precision and does not depend on where the row stands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from memory import scoring
from memory.lifecycle import IMPORTANCE, IMPORTANCE_STEP, RECENCY_STEP
from memory.live_index import AVAILABLE, Partition
from memory.ports import Matrix
from memory.presets import LADDER, LayerRule, Measure, MemoryPreset
from memory.record import Layer, MemoryRecord
from memory.scoring import Floats

Rows = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


class JoinedRows:
    """Rows of one layer at a step, by the constants of a preset; `kinds` narrows what may be seen."""

    def __init__(
        self,
        preset: MemoryPreset,
        layer: Layer,
        now: float,
        parts: Sequence[Partition],
        kinds: Collection[str] | None,
    ) -> None:
        self.preset = preset
        self.now = now
        self.parts = [part for part in parts if part.size]
        self.starts = np.cumsum([0, *(part.size for part in self.parts)])
        self.rule: LayerRule = preset.rule(layer)
        self._kinds = kinds
        # What stands under the lower threshold of the shallowest layer has nowhere to sink: it is passed over.
        self._passes_over = preset.measure is Measure.STANDING and layer is LADDER[0]

    def hidden(self, part: Partition) -> Mask | None:
        """Which rows may not be recalled now: gone, of other kinds, not yet available; None where it is those that
        are gone alone."""
        if part.latest_available <= self.now and self._kinds is None and not self._passes_over:
            return None
        seen = part.alive & (part.column(AVAILABLE) <= self.now)
        if self._kinds is not None:
            seen &= part.bearing(self._kinds)
        if self._passes_over:
            recency, importance = self._scored(part, np.arange(part.size))
            standings = scoring.standings(recency, importance * scoring.FULL_IMPORTANCE, self.rule.weights)
            seen &= standings >= (self.rule.demote_below or 0.0)
        return ~seen

    def places(self, positions: Rows) -> Iterator[tuple[int, slice | Mask, Rows]]:
        """Every partition by its number, which of some positions are in it, and their rows there."""
        if len(self.parts) == 1:
            yield 0, slice(None), positions
            return
        owners = np.searchsorted(self.starts, positions, "right") - 1
        for number in range(len(self.parts)):
            mine = owners == number
            yield number, mine, positions[mine] - self.starts[number]

    def scores(self, positions: Rows) -> tuple[Floats, Floats]:
        """Recency and importance, the latter on [0, 1]."""
        recency, importance = np.empty(len(positions)), np.empty(len(positions))
        for number, mine, rows in self.places(positions):
            recency[mine], importance[mine] = self._scored(self.parts[number], rows)
        return recency, importance

    def vectors(self, positions: Rows, dimension: int) -> Floats:
        """Shape (positions, dimension)."""
        found = np.empty((len(positions), dimension))
        for number, mine, rows in self.places(positions):
            found[mine] = self.parts[number].vectors[rows]
        return found

    def relevancies(self, positions: Rows, query: Matrix) -> Floats:
        """Inner product of some rows with a query."""
        # A row's own sum, not a matrix product, whose last bits depend on the shape it is part of.
        return np.asarray((self.vectors(positions, len(query)) * query.astype(np.float64)).sum(axis=1))

    def record(self, position: int) -> MemoryRecord:
        """The record at a position."""
        part = int(np.searchsorted(self.starts, position, "right")) - 1
        return self.parts[part].records[int(position - self.starts[part])]

    def _scored(self, part: Partition, rows: Rows) -> tuple[Floats, Floats]:
        recency = scoring.recencies(self.now, part.column(RECENCY_STEP)[rows], self.rule.stability)
        importance = scoring.importances(
            self.now, part.column(IMPORTANCE)[rows], part.column(IMPORTANCE_STEP)[rows], self.rule.alpha
        )
        return recency, scoring.unit_importance(importance)
