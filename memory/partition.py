"""Live records of one owner, symbol and layer as arrays, and the rows of several that one recall ranks together."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from memory import formulas, lifecycle
from memory.formulas import FULL_IMPORTANCE, Floats
from memory.lexical import TermIndex
from memory.lifecycle import IMPORTANCE, IMPORTANCE_STEP, RECENCY_STEP
from memory.ports import Matrix
from memory.presets import LADDER, LayerRule, Measure, MemoryPreset
from memory.projection import PROJECT_FROM, Projection, grown
from memory.record import Layer, MemoryRecord, State

Rows = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

# Columns of the numbers of a row, all float64: those of its state (memory/lifecycle.py) and two more.
DUE, AVAILABLE = 5, 6


class Partition:
    """Records of one owner, symbol and layer; the row of a removed record is reclaimed later.

    `latest_available` is the last step at which one of them becomes available, `removed` the number of removed rows.
    """

    def __init__(self, layer: Layer, rule: LayerRule, dimension: int) -> None:
        self.layer = layer
        self.size = 0
        self.removed = 0
        self.latest_available = -math.inf
        self.records: list[MemoryRecord] = []
        self._vectors = np.empty((0, dimension), np.float32)
        self._numbers = np.empty((7, 0))
        self._alive = np.empty(0, np.bool_)
        self._pinned = np.empty(0, np.bool_)
        self._match_codes = np.empty(0, np.int32)
        self._floors = np.empty(0, np.int8)
        self._decay = DecayTable(rule)
        self._codes: dict[tuple[str, tuple[str, ...]], int] = {}
        self._projection: Projection | None = None
        self._terms: TermIndex | None = None

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

    def has(self, kinds: Collection[str] | None) -> bool:
        """False where no record was ever of one of these kinds."""
        return kinds is None or any(kind in kinds for kind, _ in self._codes)

    def available(self, now: float) -> Mask:
        """Mask of the rows whose record can be recalled at a step, of whatever kind."""
        return self.alive & (self.column(AVAILABLE) <= now)

    def terms(self) -> TermIndex:
        """The words of every row."""
        self._terms = self._terms or TermIndex()
        self._terms.extend(self.records)
        return self._terms

    def projection(self) -> Projection | None:
        """Upper bounds of every row's similarity, where there are many rows; fitted anew when their number has
        doubled."""
        if self.size < PROJECT_FROM:
            return None
        if self._projection is None or self.size > 2 * self._projection.fitted_rows:
            self._projection = Projection(self.vectors)
        else:
            self._projection.extend(self.vectors)
        return self._projection

    def strength(self, now: float, room: int) -> Singles:
        """Recency + importance of every row in single precision, -inf for removed rows and padding; shape (room,)."""
        if not self._decay.in_range(now):
            self._decay.move_anchor(now)
            self._fade(np.arange(self.size))
            self._decay.remove(np.flatnonzero(~self.alive))
        return self._decay.strength(now, self.size, room)

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
                setattr(self, name, grown(getattr(self, name), room, start))
            self._numbers = np.ascontiguousarray(grown(self._numbers.T, room, start).T)
            self._decay.resize(room)
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
        self.latest_available = max(self.latest_available, float(self._numbers[AVAILABLE, start:end].max()))
        rows = np.arange(start, end)
        self._fade(rows)
        return rows

    def write(self, row: int, state: State) -> None:
        """Write a state of this layer into a row."""
        self._numbers[:DUE, row] = lifecycle.columns([state])[:, 0]
        self._fade(np.array([row]))

    def remove(self, rows: Rows) -> None:
        """Remove the records of rows."""
        self._alive[rows] = False
        self._numbers[DUE, rows] = np.inf
        self._decay.remove(rows)
        self.removed += len(rows)

    def read(self, row: int) -> State:
        """State of a live row."""
        return lifecycle.state_of(self.layer, self._numbers[:DUE, row].tolist())

    def compact(self) -> None:
        """Reclaim the rows of removed records; the others keep their order."""
        alive = np.flatnonzero(self.alive)
        if self._projection is not None:
            self._projection.extend(self.vectors)
            self._projection.retain(alive)
        self._vectors = np.ascontiguousarray(self.vectors[alive])
        self._numbers = np.ascontiguousarray(self._numbers[:, : self.size][:, alive])
        self._match_codes = self._match_codes[alive]
        self._floors = self._floors[alive]
        self._pinned = self._pinned[alive]
        self._alive = np.ones(len(alive), np.bool_)
        self.records = [self.records[row] for row in alive.tolist()]
        self._terms = None
        self.size, self.removed = len(alive), 0
        self._decay.resize(self.size)
        self._fade(np.arange(self.size))

    def _fade(self, rows: Rows) -> None:
        columns = (self._numbers[name, rows] for name in (IMPORTANCE, IMPORTANCE_STEP, RECENCY_STEP))
        self._decay.write(rows, *columns)


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
        self.parts = [part for part in parts if part.size and part.has(kinds)]
        self.starts = np.cumsum([0, *(part.size for part in self.parts)])
        self.rule: LayerRule = preset.rule(layer)
        self._kinds = kinds
        self._known_by = known_by
        # What stands under the lower threshold of the shallowest layer has nowhere to sink: it is passed over, unless
        # it is pinned.
        self._skips_weak = preset.measure is Measure.RETENTION and layer is LADDER[0]

    def hidden(self, part: Partition) -> Mask | None:
        """Mask of the rows that cannot be recalled now: removed, of other kinds, not yet available.

        None where the removed rows are the only ones.
        """
        if part.latest_available <= self._known_by and self._kinds is None and not self._skips_weak:
            return None
        visible = part.available(self._known_by)
        if self._kinds is not None:
            visible &= part.matching(self._kinds)
        if self._skips_weak:
            recency, importance = self._scored(part, np.arange(part.size))
            scores = formulas.retention_scores(recency, importance * formulas.FULL_IMPORTANCE, self.rule.weights)
            visible &= (scores >= (self.rule.demote_below or 0.0)) | part.pinned
        return ~visible

    def visible(self, part: Partition) -> Mask:
        """Mask of the rows that can be recalled now."""
        hidden = self.hidden(part)
        return part.alive if hidden is None else ~hidden

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

    def records(self, positions: Rows) -> Iterator[MemoryRecord]:
        """The records at positions."""
        numbers = np.searchsorted(self.starts, positions, "right") - 1
        rows = positions - self.starts[numbers]
        return (self.parts[number].records[row] for number, row in zip(numbers.tolist(), rows.tolist(), strict=True))

    def _scored(self, part: Partition, rows: Rows) -> tuple[Floats, Floats]:
        recency = formulas.recencies(self.now, part.column(RECENCY_STEP)[rows], self.rule.stability)
        importance = formulas.importances(
            self.now, part.column(IMPORTANCE)[rows], part.column(IMPORTANCE_STEP)[rows], self.rule.alpha
        )
        return recency, formulas.unit_importance(importance)


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
