"""The layered memory: remember, recall, cite, reinforce, sweep. All that the engine uses of this package.

Two append-only logs, records and touches, and scores as functions of time: so a memory can be seen as it was on any
day, every change has a cause, and a crash leaves nothing half-decayed. Reading needs no writer: what happened up to a
step by itself follows from the logs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType

from memory import lifecycle
from memory.errors import EmbedderUnavailable, InvalidRecord, StoreError, TimeOrder, UnknownPreset, UnknownRecord
from memory.live_index import LiveIndex
from memory.ports import Embedder, Store, StoreReport
from memory.presets import MemoryPreset, preset_named
from memory.ranking import Hit
from memory.record import DEFAULT_OWNER, Cause, Item, Layer, MemoryRecord, State, Touch, Vector, record_id
from memory.view import MemoryView, Standing


class LayeredMemory:
    """The memory of a desk over a store, by the constants of a preset.

    Steps are trading days of the agent's clock, possibly fractions; `now` is always passed in. Order is
    (step, sequence): a reflection written after a decision of the same step belongs to a later fraction of it, or
    is told apart by `sequence`. Raises the errors of memory/errors.py.
    """

    def __init__(self, store: Store, embedder: Embedder, preset: MemoryPreset | str) -> None:
        self.preset = preset_named(preset) if isinstance(preset, str) else preset
        self._store = store
        self._embedder = embedder
        self._pending: list[Touch] = []
        self._past: tuple[tuple[float, float, int], MemoryView] | None = None
        try:
            self._load()
        except BaseException:
            store.close()  # whoever cannot read it does not keep others from writing
            raise

    def __enter__(self) -> LayeredMemory:
        """Closes the store at the end of the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Closes the store."""
        self.close()

    @property
    def sequence(self) -> int:
        """The number of the row written last; kept with a decision, it says what was there before it."""
        return self._sequence

    def remember(self, items: Iterable[Item], now: float) -> list[str]:
        """Writes what is new and returns the id of every item, in order; all of them or none.

        What was written before at the same step is left as it is, so a day that is run again changes nothing.
        Raises InvalidRecord (an empty text, a vector that is not finite) and UnknownPreset (a kind without a place).
        """
        given = list(items)
        ids = [record_id(item, now) for item in given]
        fresh = {name: item for name, item in zip(ids, given, strict=True) if name not in self._view.index}
        for item in fresh.values():
            if not item.text.strip():
                raise InvalidRecord(
                    f"{item.kind} of {item.symbol} from {item.source or 'no source'}: the text is empty; "
                    "an answer that failed is not remembered"
                )
        vectors = self._embedded([item.query_text.strip() or item.text for item in fresh.values()])
        records = [
            self._born(name, item, now, vector, self._sequence + n)
            for n, ((name, item), vector) in enumerate(zip(fresh.items(), vectors, strict=True), 1)
        ]
        if records:
            self._flush()
            self._store.append_records(records)
            self._sequence += len(records)
            self._view.index.add(records)
        return ids

    def recall(
        self,
        symbol: str,
        queries: Mapping[str, str],
        now: float,
        *,
        owner: str = DEFAULT_OWNER,
        k: int | None = None,
        kinds: Collection[str] | None = None,
        layers: Collection[Layer] | None = None,
        labelled: bool = False,
    ) -> dict[Layer, tuple[Hit, ...]]:
        """The first `k` (the preset's without it) of every layer for every query type, united by id, best first.

        Records of `symbol` and of MARKET; nothing that was written, or becomes available, after `now`. `queries` are
        texts about what is known now, by retrieval type; where all are blank, what is recent and important comes.
        `labelled`: a query sees the records that bear its type as a label. A `now` before what is written already is
        answered as of then. Source: InvestorBench A [I2], FinAgent §4.1, §4.2 [A2, A6].
        """
        view = self._at(now)
        return view.recall(symbol, queries, now, owner=owner, k=k, kinds=kinds, layers=layers, labelled=labelled)

    def cite(self, ids: Iterable[str], now: float, key: str) -> list[Touch]:
        """Notes that a decision (its key) rests on these records. Scores change when its reward is known."""
        return self._touch(ids, now, key, lambda state: lifecycle.cite(state, float(now)))

    def reinforce(self, ids: Iterable[str], sign: int, now: float, key: str) -> list[Touch]:
        """Rewards the records that a decision (its key) cited: sign 1 when it paid, -1 when it cost, 0 for nobody.

        Purged records are passed over. The same key at the same step rewards once. Returns what was written.
        Source: InvestorBench A [I4].
        """
        if sign not in (-1, 0, 1):
            raise InvalidRecord(f"reward of {key}: the sign is {sign}; give 1, 0 or -1")
        if sign == 0:
            return []
        return self._touch(ids, now, key, lambda state: lifecycle.reward(self.preset, state, sign, float(now)))

    def sweep(self, now: float) -> list[Touch]:
        """Writes what has happened by itself up to `now` (promoted, demoted, purged) and returns it.

        Call it as a trading day begins, before anything else of that day; it costs what is due. A day left out is
        made up for, with the same result.
        """
        self._advance(now)
        return self._flush()

    def as_of(self, step: float, sequence: int | None = None) -> MemoryView:
        """The memory as it was at a step, up to a row where `sequence` says so; it can recall and writes nothing."""
        last = math.inf if sequence is None else sequence
        key = (step, last, self._store.version)
        if self._past is None or self._past[0] != key:
            self._past = (key, self._built(step, last)[0])
        self._past[1].advance(step)
        return self._past[1]

    def standings(
        self, now: float, *, owner: str | None = None, symbol: str | None = None, layer: Layer | None = None
    ) -> list[Standing]:
        """Every living record as it stands at `now`."""
        return self._at(now).standings(now, owner=owner, symbol=symbol, layer=layer)

    def knows(self, symbol: str, now: float, *, owner: str = DEFAULT_OWNER) -> bool:
        """Whether anything of a symbol could have been recalled by `now`, be it purged since."""
        self.refresh()
        return self._view.index.first_available(owner, symbol) <= now

    def records(self) -> list[MemoryRecord]:
        """Every record, living or purged, in the order of their sequence."""
        return self._store.records()

    def record(self, name: str) -> MemoryRecord:
        """A record, living or purged. Raises UnknownRecord."""
        place = self._view.index.place(name)
        found = place.record if place else self._store.record(name)
        if found is None:
            raise UnknownRecord(f"no memory has the id {name}; `paperdesk memory list` shows them")
        return found

    def life_line(self, name: str, now: float | None = None) -> tuple[Touch, ...]:
        """Birth and every change of a record with its cause, oldest first, up to `now` where it is given.

        Raises UnknownRecord.
        """
        record = self.record(name)
        birth = Touch(name, Cause.BORN, record.birth, record.source, record.sequence)
        written = [*self._store.touches(name), *(touch for touch in self._pending if touch.record_id == name)]
        line = [birth, *sorted(written, key=lambda touch: (touch.state.step, touch.sequence))]
        if now is None:
            return tuple(line)
        line = [touch for touch in line if touch.state.step <= now]
        if line:
            changes, _ = lifecycle.advance(self.preset, line[-1].state, now, self._view.index.floor(record))
            line.extend(Touch(name, cause, state) for cause, state in changes)
        return tuple(line)

    def refresh(self) -> bool:
        """Takes in what another process has written; whether there was anything. Reading does it by itself."""
        if self._store.writable or self._store.version == self._version:
            return False
        self._load()
        return True

    @property
    def latest(self) -> float:
        """The last step that anything is dated to; -inf where there is nothing."""
        self.refresh()
        return max([self._view.latest, *(record.born_step for record in self._store.records())])

    def write_to(self, store: Store) -> int:
        """Writes all of it into an empty store, records in one write and touches in another; returns how many records
        there are. Raises StoreError where the store is not empty."""
        if store.records():
            raise StoreError("a memory is copied to an empty place: there are records already")
        self._flush()
        records = self._store.records()
        store.append_records(records)
        store.append_touches(self._store.touches())
        return len(records)

    def copied_to(self, store: Store, step: float = math.inf) -> LayeredMemory:
        """The same memory over an empty store, as it was at a step where one is given: from there on neither knows of
        what happens to the other.

        A row that is dated to the step or before and was written after one that is dated later came too late to have
        been known then: it is left out.
        """
        if step == math.inf:
            self.write_to(store)
            return LayeredMemory(store, self._embedder, self.preset)
        records, touches = self._store.records(), self._store.touches()
        later = [r.sequence for r in records if r.born_step > step]
        later += [t.sequence for t in touches if t.state.step > step]
        first_later = min(later, default=math.inf)
        store.append_records([r for r in records if r.born_step <= step and r.sequence < first_later])
        store.append_touches([t for t in touches if t.state.step <= step and t.sequence < first_later])
        return LayeredMemory(store, self._embedder, self.preset)

    @property
    def embedder(self) -> Embedder:
        """What turns its texts to vectors."""
        return self._embedder

    @property
    def untidy(self) -> bool:
        """Whether the store asks for `optimize`."""
        return self._store.untidy

    def optimize(self) -> StoreReport:
        """Tidies the store; when it is `untidy` is enough, about weekly."""
        self._flush()
        return self._store.optimize()

    def close(self) -> None:
        """Gives up the writer's place. What is due and not swept is found again by the next one."""
        self._store.close()

    def _load(self) -> None:
        self._version = self._store.version
        self._past = None
        self._view, self._sequence = self._built(math.inf, math.inf)

    def _built(self, step: float, sequence: float) -> tuple[MemoryView, int]:
        """A view of the rows up to a step and a row, and the number of the last row."""
        records = [r for r in self._store.records() if r.born_step <= step and r.sequence <= sequence]
        touches = [t for t in self._store.touches() if t.state.step <= step and t.sequence <= sequence]
        unknown = {r.birth_layer for r in records} | {t.state.layer for t in touches if t.state.layer}
        unknown -= set(self.preset.layers)
        if unknown:
            raise UnknownPreset(
                f"the store has records in the layer {min(unknown)}, which preset {self.preset.name} has not; "
                "open it with the preset that it was written with"
            )
        index = LiveIndex.of(self.preset, self._embedder.dimension, records, touches)
        latest = max((touch.state.step for touch in touches), default=-math.inf)
        last = max([0, *(r.sequence for r in records), *(t.sequence for t in touches)])
        return MemoryView(self.preset, self._embedder, index, latest), last

    def _at(self, now: float) -> MemoryView:
        """The living view where `now` is not before it, else the past one."""
        self.refresh()
        if now < self._view.latest:
            return self.as_of(now)
        self._advance(now)
        return self._view

    def _advance(self, now: float) -> None:
        made = self._view.advance(now)
        if self._store.writable:
            self._pending.extend(made)

    def _flush(self) -> list[Touch]:
        """Writes what has happened by itself since the last time."""
        if not self._pending:
            return []
        numbered = self._numbered(self._pending)
        self._store.append_touches(numbered)
        self._sequence += len(numbered)
        self._pending = []
        return numbered

    def _touch(self, ids: Iterable[str], now: float, key: str, change: lifecycle.Change) -> list[Touch]:
        names = list(dict.fromkeys(ids))
        for name in names:
            if name not in self._view.index:
                raise UnknownRecord(f"{key}: no memory has the id {name}")
        self._advance(now)
        self._flush()
        made: list[Touch] = []
        for name in names:
            state = self._view.state(name)
            if state is None:
                continue
            cause, changed = change(state)
            touch = Touch(name, cause, changed, key)
            if any(known.name == touch.name for known in self._store.touches(name)):
                continue
            if now < state.step:
                raise TimeOrder(f"{key}: step {now} is before {state.step}, when {name} last changed")
            made.append(touch)
        numbered = self._numbered(made)
        if numbered:
            self._store.append_touches(numbered)
            self._sequence += len(numbered)
            for touch in numbered:
                self._view.write(touch.record_id, touch.state)
        return numbered

    def _numbered(self, touches: Sequence[Touch]) -> list[Touch]:
        return [
            Touch(touch.record_id, touch.cause, touch.state, touch.key, self._sequence + n)
            for n, touch in enumerate(touches, 1)
        ]

    def _embedded(self, texts: Sequence[str]) -> Sequence[Vector]:
        if not texts:
            return ()
        matrix = self._embedder.embed(texts)
        if matrix.shape != (len(texts), self._embedder.dimension):
            raise EmbedderUnavailable(
                f"embedder {self._embedder.id} gave vectors of shape {matrix.shape} for {len(texts)} texts; "
                f"{self._embedder.dimension} numbers each were expected"
            )
        return list(matrix)

    def _born(self, name: str, item: Item, now: float, vector: Vector, sequence: int) -> MemoryRecord:
        if item.rating is not None and not 0 <= item.rating <= 1:
            raise InvalidRecord(f"{item.kind} of {item.symbol}: the rating is {item.rating}; give 0 to 1")
        # The draw is the record's own: the same on every machine and however often it is written.
        chance = int(name[:13], 16) / 16**13
        layer, importance = self.preset.born_into(item.kind, item.rating, item.layer, chance)
        self.preset.rule(layer)
        return MemoryRecord(
            id=name,
            owner=item.owner,
            symbol=item.symbol,
            kind=item.kind,
            text=item.text,
            query_text=item.query_text,
            source=item.source,
            born_step=float(now),
            available_at=float(max(now, item.seen_until) if item.seen_until is not None else now),
            hindsight=item.seen_until is not None,
            birth_layer=layer,
            importance=float(importance if item.importance is None else item.importance),
            rests_on=item.rests_on,
            labels=item.labels,
            vector=vector,
            sequence=sequence,
        )


def state_at(line: Sequence[Touch], step: float) -> State | None:
    """The state that a life-line says for a step: its last touch at or before it; None before birth."""
    return next((touch.state for touch in reversed(line) if touch.state.step <= step), None)
