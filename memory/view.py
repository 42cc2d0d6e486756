"""The memory at one time: what is alive, what is recalled from it, and how it goes on by itself. Writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from memory import lifecycle, scoring
from memory.errors import InvalidRecord, UnknownPreset
from memory.live_index import DUE, LiveIndex
from memory.ports import Embedder
from memory.presets import MemoryPreset, Ranking
from memory.ranking import Hit, LayerRanking
from memory.record import DEFAULT_OWNER, MARKET, Layer, MemoryRecord, State, Touch


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a living record stands at a step: `importance` before any scaling, `due` when something may happen next."""

    record: MemoryRecord
    layer: Layer
    recency: float
    importance: float
    access_count: int
    due: float


class MemoryView:
    """An index, seen through a preset. `latest` is the last step that anything in it is dated to."""

    def __init__(self, preset: MemoryPreset, embedder: Embedder, index: LiveIndex, latest: float) -> None:
        self.index = index
        self.latest = latest
        self._preset = preset
        self._embedder = embedder

    def advance(self, now: float) -> list[Touch]:
        """Lets everything that is due up to `now` happen, and returns it, in the order of steps, of one step the
        older record first."""
        made: list[tuple[float, int, Touch]] = []
        while due := self.index.due(now):
            for partition, rows, steps in due:
                moves = lifecycle.step_of(
                    self._preset, partition.layer, partition.states(rows), steps, partition.floors(rows)
                )
                sequences = [partition.records[row].sequence for row in rows[moves.moved].tolist()]
                touches = self.index.move(partition, rows, steps, moves)
                made.extend(zip(steps[moves.moved].tolist(), sequences, touches, strict=True))
            self.index.tidy()
        self.latest = max(self.latest, now)
        made.sort(key=itemgetter(0, 1))
        return [touch for _, _, touch in made]

    def state(self, record_id: str) -> State | None:
        """The state of a living record; None for another."""
        place = self.index.place(record_id)
        return None if place is None else place.state

    def write(self, record_id: str, state: State) -> None:
        """The new state of a living record."""
        self.index.write(record_id, state)
        self.latest = max(self.latest, state.step)

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
        """See LayeredMemory.recall."""
        self.advance(now)
        asked = {name: text for name, text in queries.items() if text.strip()}
        chosen = [layer for layer in self._preset.layers if layers is None or layer in layers]
        if layers is not None and len(chosen) < len(set(layers)):
            raise UnknownPreset(f"preset {self._preset.name} has the layers {', '.join(self._preset.layers)} alone")
        if k is not None and k < 1:
            raise InvalidRecord(f"recall of {symbol}: k is {k}; ask for one at least")
        if not asked and self._preset.ranking is Ranking.RELEVANCY:
            return dict.fromkeys(chosen, ())
        # Nothing known today to ask by: what is recent and important comes, and relevancy is 0.
        vectors = self._embedder.embed(list(asked.values())) if asked else np.zeros((1, self._embedder.dimension))
        vectors = vectors.astype(np.float32, copy=False)
        if not np.isfinite(vectors).all():
            raise InvalidRecord(f"recall of {symbol}: a query's vector is not finite; look at the embedder")
        names = tuple(dict.fromkeys((symbol, MARKET)))
        found: dict[Layer, tuple[Hit, ...]] = {}
        for layer in chosen:
            parts = [self.index.partition(owner, name, layer) for name in names]
            ranking = LayerRanking(self._preset, layer, now, [part for part in parts if part], vectors, kinds)
            found[layer] = ranking.ranked(tuple(asked) or ("",), k or self._preset.k, labelled and bool(asked))
        return found

    def standings(
        self, now: float, *, owner: str | None = None, symbol: str | None = None, layer: Layer | None = None
    ) -> list[Standing]:
        """Every living record, by owner, symbol and birth, as it stands at `now`."""
        self.advance(now)
        found: list[Standing] = []
        for its_owner, its_symbol, partition in self.index.partitions():
            if owner not in (None, its_owner) or symbol not in (None, its_symbol):
                continue
            if layer not in (None, partition.layer):
                continue
            rule = self._preset.rule(partition.layer)
            for row in np.flatnonzero(partition.alive).tolist():
                record, state = partition.records[row], partition.read(row)
                if record.born_step > now:
                    continue
                found.append(
                    Standing(
                        record=record,
                        layer=partition.layer,
                        recency=scoring.recency(now, state.recency_step, rule.stability),
                        importance=scoring.importance(now, state.importance, state.importance_step, rule.alpha),
                        access_count=state.access_count,
                        due=float(partition.column(DUE)[row]),
                    )
                )
        return sorted(found, key=lambda s: (s.record.owner, s.record.symbol, s.record.born_step, s.record.id))
