"""Live records of one owner, symbol and layer as arrays, and the rows of several that one recall ranks together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from memory import formulas, lifecycle
from memory.formulas import Floats
from memory.lexical import TermIndex
from memory.lifecycle import IMPORTANCE, IMPORTANCE_STEP, RECENCY_STEP
from memory.ports import Matrix
from memory.presets import LADDER, LayerRule, Measure, MemoryPreset
from memory.record import Layer, MemoryRecord, State

Rows = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)

# Columns of the numbers of a row, all float64: those of its state (memory/lifecycle.py) and two more.
DUE, AVAILABLE = 5, 6


class Partition:
    """Records of one owner, symbol and layer, the removed ones included; a record's row never changes."""

    def __init__(self, layer: Layer, dimension: int) -> None:
        self.layer = layer
        self.size = 0
        self.records: list[MemoryRecord] = []
        self._vectors = np.empty((0, dimension), np.float32)
        self._numbers = np.empty((7, 0))
        self._alive = np.empty(0, np.bool_)
        self._pinned = np.empty(0, np.bool_)
        self._match_codes = np.empty(0, np.int32)
        self._floors = np.empty(0, np.int8)
        self._codes: dict[tuple[str, tuple[str, ...]], int] = {}
        self._terms = TermIndex()

    @property
    def vectors(self) -> Matrix:
        """Vectors of the rows; shape (size, dimension)."""
        return self._vectors[: self.size]

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Mask of the rows whose record is not removed; shape (size,)."""
        return self._alive[: self.size]

    @property
    def pinned(self) -> npt.NDArray[np.bool_]:
        """Mask of the rows whose record is pinned to this layer; shape (size,)."""
        return self._pinned[: self.size]

    def column(self, name: int) -> npt.NDArray[np.float64]:
        """A column named above; shape (size,)."""
        return self._numbers[name, : self.size]

    def matching(self, kinds: Collection[str] | None = None, label: str | None = None) -> npt.NDArray[np.bool_]:
        """Mask of the rows whose record is of one of these kinds and has this label, or none at all; shape (size,)."""
        fits = [
            (kinds is None or kind in kinds) and (label is None or not own or label in own) for kind, own in self._codes
        ]
        return np.array(fits, np.bool_)[self._match_codes[: self.size]]

    def available(self, now: float) -> Mask:
        """Mask of the rows whose record can be recalled at a step, of whatever kind."""
        return self.alive & (self.column(AVAILABLE) <= now)

    def terms(self) -> TermIndex:
        """The words of every row."""
        self._terms.extend(self.records)
        return self._terms

    def states(self, rows: Rows) -> Floats:
        """States of rows, in columns."""
        return self._numbers[:DUE, rows]

    def floors(self, rows: Rows) -> npt.NDArray[np.int8]:
        """Layers below which rows never sink, by number."""
        return self._floors[rows]

    def append(
        self, records: Sequence[MemoryRecord], vectors: Matrix, states: Floats, floors: npt.NDArray[np.int8]
    ) -> Rows:
        """Add rows in states of this layer and return their numbers; their due steps are still to be set."""
        start, end = self.size, self.size + len(records)
        if end > len(self._alive):
            room = max(end, 2 * len(self._alive), 8)
            for name in ("_vectors", "_alive", "_pinned", "_match_codes", "_floors"):
                setattr(self, name, _grown(getattr(self, name), room, start))
            self._numbers = np.ascontiguousarray(_grown(self._numbers.T, room, start).T)
        self.size = end
        self.records.extend(records)
        codes = self._codes
        self._vectors[start:end] = vectors
        self._numbers[:DUE, start:end] = states
        self._numbers[AVAILABLE, start:end] = [record.available_at for record in records]
        self._alive[start:end] = True
        self._pinned[start:end] = False
        self._match_codes[start:end] = [codes.setdefault((r.kind, r.labels), len(codes)) for r in records]
        self._floors[start:end] = floors
        return np.arange(start, end)

    def write(self, row: int, state: State) -> None:
        """Write a state of this layer into a row."""
        self._numbers[:DUE, row] = lifecycle.columns([state])[:, 0]

    def remove(self, rows: Rows) -> None:
        """Remove the records of rows."""
        self._alive[rows] = False
        self._numbers[DUE, rows] = np.inf

    def read(self, row: int) -> State:
        """State of a live row."""
        return lifecycle.state_of(self.layer, self._numbers[:DUE, row].tolist())


class LayerRows:
    """Rows of one layer at a step, by the constants of a preset; `kinds` and `known_by`, the step at which they have to
    be available, restrict the records that may be recalled.

    Positions count through all partitions. Scores of a row are in double precision and do not depend on its position.
    """

    def __init__(
        self,
        preset: MemoryPreset,
        layer: Layer,
        now: float,
        parts: Sequence[Partition],
        kinds: Collection[str] | None,
        *,
        known_by: float,
    ) -> None:
        self.preset = preset
        self.layer = layer
        self.now = now
        self.parts = [part for part in parts if part.size]
        self.records = [record for part in self.parts for record in part.records]
        self.rule: LayerRule = preset.rule(layer)
        self._kinds = kinds
        self._known_by = known_by
        # What stands under the lower threshold of the shallowest layer has nowhere to sink: it is passed over, unless
        # it is pinned.
        self._skips_weak = preset.measure is Measure.RETENTION and layer is LADDER[0]

    def hidden(self, part: Partition) -> Mask:
        """Mask of the rows that cannot be recalled now: removed, of other kinds, not yet available, too weak."""
        visible = part.available(self._known_by) & part.matching(self._kinds)
        if self._skips_weak:
            recency, importance = self._scored(part)
            scores = formulas.retention_scores(recency, importance * formulas.FULL_IMPORTANCE, self.rule.weights)
            visible &= (scores >= (self.rule.demote_below or 0.0)) | part.pinned
        return np.asarray(~visible)

    @cached_property
    def scores(self) -> tuple[Floats, Floats]:
        """Recency and importance of every row, the latter on [0, 1]."""
        recency, importance = zip(*map(self._scored, self.parts), strict=True)
        return np.concatenate(recency), np.concatenate(importance)

    def vectors(self, positions: Rows) -> Floats:
        """Vectors of rows; shape (positions, dimension)."""
        return np.array([self.records[position].vector for position in positions.tolist()], np.float64)

    def relevancies(self, positions: Rows, query: Matrix) -> Floats:
        """Inner products of rows with a query."""
        # A row's own sum, not a matrix product, whose last bits depend on the shape it is part of.
        vectors = self.vectors(positions).reshape(len(positions), len(query))
        return np.asarray((vectors * query.astype(np.float64)).sum(axis=1))

    def _scored(self, part: Partition) -> tuple[Floats, Floats]:
        recency = formulas.recencies(self.now, part.column(RECENCY_STEP), self.rule.stability)
        importance = formulas.importances(
            self.now, part.column(IMPORTANCE), part.column(IMPORTANCE_STEP), self.rule.alpha
        )
        return recency, formulas.unit_importance(importance)


def _grown(rows: npt.NDArray[T], room: int, filled: int) -> npt.NDArray[T]:
    """An array with room for more rows, with the filled ones of another."""
    result = np.zeros((room, *rows.shape[1:]), rows.dtype)
    result[:filled] = rows[:filled]
    return result
