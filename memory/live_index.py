"""Live records as arrays: ranked exactly by a recall, scanned by a sweep for what is due.

One partition per owner, symbol and layer, so that a recall reads its own alone. The index holds nothing beyond the
store's two logs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from memory import lifecycle
from memory.decay import DecayTable, Singles
from memory.formulas import Floats
from memory.lifecycle import IMPORTANCE, IMPORTANCE_STEP, LAYERS, NO_LAYER, RECENCY_STEP, STEP, Moves
from memory.ports import Matrix
from memory.presets import LayerRule, MemoryPreset
from memory.projection import PROJECT_FROM, Projection
from memory.record import Layer, MemoryRecord, State, Touch

T = TypeVar("T", bound=np.generic)
Rows = npt.NDArray[np.intp]

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
        self._match_codes = np.empty(0, np.int32)
        self._floors = np.empty(0, np.int8)
        self._decay = DecayTable(rule)
        self._codes: dict[tuple[str, tuple[str, ...]], int] = {}
        self._projection: Projection | None = None

    @property
    def vectors(self) -> Matrix:
        """Vectors of the rows; shape (size, dimension)."""
        return self._vectors[: self.size]

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Mask of the rows whose record is not removed; shape (size,)."""
        return self._alive[: self.size]

    def column(self, name: int) -> npt.NDArray[np.float64]:
        """A column named above; shape (size,)."""
        return self._numbers[name, : self.size]

    def matching(self, kinds: Collection[str] | None = None, label: str | None = None) -> npt.NDArray[np.bool_]:
        """Mask of the rows whose record is of one of these kinds and has this label; shape (size,)."""
        fits = [(kinds is None or kind in kinds) and (label is None or label in own) for kind, own in self._codes]
        return np.array(fits, np.bool_)[self._match_codes[: self.size]]

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
            self._vectors = _grown(self._vectors, (room, self._vectors.shape[1]), start)
            self._alive = _grown(self._alive, (room,), start)
            self._match_codes = _grown(self._match_codes, (room,), start)
            self._floors = _grown(self._floors, (room,), start)
            numbers = np.empty((len(self._numbers), room))
            numbers[:, :start] = self._numbers[:, :start]
            self._numbers = numbers
            self._decay.resize(room)
        self.size = end
        self.records.extend(records)
        codes = self._codes
        self._vectors[start:end] = vectors
        self._numbers[:DUE, start:end] = states
        self._numbers[AVAILABLE, start:end] = [record.available_at for record in records]
        self._alive[start:end] = True
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
        step, importance, importance_step, recency_step, count = self._numbers[:DUE, row].tolist()
        return State(
            step=step,
            layer=self.layer,
            importance=importance,
            importance_step=importance_step,
            recency_step=recency_step,
            access_count=int(count),
        )

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
        self._alive = np.ones(len(alive), np.bool_)
        self.records = [self.records[row] for row in alive.tolist()]
        self.size, self.removed = len(alive), 0
        self._decay.resize(self.size)
        self._fade(np.arange(self.size))

    def _fade(self, rows: Rows) -> None:
        columns = (self._numbers[name, rows] for name in (IMPORTANCE, IMPORTANCE_STEP, RECENCY_STEP))
        self._decay.write(rows, *columns)


def _grown(array: npt.NDArray[T], shape: tuple[int, ...], filled: int) -> npt.NDArray[T]:
    grown = np.empty(shape, array.dtype)
    grown[:filled] = array[:filled]
    return grown


@dataclass(frozen=True, slots=True)
class RowRef:
    """Reference to a record's row."""

    partition: Partition
    row: int

    @property
    def record(self) -> MemoryRecord:
        """The referenced record."""
        return self.partition.records[self.row]

    @property
    def state(self) -> State:
        """The record's state."""
        return self.partition.read(self.row)


class LiveIndex:
    """All partitions, with the row of every live record; purged records are known by id alone."""

    def __init__(self, preset: MemoryPreset, dimension: int) -> None:
        self._preset = preset
        self._dimension = dimension
        self._partitions: dict[tuple[str, str, Layer], Partition] = {}
        self._places: dict[str, tuple[Partition, int]] = {}
        self._purged: set[str] = set()
        self._first: dict[tuple[str, str], float] = {}
        self._soonest = math.inf  # no record is due before it

    @classmethod
    def of(
        cls, preset: MemoryPreset, dimension: int, records: Iterable[MemoryRecord], touches: Iterable[Touch]
    ) -> LiveIndex:
        """Build the index from the store's logs; touches in the order of their sequence."""
        index = cls(preset, dimension)
        last: dict[str, State] = {}
        for touch in touches:
            known = last.get(touch.record_id)
            if known is None or touch.state.step >= known.step:
                last[touch.record_id] = touch.state
        alive: list[MemoryRecord] = []
        for record in records:
            if last.get(record.id, record.birth).layer is None:
                index._purged.add(record.id)
                index._note(record)
            else:
                alive.append(record)
        index.add(alive, [last.get(record.id, record.birth) for record in alive])
        return index

    def __contains__(self, record_id: str) -> bool:
        """True where the record was ever added, live or purged."""
        return record_id in self._places or record_id in self._purged

    def __len__(self) -> int:
        """Number of live records."""
        return len(self._places)

    def partition(self, owner: str, symbol: str, layer: Layer) -> Partition | None:
        """The partition of an owner, symbol and layer, or None where it never had a record."""
        return self._partitions.get((owner, symbol, layer))

    def partitions(self) -> Iterator[tuple[str, str, Partition]]:
        """All partitions with their owner and symbol."""
        for (owner, symbol, _), partition in self._partitions.items():
            yield owner, symbol, partition

    def first_available(self, owner: str, symbol: str) -> float:
        """First step at which a record of a symbol could be recalled, purged or not; inf where there was none."""
        return self._first.get((owner, symbol), math.inf)

    def locate(self, record_id: str) -> RowRef | None:
        """Reference to a live record; None for a purged or unknown one."""
        result = self._places.get(record_id)
        return None if result is None else RowRef(*result)

    def add(self, records: Sequence[MemoryRecord], states: Sequence[State] | None = None) -> None:
        """Add live records, in the state of their birth or in given states."""
        groups: dict[tuple[str, str, Layer], tuple[list[MemoryRecord], list[State]]] = {}
        for record, state in zip(records, [r.birth for r in records] if states is None else states, strict=True):
            self._note(record)
            if state.layer is not None:
                mine, theirs = groups.setdefault((record.owner, record.symbol, state.layer), ([], []))
                mine.append(record)
                theirs.append(state)
        for key, (mine, theirs) in groups.items():
            floors = [self.floor(record) for record in mine]
            numbers = np.array([NO_LAYER if floor is None else LAYERS.index(floor) for floor in floors], np.int8)
            vectors = np.stack([record.vector for record in mine])
            self._place(key, mine, vectors, lifecycle.columns(theirs), numbers)

    def write(self, record_id: str, state: State) -> None:
        """Write the new state of a live record in its layer, and compute its next due step."""
        partition, row = self._places[record_id]
        partition.write(row, state)
        self._set_due(partition, np.array([row]), np.array([state.step]))

    def due(self, now: float) -> list[tuple[Partition, Rows, Floats]]:
        """Rows of each partition that are due up to `now`, with the first due step of each."""
        result: list[tuple[Partition, Rows, Floats]] = []
        if now < self._soonest:
            return result
        self._soonest = math.inf
        for partition in self._partitions.values():
            due = partition.column(DUE)
            if not len(due):
                continue
            soonest = float(due.min())
            self._soonest = min(self._soonest, soonest)
            if soonest <= now:
                rows = np.flatnonzero(due <= now)
                result.append((partition, rows, due[rows]))
        return result

    def move(self, partition: Partition, rows: Rows, steps: Floats, moves: Moves) -> list[Touch]:
        """Apply moves to rows at their steps; return their touches in order."""
        left, numbers = rows[moves.moved], np.flatnonzero(moves.moved)
        records = [partition.records[row] for row in left.tolist()]
        if records:
            owner, symbol = records[0].owner, records[0].symbol
            partition.remove(left)
            layers = moves.layers[numbers]
            for number, layer in ((NO_LAYER, None), *enumerate(LAYERS)):
                here = np.flatnonzero(layers == number)
                mine = [records[n] for n in here.tolist()]
                if layer is None:
                    for record in mine:
                        del self._places[record.id]
                    self._purged.update(record.id for record in mine)
                elif mine:
                    known = left[here]
                    self._place(
                        (owner, symbol, layer),
                        mine,
                        partition.vectors[known],
                        moves.states[:, numbers[here]],
                        partition.floors(known),
                    )
        self._set_due(partition, rows[~moves.moved], steps[~moves.moved])
        return moves.touches([record.id for record in records])

    def compact(self) -> None:
        """Reclaim rows in partitions with many removed ones; earlier row references are invalid afterwards."""
        for partition in self._partitions.values():
            if partition.removed > 64 and partition.removed > partition.size // 4:
                partition.compact()
                for row, record in enumerate(partition.records):
                    self._places[record.id] = (partition, row)

    def floor(self, record: MemoryRecord) -> Layer | None:
        """The layer below which a record never sinks, or None."""
        return record.birth_layer if record.kind in self._preset.floor_kinds else None

    def _note(self, record: MemoryRecord) -> None:
        key = record.owner, record.symbol
        self._first[key] = min(record.available_at, self._first.get(key, math.inf))

    def _place(
        self,
        key: tuple[str, str, Layer],
        records: Sequence[MemoryRecord],
        vectors: Matrix,
        states: Floats,
        floors: npt.NDArray[np.int8],
    ) -> None:
        partition = self._partitions.get(key)
        if partition is None:
            partition = Partition(key[2], self._preset.rule(key[2]), self._dimension)
            self._partitions[key] = partition
        rows = partition.append(records, vectors, states, floors)
        for row, record in zip(rows.tolist(), records, strict=True):
            self._places[record.id] = (partition, row)
        self._set_due(partition, rows, states[STEP])

    def _set_due(self, partition: Partition, rows: Rows, after: Floats) -> None:
        if not len(rows):
            return
        on_floor = partition.floors(rows) == LAYERS.index(partition.layer)
        due = lifecycle.due_steps(self._preset, partition.layer, partition.states(rows), after, on_floor)
        partition.column(DUE)[rows] = due
        self._soonest = min(self._soonest, float(due.min()))
