"""Finds, of many rows, those that may be among the first: by what is known of each row and how like a query it is.

Whole blocks go by the best of what is known of their rows, rows by the coarse and then the fine bound of their outline
(memory/outline.py), and the rest is scored in single precision, the likeliest first, until no bound reaches the first
ones. What is left out has been shown to stand behind; so the answer is exact, whatever the bounds are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from memory import scoring
from memory.joined import JoinedRows, Rows
from memory.outline import likeness
from memory.ports import Matrix
from memory.presets import Ranking
from memory.scoring import Floats

SLACK = 5e-5
"""Single precision is off by less than this for rows of length 1 and a few hundred numbers."""

Singles = npt.NDArray[np.float32]

_HEAD, _AT_ONCE = 8, 32
"""Blocks that are looked at first, the strongest, to know what the first ones reach; and at a time after them."""

_BATCH = 128
"""Rows that are scored at a time at first; then twice as many each time."""

_NOTHING = np.float32(-1e30)


class Search:
    """The rows of one layer, to be asked for the first ones by several queries at once: by recency + importance +
    relevancy, or by relevancy alone. `queries` has a row per query.
    """

    def __init__(self, joined: JoinedRows, queries: Matrix) -> None:
        self._joined = joined
        self._queries = queries
        self._near: dict[int, Matrix] = {}
        self._outlines = [part.outline() for part in joined.parts]
        self._asked = [outline.asked(queries) if outline else None for outline in self._outlines]
        self._longest = float(np.linalg.norm(queries, axis=1).max())
        # Per label and partition what the score of every row is without its likeness, -inf where it may not be seen,
        # filled up to the end of a block; and how many may be.
        self._bases: dict[str | None, tuple[list[Singles], int]] = {}

    def there(self, label: str | None) -> int:
        """How many rows a query may see, that bear the label where there is one."""
        return self._based(label)[1]

    def composites(self, positions: Rows, query: int, relevancy: Floats) -> Floats:
        """The composites of some rows, in double precision."""
        if self._joined.preset.ranking is Ranking.RELEVANCY:
            return relevancy
        recency, importance = self._joined.scores(positions)
        return scoring.composite(recency, relevancy, importance)

    def first(self, asked: Sequence[int], pools: Sequence[int], labels: Sequence[str | None]) -> list[Rows]:
        """Per query the positions among which its first `pool` are; it has as many to see."""
        seen = [self._based(label)[0] for label in labels]
        if not any(self._outlines):
            return [self._plainly(*one) for one in zip(asked, pools, seen, strict=True)]
        least = np.full(len(asked), _NOTHING)
        held: list[list[tuple[Rows, Singles]]] = [[] for _ in asked]
        for number in range(len(self._outlines)):
            for rows_of, most in self._bounded(number, asked, [bases[number] for bases in seen], least):
                for n, bounds in enumerate(most):
                    if least[n] == _NOTHING:
                        seeds = _peaks(bounds, 4 * pools[n])
                        seeds = seeds[bounds[seeds] > _NOTHING]
                        if len(seeds) >= pools[n]:
                            rough = self._roughly(rows_of(seeds), asked[n], seen[n])
                            least[n] = _nth(rough, pools[n])
                    left = np.flatnonzero(bounds >= least[n] - 2 * SLACK)
                    held[n].append((rows_of(left), bounds[left]))
        return [self._narrowed(asked[n], pools[n], seen[n], least[n], held[n]) for n in range(len(asked))]

    def _bounded(
        self, number: int, asked: Sequence[int], seen: Sequence[Singles], least: Singles
    ) -> Iterator[tuple[Callable[[Rows], Rows], Matrix]]:
        """Groups of rows of a partition with what each reaches at most, per query; and the positions of numbers in it.

        `least`, which is what the first ones reach so far, rises while this is at work.
        """
        start, outline, outlined = int(self._joined.starts[number]), self._outlines[number], self._asked[number]
        if outline is None or outlined is None:
            near = self._likeness(number)
            yield lambda rows: rows + start, np.stack([base + near[q] for base, q in zip(seen, asked, strict=True)])
            return
        size = outline.block
        best = self._based(None)[0][number].reshape(-1, size).max(axis=1)
        outlined = outlined.of(asked)
        reach = outline.longest * self._longest + 2 * SLACK
        order = np.argsort(-best, kind="stable")
        first, count = 0, _HEAD
        while first < len(order):
            chosen = order[first : first + count]
            chosen = chosen[best[chosen] + reach >= max(least.min(), _NOTHING)]
            if not len(chosen):
                return  # those behind are weaker still
            most = outline.bounds(outlined, chosen)
            if all(base is seen[0] for base in seen):
                most += seen[0].reshape(-1, size)[chosen]
            else:
                for n, base in enumerate(seen):
                    most[n] += base.reshape(-1, size)[chosen]

            def rows_of(rows: Rows, chosen: Rows = chosen) -> Rows:
                return chosen[rows // size] * size + rows % size + start

            yield rows_of, most.reshape(len(asked), -1)
            first, count = first + count, _AT_ONCE

    def _plainly(self, query: int, pool: int, seen: Sequence[Singles]) -> Rows:
        """The same for one query where there are no outlines: few rows, all of which are scored."""
        rough = np.concatenate([base + self._likeness(number)[query] for number, base in enumerate(seen)])
        return np.flatnonzero(rough >= _nth(rough, pool) - 2 * SLACK)

    def _likeness(self, number: int) -> Matrix:
        """Of every query with every row of a partition."""
        if number not in self._near:
            self._near[number] = likeness(self._joined.parts[number].vectors, self._queries)
        return self._near[number]

    def _narrowed(
        self, query: int, pool: int, seen: Sequence[Singles], least: np.float32, held: list[tuple[Rows, Singles]]
    ) -> Rows:
        """Of rows with their bounds those that are among the first, or as near to it as single precision tells."""
        positions = np.concatenate([rows for rows, _ in held])
        bounds = np.concatenate([most for _, most in held])
        left = bounds >= least - 2 * SLACK
        positions, bounds = positions[left], bounds[left]
        if len(positions) > _BATCH:
            if len(positions) > 8 * _BATCH:  # what the first ones reach was told by some rows alone
                rough = self._roughly(positions[_peaks(bounds, 4 * pool)], query, seen)
                least = max(least, _nth(rough, pool))
                left = bounds >= least - 2 * SLACK
                positions, bounds = positions[left], bounds[left]
            bounds = self._finer(positions, bounds, query)
            left = bounds >= least - 2 * SLACK
            positions, bounds = positions[left], bounds[left]
            order = np.argsort(-bounds)
            positions, bounds = positions[order], bounds[order]
        scores = np.empty(0, np.float32)
        count = _BATCH
        while len(scores) < len(positions) and bounds[len(scores)] >= least - 2 * SLACK:
            scored = len(scores)
            more = self._roughly(positions[scored : scored + count], query, seen)
            scores = np.concatenate([scores, more])
            if len(scores) >= pool:
                least = max(least, _nth(scores, pool))
            count *= 2
        return positions[: len(scores)][scores >= least - 2 * SLACK]

    def _finer(self, positions: Rows, bounds: Singles, query: int) -> Singles:
        """Closer bounds, where there are any."""
        found = bounds.copy()
        for number, mine, rows in self._joined.places(positions):
            outline, asked = self._outlines[number], self._asked[number]
            if outline is not None and asked is not None:
                found[mine] = outline.finer(asked, query, rows, bounds[mine])
        return found

    def _roughly(self, positions: Rows, query: int, seen: Sequence[Singles]) -> Singles:
        """The scores of some, in single precision."""
        found = np.empty(len(positions), np.float32)
        asked = self._queries[query : query + 1]
        for number, mine, rows in self._joined.places(positions):
            found[mine] = likeness(self._joined.parts[number].vectors[rows], asked)[0] + seen[number][rows]
        return found

    def _based(self, label: str | None) -> tuple[list[Singles], int]:
        if label not in self._bases:
            if label is None:
                bases = [self._base(number) for number in range(len(self._outlines))]
            else:
                bases = [base.copy() for base in self._based(None)[0]]
                for part, base in zip(self._joined.parts, bases, strict=True):
                    base[: part.size][~part.bearing(label=label)] = -np.inf
            self._bases[label] = bases, sum(int(np.count_nonzero(base > -np.inf)) for base in bases)
        return self._bases[label]

    def _base(self, number: int) -> Singles:
        part, outline = self._joined.parts[number], self._outlines[number]
        room = part.size if outline is None else -(-part.size // outline.block) * outline.block
        if self._joined.preset.ranking is Ranking.RELEVANCY:
            base = np.full(room, -np.inf, np.float32)
            base[: part.size][part.alive] = 0
        else:
            base = part.strength(self._joined.now, room)
        hidden = self._joined.hidden(part)
        if hidden is not None:
            base[: part.size][hidden] = -np.inf
        return base


def _nth(values: Singles, n: int) -> np.float32:
    """The n-th highest."""
    return np.float32(np.partition(values, len(values) - n)[len(values) - n])


def _peaks(values: Singles, n: int) -> Rows:
    """Positions of n of the highest; of many values the highest of some blocks each, which takes no sorting."""
    n = min(n, len(values))
    block = len(values) // (8 * n)
    if block < 4:
        return np.argpartition(values, len(values) - n)[len(values) - n :]
    blocks = values[: len(values) // block * block].reshape(-1, block)
    best = blocks.max(axis=1)
    chosen = np.argpartition(best, len(best) - n)[len(best) - n :]
    return np.asarray(chosen * block + blocks[chosen].argmax(axis=1))
