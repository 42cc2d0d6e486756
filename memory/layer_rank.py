"""Exact ranking of live records by the full composite score, per layer and query, united by id with the rank kept.

Candidates are scored in single precision first; of many records only those that may be among the first, by
memory/projection.py. Records near the first k are scored again in double precision, independently of their row. So a
continued run ranks as an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from memory.lexical import Corpus
from memory.partition import LayerRows, Rows
from memory.ports import Matrix
from memory.presets import Ranking
from memory.record import Layer, MemoryRecord
from memory.search import Relevancies, ScaledSearch, Search, WholeSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A recalled memory with its scores.

    rank: place in its layer, from 1.
    recency, importance: on [0, 1].
    relevancy: a cosine, or on [0, 1] where words count.
    composite: the score that the preset ranks by; where several queries matched, that of the best one.
    query_ranks: every query type that matched, with the record's rank there.
    """

    record: MemoryRecord
    layer: Layer
    rank: int
    recency: float
    relevancy: float
    importance: float
    composite: float
    query_ranks: tuple[tuple[str, int], ...]


class _Scored(NamedTuple):
    """A candidate with its sort key: highest score first, then the younger, then by id, so that the order never depends
    on the store's."""

    order: tuple[float, float, str]
    position: int
    record: MemoryRecord
    composite: float
    relevancy: float


_ORDER = attrgetter("order")


class LayerRanking:
    """Candidates of one layer at a step, to be ranked by queries; `queries` has the vector of each, and `texts` their
    texts where words count, by the `corpus`. `fuses` has both count."""

    def __init__(
        self,
        layer_rows: LayerRows,
        queries: Matrix,
        *,
        corpus: Corpus | None = None,
        texts: Sequence[str] = (),
        fuses: bool = False,
    ) -> None:
        self._preset = layer_rows.preset
        self._queries = queries
        self._layer_rows = layer_rows
        self._search: Search | WholeSearch | ScaledSearch
        if not layer_rows.parts:
            return
        self._relevancies = Relevancies(layer_rows, queries, corpus, texts, fuses=fuses)
        if self._preset.ranking is Ranking.WEIGHTED:
            self._search = ScaledSearch(layer_rows, self._relevancies)
        elif corpus is not None:
            self._search = WholeSearch(layer_rows, self._relevancies)
        else:
            self._search = Search(layer_rows, queries)

    def ranked(self, types: Sequence[str], k: int, labelled: bool) -> tuple[Hit, ...]:
        """The first k of every query, united by id, best first. `labelled`: a query sees only records labelled with its
        type, and those without a label.

        Source: FinAgent §4.1 [A2] for the union of M types x K; the ranking is the preset's.
        """
        if not self._layer_rows.parts:
            return ()
        result: dict[str, _Scored] = {}
        ranks: dict[str, list[tuple[str, int]]] = {}
        for query_type, first in zip(types, self._first(types, k, labelled), strict=True):
            for rank, scored in enumerate(first, 1):
                record_id = scored.record.id
                ranks.setdefault(record_id, []).append((query_type, rank))
                if record_id not in result or scored.order < result[record_id].order:
                    result[record_id] = scored
        united = self._distinct(sorted(result.values(), key=_ORDER), len(result))
        recency, importance = self._layer_rows.scores(np.array([scored.position for scored in united], np.intp))
        return tuple(
            Hit(
                record=scored.record,
                layer=self._layer_rows.layer,
                rank=rank,
                recency=float(recency[rank - 1]),
                relevancy=scored.relevancy,
                importance=float(importance[rank - 1]),
                composite=scored.composite,
                query_ranks=tuple(ranks[scored.record.id]),
            )
            for rank, scored in enumerate(united, 1)
        )

    def _first(self, types: Sequence[str], k: int, labelled: bool) -> list[list[_Scored]]:
        """The first k of every query, exactly."""
        labels = [query_type if labelled else None for query_type in types]
        visible = [self._search.visible(label) for label in labels]
        pools = [min(k if self._preset.duplicate_similarity is None else 4 * k, rows) for rows in visible]
        result: list[list[_Scored]] = [[] for _ in types]
        wanting = [query for query, pool in enumerate(pools) if pool]
        while wanting:
            some = self._search.candidates(wanting, [pools[n] for n in wanting], [labels[n] for n in wanting])
            lacking = []
            for query, near in zip(wanting, some, strict=True):
                scored = self._exact(near, query)[: len(near) if len(near) == visible[query] else pools[query]]
                result[query] = self._distinct(scored, k)
                if len(result[query]) < k and pools[query] < visible[query]:
                    pools[query] = min(4 * pools[query], visible[query])
                    lacking.append(query)
            wanting = lacking
        return result

    def _exact(self, positions: Rows, query: int) -> list[_Scored]:
        relevancy = self._relevancies.of(positions, query)
        composite = self._search.composites(positions, query, relevancy)
        scored = [
            _Scored((-gamma, -record.born_step, record.id), position, record, gamma, similarity)
            for position, record, gamma, similarity in zip(
                positions.tolist(),
                self._layer_rows.records(positions),
                composite.tolist(),
                relevancy.tolist(),
                strict=True,
            )
        ]
        return sorted(scored, key=_ORDER)

    def _distinct(self, scored: Sequence[_Scored], k: int) -> list[_Scored]:
        """The first k, each that is like one before it left out."""
        if self._preset.duplicate_similarity is None:
            return list(scored[:k])
        positions = np.array([one.position for one in scored], np.intp)
        vectors = self._layer_rows.vectors(positions, self._queries.shape[1])
        shown, rest = list[int](), np.arange(len(scored))
        while len(rest) and len(shown) < k:
            first, rest = int(rest[0]), rest[1:]
            shown.append(first)
            # A row's own sum, not a matrix product: its bits are the same everywhere, and of thousands of records that
            # are alike there is no table of every two.
            likeness = (vectors[rest] * vectors[first]).sum(axis=1)
            rest = rest[likeness < self._preset.duplicate_similarity]
        return [scored[n] for n in shown]
