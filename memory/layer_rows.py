"""The partitions that one recall reads in one layer, as one table whose positions count through all of them.

Scores of a row are in double precision and do not depend on its position.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from memory import formulas
from memory.formulas import Floats
from memory.lifecycle import IMPORTANCE, IMPORTANCE_STEP, RECENCY_STEP
from memory.live_index import AVAILABLE, Partition
from memory.ports import Matrix
from memory.presets import LADDER, LayerRule, Measure, MemoryPreset
from memory.record import Layer, MemoryRecord

Rows = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


class LayerRows:
    """Rows of one layer at a step, by the constants of a preset; `kinds` restricts the records that may be recalled."""

    def __init__(
        self,
        preset: MemoryPreset,
        layer: Layer,
        now: float,
        parts: Sequence[Partition],
        kinds: Collection[str] | None,
    ) -> None:
        self.preset = preset
        self.layer = layer
        self.now = now
        self.parts = [part for part in parts if part.size]
        self.starts = np.cumsum([0, *(part.size for part in self.parts)])
        self.rule: LayerRule = preset.rule(layer)
        self._kinds = kinds
        # What stands under the lower threshold of the shallowest layer has nowhere to sink: it is passed over.
        self._skips_weak = preset.measure is Measure.RETENTION and layer is LADDER[0]

    def hidden(self, part: Partition) -> Mask | None:
        """Mask of the rows that cannot be recalled now: removed, of other kinds, not yet available.

        None where the removed rows are the only ones.
        """
        if part.latest_available <= self.now and self._kinds is None and not self._skips_weak:
            return None
        visible = part.alive & (part.column(AVAILABLE) <= self.now)
        if self._kinds is not None:
            visible &= part.matching(self._kinds)
        if self._skips_weak:
            recency, importance = self._scored(part, np.arange(part.size))
            scores = formulas.retention_scores(recency, importance * formulas.FULL_IMPORTANCE, self.rule.weights)
            visible &= scores >= (self.rule.demote_below or 0.0)
        return ~visible

    def by_partition(self, positions: Rows) -> Iterator[tuple[int, slice | Mask, Rows]]:
        """For every partition: its number, the mask of the positions in it, and their rows there."""
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
        for number, mine, rows in self.by_partition(positions):
            recency[mine], importance[mine] = self._scored(self.parts[number], rows)
        return recency, importance

    def vectors(self, positions: Rows, dimension: int) -> Floats:
        """Vectors of rows; shape (positions, dimension)."""
        result = np.empty((len(positions), dimension))
        for number, mine, rows in self.by_partition(positions):
            result[mine] = self.parts[number].vectors[rows]
        return result

    def relevancies(self, positions: Rows, query: Matrix) -> Floats:
        """Inner products of rows with a query."""
        # A row's own sum, not a matrix product, whose last bits depend on the shape it is part of.
        return np.asarray((self.vectors(positions, len(query)) * query.astype(np.float64)).sum(axis=1))

    def record(self, position: int) -> MemoryRecord:
        """The record at a position."""
        part = int(np.searchsorted(self.starts, position, "right")) - 1
        return self.parts[part].records[int(position - self.starts[part])]

    def _scored(self, part: Partition, rows: Rows) -> tuple[Floats, Floats]:
        recency = formulas.recencies(self.now, part.column(RECENCY_STEP)[rows], self.rule.stability)
        importance = formulas.importances(
            self.now, part.column(IMPORTANCE)[rows], part.column(IMPORTANCE_STEP)[rows], self.rule.alpha
        )
        return recency, formulas.unit_importance(importance)
