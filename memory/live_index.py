"""The records that are alive, as arrays: what a recall ranks exactly and a sweep looks through for what is due.

One partition per owner, symbol and layer, so that a recall looks at its own alone. The index holds nothing that the
store's two logs do not say.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from memory import lifecycle
from memory.outline import OUTLINE_FROM, Outline
from memory.ports import Matrix
from memory.presets import MemoryPreset
from memory.record import Layer, MemoryRecord, State, Touch

T = TypeVar("T", bound=np.generic)

# Columns of the numbers of a row, all float64.
STEP, IMPORTANCE, IMPORTANCE_STEP, RECENCY_STEP, COUNT, DUE, AVAILABLE = range(7)


class Partition:
    """The records of one owner, symbol and layer; the row of one that has left is given back later.

    `latest_available` is when the last of them becomes available, `gone` how many have left.
    """

    def __init__(self, layer: Layer, dimension: int) -> None:
        self.layer = layer
        self.size = 0
        self.gone = 0
        self.latest_available = -math.inf
        self.records: list[MemoryRecord] = []
        self._vectors = np.empty((8, dimension), np.float32)
        self._numbers = np.empty((7, 8))
        self._alive = np.empty(8, np.bool_)
        self._bearings = np.empty(8, np.int32)
        self._codes: dict[tuple[str, tuple[str, ...]], int] = {}
        self._outline: Outline | None = None

    @property
    def vectors(self) -> Matrix:
        """Shape (size, dimension)."""
        return self._vectors[: self.size]

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Whether the record of a row is here still; shape (size,)."""
        return self._alive[: self.size]

    def column(self, name: int) -> npt.NDArray[np.float64]:
        """One of the columns named above; shape (size,)."""
        return self._numbers[name, : self.size]

    def bearing(self, kinds: Collection[str] | None = None, label: str | None = None) -> npt.NDArray[np.bool_]:
        """Whether a row's record is of one of these kinds and bears this label; shape (size,)."""
        fits = [(kinds is None or kind in kinds) and (label is None or label in own) for kind, own in self._codes]
        return np.array(fits, np.bool_)[self._bearings[: self.size]]

    def outline(self) -> Outline | None:
        """What bounds the likeness of every row, where there are many; learnt anew when they have doubled."""
        if self.size < OUTLINE_FROM:
            return None
        if self._outline is None or self.size > 2 * self._outline.learnt_from:
            self._outline = Outline(self.vectors)
        else:
            self._outline.follow(self.vectors)
        return self._outline

    def append(self, records: Sequence[MemoryRecord], states: Sequence[State]) -> range:
        """Adds rows at the end, in states of this layer; their due steps are still to be set."""
        start, end = self.size, self.size + len(records)
        if end > len(self._alive):
            room = max(end, 2 * len(self._alive))
            self._vectors = _grown(self._vectors, (room, self._vectors.shape[1]), start)
            self._alive = _grown(self._alive, (room,), start)
            self._bearings = _grown(self._bearings, (room,), start)
            numbers = np.empty((len(self._numbers), room))
            numbers[:, :start] = self._numbers[:, :start]
            self._numbers = numbers
        self.size = end
        self.records.extend(records)
        for row, (record, state) in enumerate(zip(records, states, strict=True), start):
            self._vectors[row] = record.vector
            self._numbers[AVAILABLE, row] = record.available_at
            self._alive[row] = True
            self._bearings[row] = self._codes.setdefault((record.kind, record.labels), len(self._codes))
            self.latest_available = max(self.latest_available, record.available_at)
            self.write(row, state)
        return range(start, end)

    def write(self, row: int, state: State) -> None:
        """Puts a state of this layer into a row."""
        self._numbers[:DUE, row] = (
            state.step,
            state.importance,
            state.importance_step,
            state.recency_step,
            state.access_count,
        )

    def remove(self, row: int) -> None:
        """The record of a row has left."""
        self._alive[row] = False
        self._numbers[DUE, row] = np.inf
        self.gone += 1

    def read(self, row: int) -> State:
        """The state of a row that is alive."""
        step, importance, importance_step, recency_step, count = self._numbers[:DUE, row].tolist()
        return State(step, self.layer, importance, importance_step, recency_step, int(count))

    def drop_gone(self) -> None:
        """Gives the rows of those that have left back; the others keep their order."""
        alive = np.flatnonzero(self.alive)
        if self._outline is not None:
            self._outline.follow(self.vectors)
            self._outline.keep(alive)
        self._vectors = np.ascontiguousarray(self.vectors[alive])
        self._numbers = np.ascontiguousarray(self._numbers[:, : self.size][:, alive])
        self._bearings = self._bearings[alive]
        self._alive = np.ones(len(alive), np.bool_)
        self.records = [self.records[row] for row in alive.tolist()]
        self.size, self.gone = len(alive), 0


def _grown(array: npt.NDArray[T], shape: tuple[int, ...], filled: int) -> npt.NDArray[T]:
    grown = np.empty(shape, array.dtype)
    grown[:filled] = array[:filled]
    return grown


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record's row is."""

    partition: Partition
    row: int

    @property
    def record(self) -> MemoryRecord:
        """The record."""
        return self.partition.records[self.row]

    @property
    def state(self) -> State:
        """How it stands."""
        return self.partition.read(self.row)


class LiveIndex:
    """All partitions, with the place of every living record; purged ones are known by id alone."""

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
        """The index that these logs say; touches in the order of their sequence."""
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
        """Whether the record was ever added, living or purged."""
        return record_id in self._places or record_id in self._purged

    def __len__(self) -> int:
        """How many are alive."""
        return len(self._places)

    def partition(self, owner: str, symbol: str, layer: Layer) -> Partition | None:
        """The partition of an owner, symbol and layer, if anything ever stood there."""
        return self._partitions.get((owner, symbol, layer))

    def partitions(self) -> Iterator[tuple[str, str, Partition]]:
        """All partitions with their owner and symbol."""
        for (owner, symbol, _), partition in self._partitions.items():
            yield owner, symbol, partition

    def first_available(self, owner: str, symbol: str) -> float:
        """The step from which on anything of a symbol could be recalled, purged or not; inf where there never was."""
        return self._first.get((owner, symbol), math.inf)

    def place(self, record_id: str) -> Place | None:
        """Where a living record is; None for a purged or unknown one."""
        found = self._places.get(record_id)
        return None if found is None else Place(*found)

    def add(self, records: Sequence[MemoryRecord], states: Sequence[State] | None = None) -> None:
        """Adds living records, in the state of their birth or in the given ones."""
        for record in records:
            self._note(record)
        self._place(records, [record.birth for record in records] if states is None else states)

    def write(self, changes: Mapping[str, State]) -> None:
        """The new states of living records; what follows from them has to be reckoned (`reckon_due`)."""
        moved: list[tuple[MemoryRecord, State]] = []
        left: dict[int, Partition] = {}
        for record_id, state in changes.items():
            partition, row = self._places[record_id]
            if state.layer is partition.layer:
                partition.write(row, state)
                continue
            partition.remove(row)
            left[id(partition)] = partition
            if state.layer is None:
                del self._places[record_id]
                self._purged.add(record_id)
            else:
                moved.append((partition.records[row], state))
        self._place([record for record, _ in moved], [state for _, state in moved])
        for partition in left.values():
            if partition.gone > 64 and partition.gone > partition.size // 4:
                partition.drop_gone()
                for row, record in enumerate(partition.records):
                    self._places[record.id] = (partition, row)

    def reckon_due(self, after: Mapping[str, float]) -> None:
        """Sets when the living of these records are due next, after the given step of each."""
        groups: dict[int, tuple[Partition, list[int], list[float]]] = {}
        for record_id, step in after.items():
            if record_id in self._places:
                partition, row = self._places[record_id]
                _, rows, steps = groups.setdefault(id(partition), (partition, [], []))
                rows.append(row)
                steps.append(step)
        for partition, rows, steps in groups.values():
            self._set_due(partition, np.array(rows), np.array(steps))

    def due(self, now: float) -> dict[str, float]:
        """The records at which something may happen up to `now`, and when first."""
        found: dict[str, float] = {}
        if now < self._soonest:
            return found
        self._soonest = math.inf
        for partition in self._partitions.values():
            due = partition.column(DUE)
            if not len(due):
                continue
            self._soonest = min(self._soonest, float(due.min()))
            rows = np.flatnonzero(due <= now)
            for row, step in zip(rows.tolist(), due[rows].tolist(), strict=True):
                found[partition.records[row].id] = step
        return found

    def floor(self, record: MemoryRecord) -> Layer | None:
        """The layer that a record never sinks below, if its kind has one."""
        return record.birth_layer if record.kind in self._preset.kept_kinds else None

    def _note(self, record: MemoryRecord) -> None:
        key = record.owner, record.symbol
        self._first[key] = min(record.available_at, self._first.get(key, math.inf))

    def _place(self, records: Sequence[MemoryRecord], states: Sequence[State]) -> None:
        groups: dict[tuple[str, str, Layer], list[int]] = {}
        for position, (record, state) in enumerate(zip(records, states, strict=True)):
            if state.layer is not None:
                groups.setdefault((record.owner, record.symbol, state.layer), []).append(position)
        for key, positions in groups.items():
            partition = self._partitions.setdefault(key, Partition(key[2], self._dimension))
            rows = partition.append([records[n] for n in positions], [states[n] for n in positions])
            for row in rows:
                self._places[partition.records[row].id] = (partition, row)
            here = np.arange(rows.start, rows.stop)
            self._set_due(partition, here, partition.column(STEP)[here])

    def _set_due(self, partition: Partition, rows: npt.NDArray[np.intp], after: npt.NDArray[np.float64]) -> None:
        if not len(rows):
            return
        on_floor = [self.floor(partition.records[row]) == partition.layer for row in rows.tolist()]
        due = lifecycle.due_steps(
            self._preset,
            partition.layer,
            partition.column(IMPORTANCE)[rows],
            partition.column(IMPORTANCE_STEP)[rows],
            partition.column(RECENCY_STEP)[rows],
            partition.column(COUNT)[rows],
            after,
            np.array(on_floor, np.bool_),
        )
        partition.column(DUE)[rows] = due
        self._soonest = min(self._soonest, float(due.min()))
