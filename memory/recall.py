"""The layered memory: remember, recall, cite, reinforce, mark, sweep. The engine uses nothing else of this package.

Two append-only logs, records and touches, with scores as functions of time. So a memory can be read as of any day,
every change has a cause, and a crash leaves nothing half-decayed. Reading needs no writer: changes that are due by a
step follow from the logs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from memory import lifecycle
from memory.embedders import HashEmbedder
from memory.errors import EmbedderUnavailable, InvalidRecord, StoreError, TimeOrder, UnknownPreset, UnknownRecord
from memory.layer_rank import Hit, LayerRanking
from memory.lexical import Corpus
from memory.lifecycle import RECENCY_STEP as RECENCY
from memory.live_index import LiveIndex, ScoredRecord
from memory.marks import Marks, mark, marks_of
from memory.partition import DUE, LayerRows
from memory.ports import Embedder, Matrix, Store, StoreReport
from memory.presets import MemoryPreset, Ranking, Relevancy, preset_named
from memory.record import (
    DEFAULT_OWNER,
    MARKET,
    NOTHING,
    Cause,
    Head,
    Item,
    Layer,
    MemoryRecord,
    Touch,
    Vector,
    id_of,
)


class LayeredMemory:
    """A desk's memory over a store, by the constants of a preset.

    Steps are trading days of the agent's clock, possibly fractions; `now` is always passed in. Order is (step,
    sequence): a reflection written after a decision of the same step has a later fraction of it, or a later `sequence`.
    Raises the errors of memory/errors.py.
    """

    def __init__(self, store: Store, embedder: Embedder, preset: MemoryPreset | str) -> None:
        self.preset = preset_named(preset) if isinstance(preset, str) else preset
        self._store = store
        self.embedder = embedder
        self._pending: list[Touch] = []
        self._past: tuple[tuple[float, int], LiveIndex] | None = None
        self._index: LiveIndex
        self._head: Head
        try:
            self._load()
        except BaseException:
            store.close()  # whoever cannot read it does not keep others from writing
            raise

    def __enter__(self) -> LayeredMemory:
        """Return itself; the store is closed at the end of the block."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the store."""
        self.close()

    def remember(self, items: Iterable[Item], now: float) -> list[str]:
        """Write new items and return the id of every item, in order; all of them or none.

        An item written before at the same step is skipped, so a repeated day changes nothing. A reflection that says
        what an earlier one said touches that one, whose id is returned. Raises InvalidRecord (an empty text, a vector
        that is not finite) and UnknownPreset (an unknown kind of source).
        """
        given = list(items)
        ids = [id_of(item, item.born(now)) for item in given]
        fresh = {record_id: item for record_id, item in zip(ids, given, strict=True) if record_id not in self._index}
        for item in fresh.values():
            if not item.text.strip():
                raise InvalidRecord(
                    f"{item.kind} of {item.symbol} from {item.source or 'no source'}: the text is empty; "
                    "an answer that failed is not remembered"
                )
        vectors = self._embed_texts([item.query_text.strip() or item.text for item in fresh.values()])
        new = [(record_id, item, vector) for (record_id, item), vector in zip(fresh.items(), vectors, strict=True)]
        earlier = {
            record_id: record.id for record_id, item, vector in new if (record := self._restated(item, vector, now))
        }
        if new:
            self._flush()  # rows are numbered in the order in which they are written
        records = [
            new_record(self.preset, record_id, item, now, vector, sequence=self._head.rows + n)
            for n, (record_id, item, vector) in enumerate((one for one in new if one[0] not in earlier), 1)
        ]
        if records:
            self._store.append_records(records)
            self._head = Head(records[-1].sequence, records[-1].id)
            self._index.add(records)
        for record_id, known in earlier.items():
            self._touch(
                [known], now, fresh[record_id].source or record_id, lambda state: lifecycle.restate(state, float(now))
            )
        return [earlier.get(record_id, record_id) for record_id in ids]

    def recall(
        self,
        symbol: str,
        queries: Mapping[str, str],
        now: float,
        *,
        owner: str = DEFAULT_OWNER,
        k: int | None = None,
        kinds: Collection[str] | None = None,
        labelled: bool = False,
        known_by: float = math.inf,
        alike: bool = False,
    ) -> dict[Layer, tuple[Hit, ...]]:
        """The first `k` (default: the preset's) of every layer for every query type, united by id, best first.

        Records of `symbol` and of MARKET; nothing written, or available, after `now`. `queries` are texts about the
        present by retrieval type; where all are blank, recent and important records come. `labelled`: a query sees only
        the records labelled with its type and those without a label; `known_by` leaves out what could be recalled only
        later than that; `alike` has what says the same as another too. A `now` before the latest change is answered as
        of then. Source: InvestorBench A [I2], FinAgent §4.1, §4.2 [A2, A6].
        """
        index = self._at(now)
        if k is not None and k < 1:
            raise InvalidRecord(f"recall of {symbol}: k is {k}; ask for one at least")
        texts = {name: text for name, text in queries.items() if text.strip()}
        if not texts and self.preset.ranking is Ranking.RELEVANCY:
            return dict.fromkeys(self.preset.layers, ())
        lexical = bool(texts) and self.preset.relevancy is Relevancy.LEXICAL
        fuses = self.embedder.id != HashEmbedder.id
        # Without a query recent and important records come, with relevancy 0; where words alone count, no vector does.
        embeds = bool(texts) and (fuses or not lexical)
        vectors = self.embedder.embed(list(texts.values())) if embeds else np.zeros((1, self.embedder.dimension))
        vectors = vectors.astype(np.float32, copy=False)
        if not np.isfinite(vectors).all():
            raise InvalidRecord(f"recall of {symbol}: a query's vector is not finite; check the embedder")
        preset = replace(self.preset, duplicate_similarity=None) if alike else self.preset
        recalled: dict[Layer, tuple[Hit, ...]] = {}
        parts = {layer: index.partitions(owner, (symbol, MARKET), layer) for layer in self.preset.layers}
        corpus = None
        if lexical:
            every = [part for some in parts.values() for part in some]
            corpus = Corpus([part.terms() for part in every], [part.available(min(now, known_by)) for part in every])
        for layer in self.preset.layers:
            ranking = LayerRanking(
                LayerRows(preset, layer, now, parts[layer], kinds, known_by=min(now, known_by)),
                vectors,
                corpus=corpus,
                texts=tuple(texts.values()),
                fuses=fuses,
            )
            recalled[layer] = ranking.ranked(tuple(texts) or ("",), self.taken(layer, k), labelled and bool(texts))
        return recalled

    def taken(self, layer: Layer, k: int | None = None) -> int:
        """The number of records that a query takes of a layer: `k`, else the preset's."""
        return k or self.preset.rule(layer).k or self.preset.k

    def recent(
        self, symbol: str, kinds: Collection[str], since: float, now: float, *, owner: str = DEFAULT_OWNER
    ) -> list[tuple[float, Layer, MemoryRecord]]:
        """The live records of a symbol and of these kinds that were written or restated from a step on and may be
        recalled by `now`: the step of that, the layer and the record, oldest first."""
        index = self._at(now)
        found = [
            (float(partition.column(RECENCY)[row]), layer, partition.records[row])
            for layer in self.preset.layers
            for partition in index.partitions(owner, (symbol,), layer)
            for row in np.flatnonzero(
                partition.available(now) & partition.matching(kinds) & (partition.column(RECENCY) >= since)
            ).tolist()
        ]
        return sorted(found, key=lambda one: (one[0], one[2].sequence))

    def cite(self, ids: Iterable[str], now: float, key: str) -> list[Touch]:
        """Note that a decision (its key) cites these records. Scores change when its reward is known."""
        return self._touch(ids, now, key, lambda state: lifecycle.cite(state, float(now)))

    def reinforce(self, ids: Iterable[str], sign: int, now: float, key: str) -> list[Touch]:
        """Reward the records that a decision (its key) cited: sign 1 when it paid, -1 when it cost, 0 for none.

        Purged records are skipped. The same key at the same step rewards once. Returns the touches written. Source:
        InvestorBench A [I4].
        """
        if sign not in (-1, 0, 1):
            raise InvalidRecord(f"reward of {key}: the sign is {sign}; give 1, 0 or -1")
        if sign == 0:
            return []
        return self._touch(ids, now, key, lambda state: lifecycle.reward(self.preset, state, sign, float(now)))

    def mark(self, record_id: str, cause: Cause, now: float, key: str) -> Touch | None:
        """Pin a record to its layer, unpin it, forget it, or restore a forgotten one; `key` names the occasion.

        A pinned record neither moves between layers nor fades; a forgotten one is never recalled again. Returns the
        touch; None where the record is marked so already. Raises UnknownRecord, and InvalidRecord for a record that has
        faded.
        """
        self._advance(now)
        self._flush()
        marks = self.marks(record_id, now)
        made = mark(self.record(record_id), marks, cause, float(now), key)
        if made is None or self._is_written(made):
            return None
        (touch,) = self._write([made])
        if cause is Cause.FORGOTTEN:
            self._index.forget(record_id)
            return touch
        if cause is Cause.RESTORED:
            self._index.add([self.record(record_id)], [touch.state])
        self._index.write(record_id, touch.state)
        self._index.pin(record_id, cause is Cause.PINNED or (cause is Cause.RESTORED and marks.pinned))
        return touch

    def marks(self, record_id: str, now: float) -> Marks:
        """The marks of a record at a step. Raises UnknownRecord."""
        return marks_of(self.record(record_id), self.lifeline(record_id, now)[1:])

    def forgotten(self, now: float) -> list[tuple[MemoryRecord, Touch]]:
        """The records that are forgotten by `now`, each with the touch of that, the latest first."""
        last: dict[str, Touch] = {}
        for touch in self._store.touches():
            if touch.cause in (Cause.FORGOTTEN, Cause.RESTORED) and touch.state.step <= now:
                last[touch.record_id] = touch
        gone = [touch for touch in last.values() if touch.cause is Cause.FORGOTTEN]
        return [(self.record(touch.record_id), touch) for touch in sorted(gone, key=lambda one: -one.sequence)]

    def alive(self, ids: Iterable[str], *, owner: str = DEFAULT_OWNER) -> list[str]:
        """The ids that name live records of an owner, in order."""
        records = {record_id: self._index.record(record_id) for record_id in ids}
        return [record_id for record_id, record in records.items() if record is not None and record.owner == owner]

    def rewards(self, record_id: str) -> list[Touch]:
        """The rewards of a record so far, oldest first."""
        return [touch for touch in self._store.touches(record_id) if touch.cause in (Cause.PAID, Cause.COST)]

    def sweep(self, now: float) -> list[Touch]:
        """Write the changes that are due up to `now` (promoted, demoted, purged) and return them.

        Call it at the start of a trading day, before anything else of that day; it costs what is due. A day left out is
        made up for, with the same result.
        """
        self._advance(now)
        return self._flush()

    def scored_records(self, now: float) -> list[ScoredRecord]:
        """All live records with their scores at `now`, by owner, symbol and birth."""
        return self._at(now).scored_records(now)

    def has_records(self, symbol: str, now: float, *, owner: str = DEFAULT_OWNER) -> bool:
        """True where a record of a symbol could have been recalled by `now`, even if it is purged since."""
        self._refresh()
        return self._index.first_available(owner, symbol) <= now

    def records(self) -> list[MemoryRecord]:
        """All records, live or purged, in the order of their sequence."""
        return self._store.records()

    def record(self, record_id: str) -> MemoryRecord:
        """A record, live or purged. Raises UnknownRecord."""
        result = self._index.record(record_id) or self._store.record(record_id)
        if result is None:
            raise UnknownRecord(f"no memory has the id {record_id}; `paperdesk memory list` shows them")
        return result

    def lifeline(self, record_id: str, now: float | None = None) -> tuple[Touch, ...]:
        """Birth and every change of a record with its cause, oldest first, up to `now` where it is given.

        Raises UnknownRecord.
        """
        record = self.record(record_id)
        birth = Touch(record_id, Cause.BORN, record.birth, record.source, record.sequence)
        touches = [*self._store.touches(record_id), *(touch for touch in self._pending if touch.record_id == record_id)]
        written = sorted(touches, key=lambda touch: (touch.state.step, touch.sequence))
        if now is None:
            return (birth, *written)
        line = [touch for touch in (birth, *written) if touch.state.step <= now]
        if line and not marks_of(record, line[1:]).pinned:
            changes, _ = lifecycle.advance(self.preset, line[-1].state, now, self._index.floor(record))
            line.extend(Touch(record_id, cause, state) for cause, state in changes)
        return tuple(line)

    @property
    def head(self) -> Head:
        """The last row written."""
        self._refresh()
        return self._head

    def holds(self, head: Head) -> bool:
        """True where a head of earlier is a row of this memory: it is that memory, or one that went on from it."""
        if head.rows == 0 or head == self._head:
            return True
        rows: list[MemoryRecord | Touch] = [*self._store.records(), *self._store.touches()]
        return any(row.id == head.last for row in rows if row.sequence == head.rows)

    @property
    def latest(self) -> float:
        """The last step of any row; -inf where there is none."""
        self._refresh()
        return max([self._index.latest, *(record.written_step for record in self._store.records())])

    def write_to(self, store: Store, step: float = math.inf) -> None:
        """Write the memory into an empty store, as of a step where one is given.

        Records go in one write and touches in another. A row dated to the step or before, but written after a later
        one, was not known then and is left out. Raises StoreError where the store is not empty.
        """
        if store.records():
            raise StoreError("a memory is copied to an empty place: there are records already")
        self._flush()
        records, touches = self._store.records(), self._store.touches()
        later = [r.sequence for r in records if r.written_step > step]
        later += [t.sequence for t in touches if t.state.step > step]
        first_later = min(later, default=math.inf)
        store.append_records([r for r in records if r.written_step <= step and r.sequence < first_later])
        store.append_touches([t for t in touches if t.state.step <= step and t.sequence < first_later])

    def copy_to(self, store: Store, step: float = math.inf) -> LayeredMemory:
        """Copy the memory as `write_to` does; neither is changed by the other afterwards."""
        self.write_to(store, step)
        return LayeredMemory(store, self.embedder, self.preset)

    @property
    def needs_compaction(self) -> bool:
        """True where the store needs `optimize`."""
        return self._store.needs_compaction

    def optimize(self) -> StoreReport:
        """Compact the store; enough when `needs_compaction`, about weekly."""
        self._flush()
        return self._store.optimize()

    def close(self) -> None:
        """Release the writer's lock. Changes that are due and not swept are computed again by the next writer."""
        self._store.close()

    def _load(self) -> None:
        self._version = self._store.version
        self._past = None
        self._index, self._head = self._build(math.inf)

    def _refresh(self) -> None:
        """Read the rows that another process has written."""
        if not self._store.writable and self._store.version != self._version:
            self._load()

    def _build(self, step: float) -> tuple[LiveIndex, Head]:
        """An index of the rows up to a step, and the last row."""
        records = [r for r in self._store.records() if r.written_step <= step]
        touches = [t for t in self._store.touches() if t.state.step <= step]
        unknown = {r.birth_layer for r in records} | {t.state.layer for t in touches if t.state.layer}
        unknown -= set(self.preset.layers)
        if unknown:
            raise UnknownPreset(
                f"the store has records in the layer {min(unknown)}, which preset {self.preset.name} has not; "
                "open it with the preset that it was written with"
            )
        index = LiveIndex.of(self.preset, self.embedder.dimension, records, touches)
        ends: list[MemoryRecord | Touch] = [*records[-1:], *touches[-1:]]
        last = max(ends, key=lambda row: row.sequence, default=None)
        return index, NOTHING if last is None else Head(last.sequence, last.id)

    def _at(self, now: float) -> LiveIndex:
        """The live index, or a past one where `now` is before its latest change; a past one writes nothing."""
        self._refresh()
        if now >= self._index.latest:
            self._advance(now)
            return self._index
        key = (now, self._store.version)
        if self._past is None or self._past[0] != key:
            self._past = (key, self._build(now)[0])
        self._past[1].advance(now)
        return self._past[1]

    def _advance(self, now: float) -> None:
        made = self._index.advance(now)
        if self._store.writable:
            self._pending.extend(made)

    def _flush(self) -> list[Touch]:
        """Write the changes that became due since the last flush."""
        written = self._write(self._pending)
        self._pending = []
        return written

    def _touch(self, ids: Iterable[str], now: float, key: str, change: lifecycle.Change) -> list[Touch]:
        record_ids = list(dict.fromkeys(ids))
        for record_id in record_ids:
            if record_id not in self._index:
                raise UnknownRecord(f"{key}: no memory has the id {record_id}")
        self._advance(now)
        self._flush()
        touches = [touch for record_id in record_ids if (touch := self._changed(record_id, now, key, change))]
        numbered = self._write(touches)
        for touch in numbered:
            self._index.write(touch.record_id, touch.state)
        return numbered

    def _changed(self, record_id: str, now: float, key: str, change: lifecycle.Change) -> Touch | None:
        """The touch of one record, or None for a purged record or a touch that is written already."""
        state = self._index.state(record_id)
        if state is None:
            return None
        cause, changed = change(state)
        touch = Touch(record_id, cause, changed, key)
        if self._is_written(touch):
            return None
        if now < state.step:
            raise TimeOrder(f"{key}: step {now} is before {state.step}, when {record_id} last changed")
        return touch

    def _is_written(self, touch: Touch) -> bool:
        return any(written.identity == touch.identity for written in self._store.touches(touch.record_id))

    def _write(self, touches: Sequence[Touch]) -> list[Touch]:
        numbered = [replace(touch, sequence=self._head.rows + n) for n, touch in enumerate(touches, 1)]
        if numbered:
            self._store.append_touches(numbered)
            self._head = Head(numbered[-1].sequence, numbered[-1].id)
        return numbered

    def _embed_texts(self, texts: Sequence[str]) -> Sequence[Vector]:
        if not texts:
            return ()
        matrix = self.embedder.embed(texts)
        if matrix.shape != (len(texts), self.embedder.dimension):
            raise EmbedderUnavailable(
                f"embedder {self.embedder.id} gave vectors of shape {matrix.shape} for {len(texts)} texts; "
                f"{self.embedder.dimension} numbers each were expected"
            )
        return list(matrix)

    def _restated(self, item: Item, vector: Vector, now: float) -> MemoryRecord | None:
        """The earlier reflection of the same kind that says what an item says, where both may be recalled by now: what
        was written with hindsight must not show before its time."""
        least = self.preset.restated_similarity
        if least is None or item.seen_until is not None or self.preset.birth(item.kind).layer is not Layer.REFLECTION:
            return None
        # What is due by now and not swept may be purged, so it counts as forgotten; a write changes no other record.
        earlier = [
            partition.records[row]
            for layer in self.preset.layers
            for partition in self._index.partitions(item.owner, (item.symbol,), layer)
            for row in np.flatnonzero(partition.available(now) & (partition.column(DUE) > now)).tolist()
        ]
        earlier = [record for record in earlier if record.kind == item.kind and record.born_step < now]
        return restated(item, vector, earlier, self.embedder, least)


def new_record(
    preset: MemoryPreset, record_id: str, item: Item, now: float, vector: Vector, *, sequence: int
) -> MemoryRecord:
    """The record of an item written at a step. Raises InvalidRecord for a rating beyond [0, 1], UnknownPreset for a
    kind of source that the preset has not."""
    if item.rating is not None and not 0 <= item.rating <= 1:
        raise InvalidRecord(f"{item.kind} of {item.symbol}: the rating is {item.rating}; give 0 to 1")
    # The draw is the record's own: the same on every machine and however often it is written.
    chance = int(record_id[:13], 16) / 16**13
    layer, importance = preset.initial_state(item.kind, item.rating, item.layer, chance)
    preset.rule(layer)
    return MemoryRecord(
        id=record_id,
        owner=item.owner,
        symbol=item.symbol,
        kind=item.kind,
        text=item.text,
        query_text=item.query_text,
        source=item.source,
        born_step=float(item.born(now)),
        available_at=float(max(now, item.seen_until) if item.seen_until is not None else now),
        hindsight=item.seen_until is not None,
        birth_layer=layer,
        importance=float(importance if item.importance is None else item.importance),
        rests_on=item.rests_on,
        labels=item.labels,
        vector=vector,
        sequence=sequence,
    )


_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_FIGURE = re.compile(r"[+-]?\d+(?:[.,]\d+)*")
_NEAREST = 5
"""Earlier records whose texts are embedded where their vectors are those of query texts."""


def restated(
    item: Item, vector: Vector, earlier: Sequence[MemoryRecord], embedder: Embedder, least: float
) -> MemoryRecord | None:
    """The earlier record that says what a new item says; None where there is none.

    The same text does, and a text with a cosine of `least` or more whose figures are the same: "2 of 5 earned" is near
    to "3 of 5 earned" and says something else. Dates do not count.
    """
    same = next((record for record in earlier if record.text == item.text), None)
    if same is not None:
        return same
    wanted = _figures(item.text)
    near = _from(least, earlier, np.array([record.vector for record in earlier]), vector)
    near = [record for record in near if _figures(record.text) == wanted]
    if near and (item.query_text.strip() or any(record.query_text.strip() for record in near)):
        # Vectors of query texts tell what is searched for, not what is said.
        near = near[:_NEAREST]
        said = embedder.embed([item.text, *(record.text for record in near)])
        near = _from(least, near, said[1:], said[0])
    return near[0] if near else None


def _from(least: float, records: Sequence[MemoryRecord], vectors: Matrix, vector: Vector) -> list[MemoryRecord]:
    """The records whose vectors have a cosine of `least` or more, the nearest first, then the oldest."""
    if not records:
        return []
    # A row's own sum, whose last bits do not depend on how many rows there are.
    cosines = (vectors * vector.astype(np.float64)).sum(axis=1).tolist()
    found = [(-cosine, record.sequence, record) for cosine, record in zip(cosines, records, strict=True)]
    return [record for cosine, _, record in sorted(found, key=lambda one: one[:2]) if -cosine >= least]


def _figures(text: str) -> list[str]:
    return sorted(_FIGURE.findall(_DATE.sub("", text)))
