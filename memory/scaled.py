"""The first rows by a composite that is scaled by the lowest and highest figures of all: nothing can be left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memory import scoring
from memory.joined import JoinedRows, Mask, Rows
from memory.outline import likeness
from memory.ports import Matrix
from memory.scoring import Floats
from memory.search import SLACK


class ScaledSearch:
    """As memory/search.py's Search, for weighted scores, each scaled over the layer. Source: TradingGPT [G1]."""

    def __init__(self, joined: JoinedRows, queries: Matrix) -> None:
        self._joined = joined
        self._queries = queries
        open_to = []
        for part in joined.parts:
            hidden = joined.hidden(part)
            open_to.append(part.alive if hidden is None else ~hidden)
        self._open = np.concatenate(open_to)
        self._near = np.concatenate([likeness(part.vectors, queries) for part in joined.parts], axis=1)
        a, _, c = joined.rule.weights
        recency, importance = (scores[self._open] for scores in joined.scores(np.arange(len(self._open))))
        self._base = np.zeros(len(self._open))
        self._base[self._open] = a * scoring.min_max(recency) + c * scoring.min_max(importance)
        self._scales: dict[int, tuple[float, float, float]] = {}

    def there(self, label: str | None) -> int:
        """How many rows a query may see, that bear the label where there is one."""
        return int(np.count_nonzero(self._seen(label)))

    def first(self, asked: Sequence[int], pools: Sequence[int], labels: Sequence[str | None]) -> list[Rows]:
        """Per query the positions among which its first `pool` are."""
        found = []
        for query, pool, label in zip(asked, pools, labels, strict=True):
            positions = np.flatnonzero(self._seen(label))
            factor, shift, _ = self._scale(query)
            most = self._base[positions] + factor * (self._near[query][positions] - shift)
            least = np.partition(most, len(most) - pool)[len(most) - pool]
            found.append(positions[most >= least - 2 * SLACK * max(factor, 1.0)])
        return found

    def composites(self, positions: Rows, query: int, relevancy: Floats) -> Floats:
        """The composites of some rows, in double precision."""
        factor, shift, constant = self._scale(query)
        return np.asarray(self._base[positions] + constant + factor * (relevancy - shift))

    def _seen(self, label: str | None) -> Mask:
        if label is None:
            return self._open
        return np.asarray(self._open & np.concatenate([part.bearing(label=label) for part in self._joined.parts]))

    def _scale(self, query: int) -> tuple[float, float, float]:
        """Relevancy counts factor x (relevancy - shift) + constant; where all are equal, its weight for all."""
        if query not in self._scales:
            weight = self._joined.rule.weights[1]
            rows = np.flatnonzero(self._open)
            rough = self._near[query][rows]
            low = self._joined.relevancies(rows[rough <= rough.min() + 2 * SLACK], self._queries[query]).min()
            high = self._joined.relevancies(rows[rough >= rough.max() - 2 * SLACK], self._queries[query]).max()
            told = high > low
            self._scales[query] = (weight / (high - low), float(low), 0.0) if told else (0.0, 0.0, weight)
        return self._scales[query]
