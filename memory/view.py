"""The memory at one time: live records, recall and due changes. Writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from memory import formulas, lifecycle
from memory.errors import InvalidRecord, UnknownPreset
from memory.layer_rank import Hit, LayerRanking
from memory.layer_rows import LayerRows
from memory.live_index import DUE, LiveIndex
from memory.ports import Embedder
from memory.presets import MemoryPreset, Ranking
from memory.record import DEFAULT_OWNER, MARKET, Layer, MemoryRecord, State, Touch


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRecord:
    """A live record with its scores at a step.

    layer: its present layer.
    recency: on [0, 1].
    importance: before any scaling (0 to 100).
    access_count: rewards, counted by the preset's rule.
    due: the step of the next possible change; inf if none.
    """

    record: MemoryRecord
    layer: Layer
    recency: float
    importance: float
    access_count: int
    due: float


class MemoryView:
    """An index read by a preset. `latest` is the last step of any row or change."""

    def __init__(self, preset: MemoryPreset, embedder: Embedder, index: LiveIndex, latest: float) -> None:
        self.index = index
        self.latest = latest
        self._preset = preset
        self._embedder = embedder

    def advance(self, now: float) -> list[Touch]:
        """Apply every change that is due up to `now`, and return the touches by step, then by age of the record."""
        made: list[tuple[float, int, Touch]] = []
        while due := self.index.due(now):
            for partition, rows, steps in due:
                moves = lifecycle.apply_step(
                    self._preset, partition.layer, partition.states(rows), steps, partition.floors(rows)
                )
                sequences = [partition.records[row].sequence for row in rows[moves.moved].tolist()]
                touches = self.index.move(partition, rows, steps, moves)
                made.extend(zip(steps[moves.moved].tolist(), sequences, touches, strict=True))
            self.index.compact()
        self.latest = max(self.latest, now)
        made.sort(key=itemgetter(0, 1))
        return [touch for _, _, touch in made]

    def state(self, record_id: str) -> State | None:
        """State of a live record; None for another."""
        ref = self.index.locate(record_id)
        return None if ref is None else ref.state

    def write(self, record_id: str, state: State) -> None:
        """Write the new state of a live record."""
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
        texts = {name: text for name, text in queries.items() if text.strip()}
        chosen = [layer for layer in self._preset.layers if layers is None or layer in layers]
        if layers is not None and len(chosen) < len(set(layers)):
            raise UnknownPreset(f"preset {self._preset.name} has the layers {', '.join(self._preset.layers)} alone")
        if k is not None and k < 1:
            raise InvalidRecord(f"recall of {symbol}: k is {k}; ask for one at least")
        if not texts and self._preset.ranking is Ranking.RELEVANCY:
            return dict.fromkeys(chosen, ())
        # Nothing known today to ask by: what is recent and important comes, and relevancy is 0.
        vectors = self._embedder.embed(list(texts.values())) if texts else np.zeros((1, self._embedder.dimension))
        vectors = vectors.astype(np.float32, copy=False)
        if not np.isfinite(vectors).all():
            raise InvalidRecord(f"recall of {symbol}: a query's vector is not finite; look at the embedder")
        names = tuple(dict.fromkeys((symbol, MARKET)))
        recalled: dict[Layer, tuple[Hit, ...]] = {}
        for layer in chosen:
            parts = [part for name in names if (part := self.index.partition(owner, name, layer))]
            ranking = LayerRanking(LayerRows(self._preset, layer, now, parts, kinds), vectors)
            recalled[layer] = ranking.ranked(tuple(texts) or ("",), k or self._preset.k, labelled and bool(texts))
        return recalled

    def scored_records(
        self, now: float, *, owner: str | None = None, symbol: str | None = None, layer: Layer | None = None
    ) -> list[ScoredRecord]:
        """All live records with their scores at `now`, by owner, symbol and birth."""
        self.advance(now)
        living: list[ScoredRecord] = []
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
                living.append(
                    ScoredRecord(
                        record=record,
                        layer=partition.layer,
                        recency=formulas.recency(now, state.recency_step, rule.stability),
                        importance=formulas.importance(now, state.importance, state.importance_step, rule.alpha),
                        access_count=state.access_count,
                        due=float(partition.column(DUE)[row]),
                    )
                )
        return sorted(living, key=lambda s: (s.record.owner, s.record.symbol, s.record.born_step, s.record.id))
