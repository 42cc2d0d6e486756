"""The memory at one time: live records, their due changes and scores. Writes nothing.

One partition per owner, symbol and layer, so that a recall reads its own alone. The index holds nothing beyond the
store's two logs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from memory import formulas, lifecycle
from memory.formulas import Floats
from memory.lifecycle import LAYERS, NO_LAYER, STEP, Moves
from memory.partition import DUE, Partition, Rows
from memory.ports import Matrix
from memory.presets import MemoryPreset
from memory.record import Cause, Layer, MemoryRecord, State, Touch


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRecord:
    """A live record with its scores at a step.

    layer: its present layer.
    recency: on [0, 1].
    importance: before any scaling (0 to 100).
    access_count: rewards, counted by the preset's rule.
    due: the step of the next possible change; inf if none.
    pinned: True where it stays in its layer until it is unpinned.
    """

    record: MemoryRecord
    layer: Layer
    recency: float
    importance: float
    access_count: int
    due: float
    pinned: bool


class LiveIndex:
    """All partitions, with the row of every live record; purged records are known by id alone.

    `latest` is the last step of any row or change.
    """

    def __init__(self, preset: MemoryPreset, dimension: int) -> None:
        self._preset = preset
        self._dimension = dimension
        self._partitions: dict[tuple[str, str, Layer], Partition] = {}
        self._places: dict[str, tuple[Partition, int]] = {}
        self._purged: set[str] = set()
        self._first: dict[tuple[str, str], float] = {}
        self._soonest = math.inf  # no record is due before it
        self.latest = -math.inf

    @classmethod
    def of(
        cls, preset: MemoryPreset, dimension: int, records: Iterable[MemoryRecord], touches: Iterable[Touch]
    ) -> LiveIndex:
        """Build the index from the store's logs; touches in the order of their sequence."""
        index = cls(preset, dimension)
        last: dict[str, State] = {}
        pinned: dict[str, bool] = {}
        for touch in touches:
            if touch.cause in (Cause.PINNED, Cause.UNPINNED):
                pinned[touch.record_id] = touch.cause is Cause.PINNED
            index.latest = max(index.latest, touch.state.step)
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
        for record in alive:
            if pinned.get(record.id):
                index.pin(record.id)
        return index

    def __contains__(self, record_id: str) -> bool:
        """True where the record was ever added, live or purged."""
        return record_id in self._places or record_id in self._purged

    def __len__(self) -> int:
        """Number of live records."""
        return len(self._places)

    def partitions(self, owner: str, symbols: Iterable[str], layer: Layer) -> list[Partition]:
        """Partitions of an owner's symbols in one layer, those that ever had a record."""
        keys = ((owner, symbol, layer) for symbol in dict.fromkeys(symbols))
        return [self._partitions[key] for key in keys if key in self._partitions]

    def first_available(self, owner: str, symbol: str) -> float:
        """First step at which a record of a symbol could be recalled, purged or not; inf where there was none."""
        return self._first.get((owner, symbol), math.inf)

    def record(self, record_id: str) -> MemoryRecord | None:
        """A live record; None for a purged or unknown one."""
        place = self._places.get(record_id)
        return None if place is None else place[0].records[place[1]]

    def state(self, record_id: str) -> State | None:
        """State of a live record; None for a purged or unknown one."""
        place = self._places.get(record_id)
        return None if place is None else place[0].read(place[1])

    def add(self, records: Sequence[MemoryRecord], states: Sequence[State] | None = None) -> None:
        """Add live records, in the state of their birth or in given states."""
        groups: dict[tuple[str, str, Layer], tuple[list[MemoryRecord], list[State]]] = {}
        for record, state in zip(records, [r.birth for r in records] if states is None else states, strict=True):
            self._note(record)
            self._purged.discard(record.id)
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
        self.latest = max(self.latest, state.step)

    def pin(self, record_id: str, pinned: bool = True) -> None:
        """Keep a live record in its layer, where it neither moves nor fades, or (False) let it go on from there."""
        partition, row = self._places[record_id]
        partition.pinned[row] = pinned
        self._set_due(partition, np.array([row]), np.array([partition.read(row).step]))

    def forget(self, record_id: str) -> None:
        """Remove a live record."""
        partition, row = self._places.pop(record_id)
        partition.remove(np.array([row]))
        self._purged.add(record_id)

    def advance(self, now: float) -> list[Touch]:
        """Apply every change that is due up to `now`, and return the touches by step, then by age of the record."""
        made: list[tuple[float, int, Touch]] = []
        while due := self._due(now):
            for partition, rows, steps in due:
                moves = lifecycle.apply_step(
                    self._preset, partition.layer, partition.states(rows), steps, partition.floors(rows)
                )
                sequences = [partition.records[row].sequence for row in rows[moves.moved].tolist()]
                touches = self._move(partition, rows, steps, moves)
                made.extend(zip(steps[moves.moved].tolist(), sequences, touches, strict=True))
            self._compact()
        self.latest = max(self.latest, now)
        made.sort(key=itemgetter(0, 1))
        return [touch for _, _, touch in made]

    def scored_records(self, now: float) -> list[ScoredRecord]:
        """All live records with their scores at `now`, by owner, symbol and birth."""
        self.advance(now)
        living: list[ScoredRecord] = []
        for partition in self._partitions.values():
            rule = self._preset.rule(partition.layer)
            for row in np.flatnonzero(partition.alive).tolist():
                record, state = partition.records[row], partition.read(row)
                if record.written_step > now:
                    continue
                living.append(
                    ScoredRecord(
                        record=record,
                        layer=partition.layer,
                        recency=formulas.recency(now, state.recency_step, rule.stability),
                        importance=formulas.importance(now, state.importance, state.importance_step, rule.alpha),
                        access_count=state.access_count,
                        due=float(partition.column(DUE)[row]),
                        pinned=bool(partition.pinned[row]),
                    )
                )
        return sorted(living, key=lambda s: (s.record.owner, s.record.symbol, s.record.born_step, s.record.id))

    def floor(self, record: MemoryRecord) -> Layer | None:
        """The layer below which a record never sinks, or None."""
        return record.birth_layer if record.kind in self._preset.floor_kinds else None

    def _due(self, now: float) -> list[tuple[Partition, Rows, Floats]]:
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

    def _move(self, partition: Partition, rows: Rows, steps: Floats, moves: Moves) -> list[Touch]:
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

    def _compact(self) -> None:
        """Reclaim rows in partitions with many removed ones; earlier row numbers are invalid afterwards."""
        for partition in self._partitions.values():
            if partition.removed > 64 and partition.removed > partition.size // 4:
                partition.compact()
                for row, record in enumerate(partition.records):
                    self._places[record.id] = (partition, row)

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
        due[partition.pinned[rows]] = np.inf
        partition.column(DUE)[rows] = due
        self._soonest = min(self._soonest, float(due.min()))
