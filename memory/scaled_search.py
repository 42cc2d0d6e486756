"""Candidates by a composite score that is scaled by the lowest and highest values of all rows: none can be skipped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memory import formulas
from memory.formulas import Floats
from memory.layer_rows import LayerRows, Mask, Rows
from memory.ports import Matrix
from memory.projection import similarity
from memory.search import SLACK


class ScaledSearch:
    """A search as in memory/search.py, for weighted scores scaled over the layer. Source: TradingGPT [G1]."""

    def __init__(self, layer_rows: LayerRows, queries: Matrix) -> None:
        self._layer_rows = layer_rows
        self._queries = queries
        visible = []
        for part in layer_rows.parts:
            hidden = layer_rows.hidden(part)
            visible.append(part.alive if hidden is None else ~hidden)
        self._visible = np.concatenate(visible)
        self._similarities = np.concatenate([similarity(part.vectors, queries) for part in layer_rows.parts], axis=1)
        a, _, c = layer_rows.rule.weights
        recency, importance = (scores[self._visible] for scores in layer_rows.scores(np.arange(len(self._visible))))
        self._base = np.zeros(len(self._visible))
        self._base[self._visible] = a * formulas.min_max(recency) + c * formulas.min_max(importance)
        self._scales: dict[int, tuple[float, float, float]] = {}

    def visible(self, label: str | None) -> int:
        """Number of rows that a query may see; with a label, of the rows that have it."""
        return int(np.count_nonzero(self._labelled(label)))

    def candidates(self, queries: Sequence[int], pools: Sequence[int], labels: Sequence[str | None]) -> list[Rows]:
        """Positions per query that contain its first `pool`."""
        result = []
        for query, pool, label in zip(queries, pools, labels, strict=True):
            positions = np.flatnonzero(self._labelled(label))
            factor, shift, _ = self._scale(query)
            scores = self._base[positions] + factor * (self._similarities[query][positions] - shift)
            least = np.partition(scores, len(scores) - pool)[len(scores) - pool]
            result.append(positions[scores >= least - 2 * SLACK * max(factor, 1.0)])
        return result

    def composites(self, positions: Rows, query: int, relevancy: Floats) -> Floats:
        """Composite scores of rows, in double precision."""
        factor, shift, constant = self._scale(query)
        return np.asarray(self._base[positions] + constant + factor * (relevancy - shift))

    def _labelled(self, label: str | None) -> Mask:
        if label is None:
            return self._visible
        return np.asarray(
            self._visible & np.concatenate([part.matching(label=label) for part in self._layer_rows.parts])
        )

    def _scale(self, query: int) -> tuple[float, float, float]:
        """Factor, shift and constant of relevancy: factor x (relevancy - shift) + constant.

        Where all relevancies are equal, its weight counts for all.
        """
        if query not in self._scales:
            weight = self._layer_rows.rule.weights[1]
            rows = np.flatnonzero(self._visible)
            approximate = self._similarities[query][rows]
            low = self._layer_rows.relevancies(
                rows[approximate <= approximate.min() + 2 * SLACK], self._queries[query]
            ).min()
            high = self._layer_rows.relevancies(
                rows[approximate >= approximate.max() - 2 * SLACK], self._queries[query]
            ).max()
            distinct = high > low
            self._scales[query] = (weight / (high - low), float(low), 0.0) if distinct else (0.0, 0.0, weight)
        return self._scales[query]
