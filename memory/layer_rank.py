"""Exact ranking of live records by the full composite score, per layer and query, united by id with the rank kept.

Similarities are computed in single precision first. Records near the first k are scored again in double precision,
independently of their row. So a continued run ranks as an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memory import formulas
from memory.formulas import Floats
from memory.lexical import Corpus, fused
from memory.partition import LayerRows, Mask, Rows
from memory.ports import Matrix
from memory.presets import Ranking
from memory.record import Layer, MemoryRecord

SLACK = 5e-5
"""Largest error of single precision for rows of length 1 and a few hundred numbers."""

_ALONE = 2**18
"""Multiplications up to which a product is made in one thread.

Two threads that wait for one another are slower than one where the machine has other work, at times a hundredfold, and
hardly quicker where it has none.
"""


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


@dataclass(frozen=True, slots=True)
class _Scored:
    position: int
    record: MemoryRecord
    composite: float
    relevancy: float

    @property
    def order(self) -> tuple[float, float, str]:
        """Sort key: highest score first, then the younger, then by id, so that the order never depends on the
        store's."""
        return -self.composite, -self.record.born_step, self.record.id


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
        self._layer_rows = layer_rows
        if layer_rows.parts:
            self._relevancies = _Relevancies(layer_rows, queries, corpus, texts, fuses=fuses)
            self._composites = _Composites(layer_rows, self._relevancies)

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
        united = self._distinct(sorted(result.values(), key=lambda scored: scored.order), len(result))
        recency, importance = self._layer_rows.scores
        return tuple(
            Hit(
                record=scored.record,
                layer=self._layer_rows.layer,
                rank=rank,
                recency=float(recency[scored.position]),
                relevancy=scored.relevancy,
                importance=float(importance[scored.position]),
                composite=scored.composite,
                query_ranks=tuple(ranks[scored.record.id]),
            )
            for rank, scored in enumerate(united, 1)
        )

    def _first(self, types: Sequence[str], k: int, labelled: bool) -> list[list[_Scored]]:
        """The first k of every query, exactly."""
        result: list[list[_Scored]] = []
        for query, query_type in enumerate(types):
            visible = self._visible(query_type if labelled else None)
            rows = int(np.count_nonzero(visible))
            pool, found = min(k if self._preset.duplicate_similarity is None else 4 * k, rows), list[_Scored]()
            while pool:
                near = self._composites.candidates(query, pool, visible)
                found = self._distinct(self._exact(near, query)[: rows if len(near) == rows else pool], k)
                if len(found) == k or pool == rows:
                    break
                pool = min(4 * pool, rows)
            result.append(found)
        return result

    def _visible(self, label: str | None) -> Mask:
        """Mask of the rows that a query may see; with a label, of the rows that have it."""
        visible = self._relevancies.visible
        if label is None:
            return visible
        return np.asarray(visible & np.concatenate([part.matching(label=label) for part in self._layer_rows.parts]))

    def _exact(self, positions: Rows, query: int) -> list[_Scored]:
        relevancy = self._relevancies.of(positions, query)
        composite = self._composites.of(positions, query, relevancy)
        scored = [
            _Scored(position, self._layer_rows.records[position], gamma, similarity)
            for position, gamma, similarity in zip(
                positions.tolist(), composite.tolist(), relevancy.tolist(), strict=True
            )
        ]
        return sorted(scored, key=lambda one: one.order)

    def _distinct(self, scored: Sequence[_Scored], k: int) -> list[_Scored]:
        """The first k, each that is like one before it left out."""
        if self._preset.duplicate_similarity is None:
            return list(scored[:k])
        positions = np.array([one.position for one in scored], np.intp)
        vectors = self._layer_rows.vectors(positions)
        shown: list[int] = []
        for n, vector in enumerate(vectors):
            similarity = (vectors[shown] * vector).sum(axis=1)
            if similarity.max(initial=-1.0) < self._preset.duplicate_similarity:
                shown.append(n)
                if len(shown) == k:
                    break
        return [scored[n] for n in shown]


class _Relevancies:
    """The relevancy of every row of a layer for each query: the cosine, or with `texts` what their words say, scaled by
    the best of the layer. `fuses` has the two fused by ranks."""

    def __init__(
        self, layer_rows: LayerRows, queries: Matrix, corpus: Corpus | None, texts: Sequence[str], *, fuses: bool
    ) -> None:
        self._layer_rows, self._queries = layer_rows, queries
        self._lexical = None if corpus is None else self._by_words(corpus, texts, fuses)

    @cached_property
    def visible(self) -> Mask:
        """Mask of the rows that can be recalled."""
        return ~np.concatenate([self._layer_rows.hidden(part) for part in self._layer_rows.parts])

    def of_all(self, query: int) -> Floats:
        """Of every row; a cosine in single precision."""
        return self._cosines[query] if self._lexical is None else self._lexical[query]

    def of(self, positions: Rows, query: int) -> Floats:
        """Of some rows, in double precision."""
        if self._lexical is not None:
            return self._lexical[query][positions]
        return self._layer_rows.relevancies(positions, self._queries[query])

    @cached_property
    def _cosines(self) -> Matrix:
        return np.concatenate([similarity(part.vectors, self._queries) for part in self._layer_rows.parts], axis=1)

    def _by_words(self, corpus: Corpus, texts: Sequence[str], fuses: bool) -> list[Floats]:
        parts = [corpus.scores(part.terms(), texts) for part in self._layer_rows.parts]
        rows, result = np.flatnonzero(self.visible), list[Floats]()
        for number, scores in enumerate(map(np.concatenate, zip(*parts, strict=True))):
            seen = scores[rows]
            if fuses:
                seen = fused(seen, self._layer_rows.relevancies(rows, self._queries[number]))
            elif best := seen.max(initial=0.0):
                seen = seen / best
            scores[rows] = seen
            result.append(scores)
        return result


class _Composites:
    """The composite scores of a layer's rows: recency, importance and relevancy added up, relevancy alone, or the three
    weighted, each scaled by the lowest and highest of the rows that can be recalled.

    Source: InvestorBench A (2) [I2]; weighted, TradingGPT [G1].
    """

    def __init__(self, layer_rows: LayerRows, relevancies: _Relevancies) -> None:
        self._layer_rows, self._relevancies = layer_rows, relevancies
        self._ranking = layer_rows.preset.ranking
        visible = relevancies.visible
        self._base = np.zeros(len(visible))
        self._scales: dict[int, tuple[float, float, float]] = {}
        if self._ranking is not Ranking.RELEVANCY:
            recency, importance = (scores[visible] for scores in layer_rows.scores)
            if self._ranking is Ranking.WEIGHTED:
                a, _, c = layer_rows.rule.weights
                recency, importance = a * formulas.min_max(recency), c * formulas.min_max(importance)
            self._base[visible] = recency + importance

    def candidates(self, query: int, pool: int, visible: Mask) -> Rows:
        """Positions of visible rows that contain the first `pool`; as many are visible at least."""
        positions = np.flatnonzero(visible)
        factor, shift, _ = self._scale(query)
        scores = self._base[positions] + factor * (self._relevancies.of_all(query)[positions] - shift)
        least = np.partition(scores, len(scores) - pool)[len(scores) - pool]
        return np.asarray(positions[scores >= least - 2 * SLACK * max(factor, 1.0)])

    def of(self, positions: Rows, query: int, relevancy: Floats) -> Floats:
        """Of rows, in double precision."""
        if self._ranking is Ranking.RELEVANCY:
            return relevancy
        if self._ranking is Ranking.SUM:
            recency, importance = (scores[positions] for scores in self._layer_rows.scores)
            return formulas.composite(recency, relevancy, importance)
        factor, shift, constant = self._scale(query)
        return np.asarray(self._base[positions] + constant + factor * (relevancy - shift))

    def _scale(self, query: int) -> tuple[float, float, float]:
        """Factor, shift and constant of relevancy: factor x (relevancy - shift) + constant.

        Where all relevancies are equal, its weight counts for all.
        """
        if self._ranking is not Ranking.WEIGHTED:
            return 1.0, 0.0, 0.0
        if query not in self._scales:
            weight = self._layer_rows.rule.weights[1]
            rows = np.flatnonzero(self._relevancies.visible)
            approximate = self._relevancies.of_all(query)[rows]
            low = self._relevancies.of(rows[approximate <= approximate.min() + 2 * SLACK], query).min()
            high = self._relevancies.of(rows[approximate >= approximate.max() - 2 * SLACK], query).max()
            distinct = high > low
            self._scales[query] = (weight / (high - low), float(low), 0.0) if distinct else (0.0, 0.0, weight)
        return self._scales[query]


def similarity(vectors: Matrix, queries: Matrix) -> Matrix:
    """Inner products of every query (rows) with every vector (columns), in single precision and in one thread."""
    # A single one would be another routine of the library, one with threads.
    columns = np.ascontiguousarray((np.repeat(queries, 2, axis=0) if len(queries) == 1 else queries).T)
    result = np.empty((len(vectors), columns.shape[1]), np.float32)
    block = max(1, _ALONE // max(1, columns.size))
    for start in range(0, len(vectors), block):
        np.dot(vectors[start : start + block], columns, out=result[start : start + block])
    return result.T[: len(queries)]
