"""Ranking what is alive by the full composite, exactly: per layer and query, united by id with the rank kept.

Every candidate is scored in fast single precision first, of many only those that may be among the first by their
outline (memory/outline.py); what comes near the first k is scored again in double precision, in a way that does not
depend on where a row stands. So a run that was continued ranks as one that was not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from memory.joined import JoinedRows, Rows
from memory.live_index import Partition
from memory.ports import Matrix
from memory.presets import MemoryPreset, Ranking
from memory.record import Layer, MemoryRecord
from memory.scaled import ScaledSearch
from memory.search import Search


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A recalled memory and why it stands where it does.

    `rank` counts from 1 in its layer. `recency` and `importance` are on [0, 1], `relevancy` is a cosine, `composite`
    is what the preset ranks by; where several queries found the record they are those of the query that scored it
    highest. `asked_by` has every query type that found it with its rank there; `alike` the ids of recalled records
    that say the same and are not shown.
    """

    record: MemoryRecord
    layer: Layer
    rank: int
    recency: float
    relevancy: float
    importance: float
    composite: float
    asked_by: tuple[tuple[str, int], ...]
    alike: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Scored:
    position: int
    record: MemoryRecord
    composite: float
    relevancy: float

    @property
    def order(self) -> tuple[float, float, str]:
        """Highest first; of equals the younger, then by id, so that the order never depends on the store's."""
        return -self.composite, -self.record.born_step, self.record.id


class LayerRanking:
    """The candidates of one layer at a step, ready to be ranked by the queries, of which `queries` has a row each."""

    def __init__(
        self,
        preset: MemoryPreset,
        layer: Layer,
        now: float,
        parts: Sequence[Partition],
        queries: Matrix,
        kinds: Collection[str] | None = None,
    ) -> None:
        self._preset = preset
        self._layer = layer
        self._queries = queries
        self._joined = JoinedRows(preset, layer, now, parts, kinds)
        self._search: Search | ScaledSearch
        if self._joined.parts:
            scaled = preset.ranking is Ranking.WEIGHTED
            self._search = ScaledSearch(self._joined, queries) if scaled else Search(self._joined, queries)

    def ranked(self, types: Sequence[str], k: int, labelled: bool) -> tuple[Hit, ...]:
        """The first k of every query, united by id, best first. `labelled`: a query sees what bears its type alone.

        Source: FinAgent §4.1 [A2] for the union of M types x K; the ranking is the preset's.
        """
        if not self._joined.parts:
            return ()
        found: dict[str, _Scored] = {}
        ranks: dict[str, list[tuple[str, int]]] = {}
        alike: dict[str, list[str]] = {}
        for asked, first in zip(types, self._first(types, k, labelled, alike), strict=True):
            for rank, scored in enumerate(first, 1):
                name = scored.record.id
                ranks.setdefault(name, []).append((asked, rank))
                if name not in found or scored.order < found[name].order:
                    found[name] = scored
        united = self._distinct(sorted(found.values(), key=lambda scored: scored.order), len(found), alike)
        recency, importance = self._joined.scores(np.array([scored.position for scored in united], np.intp))
        return tuple(
            Hit(
                record=scored.record,
                layer=self._layer,
                rank=rank,
                recency=float(recency[rank - 1]),
                relevancy=scored.relevancy,
                importance=float(importance[rank - 1]),
                composite=scored.composite,
                asked_by=tuple(ranks[scored.record.id]),
                alike=tuple(dict.fromkeys(alike.get(scored.record.id, ()))),
            )
            for rank, scored in enumerate(united, 1)
        )

    def _first(self, types: Sequence[str], k: int, labelled: bool, alike: dict[str, list[str]]) -> list[list[_Scored]]:
        """The first k for every query, exactly."""
        labels = [asked if labelled else None for asked in types]
        there = [self._search.there(label) for label in labels]
        pools = [min(k if self._preset.same_from is None else 4 * k, rows) for rows in there]
        found: list[list[_Scored]] = [[] for _ in types]
        wanting = [query for query, pool in enumerate(pools) if pool]
        while wanting:
            some = self._search.first(wanting, [pools[n] for n in wanting], [labels[n] for n in wanting])
            lacking = []
            for query, near in zip(wanting, some, strict=True):
                scored = self._exactly(near, query)[: len(near) if len(near) == there[query] else pools[query]]
                found[query] = self._distinct(scored, k, alike)
                if len(found[query]) < k and pools[query] < there[query]:
                    pools[query] = min(4 * pools[query], there[query])
                    lacking.append(query)
            wanting = lacking
        return found

    def _exactly(self, positions: Rows, query: int) -> list[_Scored]:
        relevancy = self._joined.relevancies(positions, self._queries[query])
        composite = self._search.composites(positions, query, relevancy)
        scored = [
            _Scored(position, self._joined.record(position), gamma, likeness)
            for position, gamma, likeness in zip(
                positions.tolist(), composite.tolist(), relevancy.tolist(), strict=True
            )
        ]
        return sorted(scored, key=lambda one: one.order)

    def _distinct(self, scored: Sequence[_Scored], k: int, alike: dict[str, list[str]]) -> list[_Scored]:
        """The first k that are not alike; what is left out is noted with the one that is shown for it."""
        if self._preset.same_from is None:
            return list(scored[:k])
        chosen: list[_Scored] = []
        positions = np.array([one.position for one in scored], np.intp)
        vectors = self._joined.vectors(positions, self._queries.shape[1])
        shown: list[int] = []
        for n, one in enumerate(scored):
            likeness = (vectors[shown] * vectors[n]).sum(axis=1)
            if len(likeness) and likeness.max() >= self._preset.same_from:
                alike.setdefault(chosen[int(likeness.argmax())].record.id, []).append(one.record.id)
                continue
            chosen.append(one)
            shown.append(n)
            if len(chosen) == k:
                break
        return chosen
