"""Candidate search: of many rows those that may be among the first, by score bounds.

Blocks are ruled out by their best row, rows by the coarse and then the fine bound of their projection
(memory/projection.py). The rest is scored in single precision, the best bounds first, until no bound reaches the first
ones. A skipped row is proven to rank behind, so the answer is exact, however loose the bounds are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from memory import formulas
from memory.formulas import Floats
from memory.lexical import Corpus, fused
from memory.partition import LayerRows, Mask, Rows
from memory.ports import Matrix
from memory.presets import Ranking
from memory.projection import similarity

SLACK = 5e-5
"""Largest error of single precision for rows of length 1 and a few hundred numbers."""

Singles = npt.NDArray[np.float32]

_HEAD, _AT_ONCE = 8, 32
"""Number of blocks examined first, the strongest, to find a first threshold; and at a time after them."""

_BATCH = 128
"""Rows scored at a time at first; then twice as many each time."""

_NOTHING = np.float32(-1e30)


class _Summed:
    """Scores that are recency + importance + relevancy, or relevancy alone."""

    def __init__(self, layer_rows: LayerRows) -> None:
        self._layer_rows = layer_rows
        self._alone = layer_rows.preset.ranking is Ranking.RELEVANCY

    def composites(self, positions: Rows, query: int, relevancy: Floats) -> Floats:
        """Composite scores of rows, in double precision."""
        if self._alone:
            return relevancy
        recency, importance = self._layer_rows.scores(positions)
        return formulas.composite(recency, relevancy, importance)


class Search(_Summed):
    """The rows of one layer, for the candidates of several queries at once. `queries` has a row per query."""

    def __init__(self, layer_rows: LayerRows, queries: Matrix) -> None:
        super().__init__(layer_rows)
        self._queries = queries
        self._similarities: dict[int, Matrix] = {}
        self._projections = [part.projection() for part in layer_rows.parts]
        self._projected = [projection.project(queries) if projection else None for projection in self._projections]
        self._longest = float(np.linalg.norm(queries, axis=1).max())
        # Per label and partition what the score of every row is without its likeness, -inf where it may not be bases,
        # filled up to the end of a block; and how many may be.
        self._bases: dict[str | None, tuple[list[Singles], int]] = {}

    def visible(self, label: str | None) -> int:
        """Number of rows that a query may see; with a label, of the rows that have it."""
        return self._base_scores(label)[1]

    def candidates(self, queries: Sequence[int], pools: Sequence[int], labels: Sequence[str | None]) -> list[Rows]:
        """Positions per query that contain its first `pool`; at least as many rows are visible."""
        bases = [self._base_scores(label)[0] for label in labels]
        if not any(self._projections):
            return [self._scan(*one) for one in zip(queries, pools, bases, strict=True)]
        least = np.full(len(queries), _NOTHING)
        survivors: list[list[tuple[Rows, Singles]]] = [[] for _ in queries]
        for number in range(len(self._projections)):
            for rows_of, upper in self._bounded_blocks(number, queries, [base[number] for base in bases], least):
                for n, bounds in enumerate(upper):
                    if least[n] == _NOTHING:
                        seeds = _top_positions(bounds, 4 * pools[n])
                        seeds = seeds[bounds[seeds] > _NOTHING]
                        if len(seeds) >= pools[n]:
                            approximate = self._approximate(rows_of(seeds), queries[n], bases[n])
                            least[n] = _nth_highest(approximate, pools[n])
                    remaining = np.flatnonzero(bounds >= least[n] - 2 * SLACK)
                    survivors[n].append((rows_of(remaining), bounds[remaining]))
        return [self._narrow(queries[n], pools[n], bases[n], least[n], survivors[n]) for n in range(len(queries))]

    def _bounded_blocks(
        self, number: int, queries: Sequence[int], bases: Sequence[Singles], least: Singles
    ) -> Iterator[tuple[Callable[[Rows], Rows], Matrix]]:
        """Groups of rows of a partition with their upper bounds per query, and the positions of their numbers.

        `least`, the threshold reached so far per query, rises during the iteration.
        """
        start = int(self._layer_rows.starts[number])
        projection, projected = self._projections[number], self._projected[number]
        if projection is None or projected is None:
            similarities = self._similarity(number)
            yield (
                lambda rows: rows + start,
                np.stack([base + similarities[q] for base, q in zip(bases, queries, strict=True)]),
            )
            return
        size = projection.block
        best = self._base_scores(None)[0][number].reshape(-1, size).max(axis=1)
        projected = projected.of(queries)
        reach = projection.longest * self._longest + 2 * SLACK
        order = np.argsort(-best, kind="stable")
        first, count = 0, _HEAD
        while first < len(order):
            chosen = order[first : first + count]
            chosen = chosen[best[chosen] + reach >= max(least.min(), _NOTHING)]
            if not len(chosen):
                return  # those behind are weaker still
            upper = projection.bounds(projected, chosen)
            if all(base is bases[0] for base in bases):
                upper += bases[0].reshape(-1, size)[chosen]
            else:
                for n, base in enumerate(bases):
                    upper[n] += base.reshape(-1, size)[chosen]

            def rows_of(rows: Rows, chosen: Rows = chosen) -> Rows:
                return chosen[rows // size] * size + rows % size + start

            yield rows_of, upper.reshape(len(queries), -1)
            first, count = first + count, _AT_ONCE

    def _scan(self, query: int, pool: int, bases: Sequence[Singles]) -> Rows:
        """Candidates of one query without projections: few rows, all of which are scored."""
        approximate = np.concatenate([base + self._similarity(number)[query] for number, base in enumerate(bases)])
        return np.flatnonzero(approximate >= _nth_highest(approximate, pool) - 2 * SLACK)

    def _similarity(self, number: int) -> Matrix:
        """Similarities of every query with every row of a partition."""
        if number not in self._similarities:
            self._similarities[number] = similarity(self._layer_rows.parts[number].vectors, self._queries)
        return self._similarities[number]

    def _narrow(
        self, query: int, pool: int, bases: Sequence[Singles], least: np.float32, survivors: list[tuple[Rows, Singles]]
    ) -> Rows:
        """Positions of bounded rows that are among the first, or as near to it as single precision resolves."""
        positions = np.concatenate([rows for rows, _ in survivors])
        bounds = np.concatenate([upper for _, upper in survivors])
        remaining = bounds >= least - 2 * SLACK
        positions, bounds = positions[remaining], bounds[remaining]
        if len(positions) > _BATCH:
            if len(positions) > 8 * _BATCH:  # what the first ones reach was told by some rows alone
                approximate = self._approximate(positions[_top_positions(bounds, 4 * pool)], query, bases)
                least = max(least, _nth_highest(approximate, pool))
                remaining = bounds >= least - 2 * SLACK
                positions, bounds = positions[remaining], bounds[remaining]
            bounds = self._tighten(positions, bounds, query)
            remaining = bounds >= least - 2 * SLACK
            positions, bounds = positions[remaining], bounds[remaining]
            order = np.argsort(-bounds)
            positions, bounds = positions[order], bounds[order]
        scores = np.empty(0, np.float32)
        count = _BATCH
        while len(scores) < len(positions) and bounds[len(scores)] >= least - 2 * SLACK:
            scored = len(scores)
            more = self._approximate(positions[scored : scored + count], query, bases)
            scores = np.concatenate([scores, more])
            if len(scores) >= pool:
                least = max(least, _nth_highest(scores, pool))
            count *= 2
        return positions[: len(scores)][scores >= least - 2 * SLACK]

    def _tighten(self, positions: Rows, bounds: Singles, query: int) -> Singles:
        """Closer bounds for the rows of partitions with projections."""
        result = bounds.copy()
        for number, mine, rows in self._layer_rows.by_partition(positions):
            projection, projected = self._projections[number], self._projected[number]
            if projection is not None and projected is not None:
                result[mine] = projection.tighten(projected, query, rows, bounds[mine])
        return result

    def _approximate(self, positions: Rows, query: int, bases: Sequence[Singles]) -> Singles:
        """Scores of rows in single precision."""
        result = np.empty(len(positions), np.float32)
        vector = self._queries[query : query + 1]
        for number, mine, rows in self._layer_rows.by_partition(positions):
            result[mine] = similarity(self._layer_rows.parts[number].vectors[rows], vector)[0] + bases[number][rows]
        return result

    def _base_scores(self, label: str | None) -> tuple[list[Singles], int]:
        if label not in self._bases:
            if label is None:
                bases = [self._base(number) for number in range(len(self._projections))]
            else:
                bases = [base.copy() for base in self._base_scores(None)[0]]
                for part, base in zip(self._layer_rows.parts, bases, strict=True):
                    base[: part.size][~part.matching(label=label)] = -np.inf
            self._bases[label] = bases, sum(int(np.count_nonzero(base > -np.inf)) for base in bases)
        return self._bases[label]

    def _base(self, number: int) -> Singles:
        part, projection = self._layer_rows.parts[number], self._projections[number]
        room = part.size if projection is None else -(-part.size // projection.block) * projection.block
        if self._alone:
            base = np.full(room, -np.inf, np.float32)
            base[: part.size][part.alive] = 0
        else:
            base = part.strength(self._layer_rows.now, room)
        hidden = self._layer_rows.hidden(part)
        if hidden is not None:
            base[: part.size][hidden] = -np.inf
        return base


class Relevancies:
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
        return np.concatenate([self._layer_rows.visible(part) for part in self._layer_rows.parts])

    def of_all(self, query: int) -> Floats:
        """Of every row; a cosine in single precision."""
        if self._lexical is not None:
            return self._lexical[query]
        one = self._queries[query : query + 1]
        return np.concatenate([similarity(part.vectors, one)[0] for part in self._layer_rows.parts])

    def of(self, positions: Rows, query: int) -> Floats:
        """Of some rows, in double precision."""
        if self._lexical is not None:
            return self._lexical[query][positions]
        return self._layer_rows.relevancies(positions, self._queries[query])

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


class WholeSearch(_Summed):
    """The candidates of a layer whose relevancies are known for every row."""

    def __init__(self, layer_rows: LayerRows, relevancies: Relevancies) -> None:
        super().__init__(layer_rows)
        self._relevancies = relevancies
        bases = [part.strength(layer_rows.now, part.size) for part in layer_rows.parts]
        self._base = np.zeros(1, np.float32) if self._alone else np.concatenate(bases)

    def visible(self, label: str | None) -> int:
        """Number of rows that a query may see; with a label, of the rows that have it."""
        return int(np.count_nonzero(_labelled(self._layer_rows, self._relevancies.visible, label)))

    def candidates(self, queries: Sequence[int], pools: Sequence[int], labels: Sequence[str | None]) -> list[Rows]:
        """Positions per query that contain its first `pool`."""
        result = []
        for query, pool, label in zip(queries, pools, labels, strict=True):
            mask = _labelled(self._layer_rows, self._relevancies.visible, label)
            scores = np.where(mask, self._base + self._relevancies.of_all(query).astype(np.float32), -np.inf)
            result.append(np.flatnonzero(scores >= _nth_highest(scores, pool) - 2 * SLACK))
        return result


class ScaledSearch:
    """The same for weighted scores scaled by the lowest and highest of all rows: none can be skipped.

    Source: TradingGPT [G1].
    """

    def __init__(self, layer_rows: LayerRows, relevancies: Relevancies) -> None:
        self._layer_rows = layer_rows
        self._relevancies = relevancies
        self._visible = relevancies.visible
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
            scores = self._base[positions] + factor * (self._relevancies.of_all(query)[positions] - shift)
            least = np.partition(scores, len(scores) - pool)[len(scores) - pool]
            result.append(positions[scores >= least - 2 * SLACK * max(factor, 1.0)])
        return result

    def composites(self, positions: Rows, query: int, relevancy: Floats) -> Floats:
        """Composite scores of rows, in double precision."""
        factor, shift, constant = self._scale(query)
        return np.asarray(self._base[positions] + constant + factor * (relevancy - shift))

    def _labelled(self, label: str | None) -> Mask:
        return _labelled(self._layer_rows, self._visible, label)

    def _scale(self, query: int) -> tuple[float, float, float]:
        """Factor, shift and constant of relevancy: factor x (relevancy - shift) + constant.

        Where all relevancies are equal, its weight counts for all.
        """
        if query not in self._scales:
            weight = self._layer_rows.rule.weights[1]
            rows = np.flatnonzero(self._visible)
            approximate = self._relevancies.of_all(query)[rows]
            low = self._relevancies.of(rows[approximate <= approximate.min() + 2 * SLACK], query).min()
            high = self._relevancies.of(rows[approximate >= approximate.max() - 2 * SLACK], query).max()
            distinct = high > low
            self._scales[query] = (weight / (high - low), float(low), 0.0) if distinct else (0.0, 0.0, weight)
        return self._scales[query]


def _labelled(layer_rows: LayerRows, visible: Mask, label: str | None) -> Mask:
    """Mask of the visible rows that a query with a label may see."""
    if label is None:
        return visible
    return np.asarray(visible & np.concatenate([part.matching(label=label) for part in layer_rows.parts]))


def _nth_highest(values: Singles, n: int) -> np.float32:
    """The n-th highest value."""
    return np.float32(np.partition(values, len(values) - n)[len(values) - n])


def _top_positions(values: Singles, n: int) -> Rows:
    """Positions of n of the highest values; for many values the highest of some blocks each, without sorting."""
    n = min(n, len(values))
    block = len(values) // (8 * n)
    if block < 4:
        return np.argpartition(values, len(values) - n)[len(values) - n :]
    blocks = values[: len(values) // block * block].reshape(-1, block)
    best = blocks.max(axis=1)
    chosen = np.argpartition(best, len(best) - n)[len(best) - n :]
    return np.asarray(chosen * block + blocks[chosen].argmax(axis=1))
