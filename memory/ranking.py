"""Ranking what is alive by the full composite, exactly: per layer and query, united by id with the rank kept.

Every candidate is scored in fast single precision first, of many only those that may be among the first by their
outline (memory/outline.py); what comes near the first k is scored again in double precision, in a way that does not
depend on where a row stands. So a run that was continued ranks as one that was not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from memory import scoring
from memory.live_index import AVAILABLE, IMPORTANCE, IMPORTANCE_STEP, RECENCY_STEP, Partition
from memory.outline import likeness
from memory.ports import Matrix
from memory.presets import LADDER, Measure, MemoryPreset, Ranking
from memory.record import Layer, MemoryRecord
from memory.scoring import Floats

# Single precision is off by less than this for rows of length 1 and a few hundred numbers.
_SLACK = 5e-5

T = TypeVar("T", bound=np.generic)
Rows = npt.NDArray[np.intp]
Singles = npt.NDArray[np.float32]

_TOO_MANY = 8
"""Where more than this part of all may be among the first, all are held against the query."""

_FEW = 16_384
"""Rows up to which sorting is cheap."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class _Scale:
    """The composite is base + factor x (relevancy - shift); without `base` it is recency + importance, or nothing."""

    factor: float = 1.0
    shift: float = 0.0
    base: Floats | None = None

    def of(self, relevancy: Singles) -> Singles:
        """What relevancy adds, in single precision."""
        return relevancy if self.base is None else np.float32(self.factor) * (relevancy - np.float32(self.shift))


_PLAIN = _Scale()


class LayerRanking:
    """The candidates of one layer, scored in time, ready to be ranked by any of the queries.

    `queries` has one row of length 1 per query, in the order of the rows of each part's relevancy.
    """

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
        self._rule = preset.rule(layer)
        self._layer = layer
        self._now = now
        self._parts = [part for part in parts if part.size]
        self._single = queries
        self._queries = queries.astype(np.float64)
        self._starts = np.cumsum([0, *(part.size for part in self._parts)])
        if not self._parts:
            return
        self._open = _joined([visible(part, now, kinds) for part in self._parts])
        self._opened_to: dict[str | None, tuple[Singles, int]] = {}
        # What is scaled by the extremes of all needs all figures of all.
        self._scaled = preset.ranking is Ranking.WEIGHTED
        self._all_scores = self._scores(np.arange(len(self._open))) if self._scaled else None
        if preset.measure is Measure.STANDING and layer is LADDER[0]:
            # What stands under the lower threshold of the shallowest layer has nowhere to sink: it is passed over.
            self._open &= self._standings() >= (self._rule.demote_below or 0.0)
        self._outlines = [None if self._scaled else part.outline() for part in self._parts]
        self._whole = not any(self._outlines)
        # Per part, query and row the relevancy (`_whole`), or what it is at most, in single precision.
        self._near = [
            outline.bounds(queries) if outline else likeness(part.vectors, queries)
            for outline, part in zip(self._outlines, self._parts, strict=True)
        ]

    def ranked(self, types: Sequence[str], k: int, labelled: bool) -> tuple[Hit, ...]:
        """The first k of every query, united by id, best first. `labelled`: a query sees what bears its type alone.

        Source: FinAgent §4.1 [A2] for the union of M types x K; the ranking is the preset's.
        """
        if not self._parts or not self._open.any():
            return ()
        found: dict[str, _Scored] = {}
        ranks: dict[str, list[tuple[str, int]]] = {}
        alike: dict[str, list[str]] = {}
        for query, asked in enumerate(types):
            for rank, scored in enumerate(self._first(query, k, asked if labelled else None, alike), 1):
                name = scored.record.id
                ranks.setdefault(name, []).append((asked, rank))
                if name not in found or scored.order < found[name].order:
                    found[name] = scored
        united = self._distinct(sorted(found.values(), key=lambda scored: scored.order), len(found), alike)
        recency, importance = self._scores(np.array([scored.position for scored in united], np.intp))
        return tuple(
            Hit(
                scored.record,
                self._layer,
                rank,
                float(recency[rank - 1]),
                scored.relevancy,
                float(importance[rank - 1]),
                scored.composite,
                tuple(ranks[scored.record.id]),
                tuple(dict.fromkeys(alike.get(scored.record.id, ()))),
            )
            for rank, scored in enumerate(united, 1)
        )

    def _first(self, query: int, k: int, label: str | None, alike: dict[str, list[str]]) -> list[_Scored]:
        """The first k for one query, exactly."""
        scale = self._scale(query)
        base, there = self._based(scale, label)
        if not there:
            return []
        pool = min(k if self._preset.same_from is None else 4 * k, there)
        while True:
            near = self._candidates(query, pool, there, base, scale)
            scored = self._exactly(near, query, scale)[: len(near) if len(near) == there else pool]
            chosen = self._distinct(scored, k, alike)
            if len(chosen) == k or pool == there:
                return chosen
            pool = min(4 * pool, there)

    def _scores(self, positions: Rows) -> tuple[Floats, Floats]:
        """Recency and importance, the latter on [0, 1]."""
        recency, importance = np.empty(len(positions)), np.empty(len(positions))
        for part, mine, rows in self._places(positions):
            recency[mine] = scoring.recencies(self._now, part.column(RECENCY_STEP)[rows], self._rule.stability)
            importance[mine] = scoring.importances(
                self._now, part.column(IMPORTANCE)[rows], part.column(IMPORTANCE_STEP)[rows], self._rule.alpha
            )
        return recency, scoring.unit_importance(importance)

    def _standings(self) -> Floats:
        recency, importance = self._scores(np.arange(len(self._open)))
        return scoring.standings(recency, importance * scoring.FULL_IMPORTANCE, self._rule.weights)

    def _scale(self, query: int) -> _Scale:
        """How relevancy enters the composite, and for a scaled one what the rest of it is."""
        if self._all_scores is None:
            return _PLAIN
        a, b, c = self._rule.weights
        recency, importance = (scores[self._open] for scores in self._all_scores)
        base = np.zeros(len(self._open))
        base[self._open] = a * scoring.min_max(recency) + c * scoring.min_max(importance)
        low, high = self._extremes(query)
        return _Scale(0.0, 0.0, base + b) if high <= low else _Scale(b / (high - low), low, base)

    def _based(self, scale: _Scale, label: str | None) -> tuple[Singles, int]:
        """What does not depend on the query, in single precision and -inf where the query may not see a row; and how
        many rows it sees."""
        if label in self._opened_to:
            return self._opened_to[label]
        open_to = self._open
        if label is not None:
            open_to = open_to & _joined([part.bearing(label=label) for part in self._parts])
        based = np.full(len(open_to), -np.inf, np.float32)
        if scale.base is not None:
            np.copyto(based, scale.base, where=open_to, casting="same_kind")
        elif self._preset.ranking is Ranking.RELEVANCY:
            based[open_to] = 0
        else:
            np.copyto(based, self._strength(), where=open_to)
        found = based, int(np.count_nonzero(open_to))
        if not self._scaled:
            self._opened_to[label] = found
        return found

    def _strength(self) -> Singles:
        """Recency + importance of all rows, in blocks that stay in a core's cache."""
        found = np.empty(len(self._open), np.float32)
        rule = self._rule
        for first, part in zip(self._starts, self._parts, strict=False):
            born, value, since = (part.column(name) for name in (RECENCY_STEP, IMPORTANCE, IMPORTANCE_STEP))
            for start in range(0, part.size, _FEW):
                some = slice(start, start + _FEW)
                strength = scoring.recencies(self._now, born[some], rule.stability)
                strength += scoring.unit_importance(
                    scoring.importances(self._now, value[some], since[some], rule.alpha)
                )
                found[first + start : first + start + len(strength)] = strength
        return found

    def _candidates(self, query: int, pool: int, there: int, base: Singles, scale: _Scale) -> Rows:
        """Positions among which the first `pool` are. Every other has been shown to stand behind them."""
        slack = 2 * _SLACK * max(scale.factor, 1.0)
        if self._whole or there > max(pool, _FEW // 8):
            most = base + scale.of(_joined([near[query] for near in self._near]))
            if self._whole:
                return np.flatnonzero(most >= _nth(most, pool) - slack)
            # What any `pool` of them reach, the first ones reach at least: those that may be best are likely to be.
            seeds = _peaks(most, 4 * pool)
            least = _nth(self._roughly(seeds, query, base, scale), pool)
            left = np.flatnonzero(most >= least - slack)
            if len(left) <= len(most) // 2:
                left = left[base[left] + self._finer(left, query) >= least - slack]
            if len(left) > len(most) // _TOO_MANY:
                # The outlines tell them badly apart: all in one go is quicker than many one by one.
                self._whole = True
                self._near = [likeness(part.vectors, self._single) for part in self._parts]
                return self._candidates(query, pool, there, base, scale)
        else:
            left = np.flatnonzero(base > -np.inf)
        rough = self._roughly(left, query, base, scale)
        return left[rough >= _nth(rough, pool) - slack]

    def _finer(self, positions: Rows, query: int) -> Singles:
        """Closer bounds of the relevancy of some, where there are any."""
        asked = self._single[query : query + 1]
        found = np.empty(len(positions), np.float32)
        for (_, mine, rows), outline, near in zip(self._places(positions), self._outlines, self._near, strict=True):
            known = near[query, rows]
            found[mine] = outline.finer(asked, rows, known) if outline else known
        return found

    def _roughly(self, positions: Rows, query: int, base: Singles, scale: _Scale) -> Singles:
        """The composites of some, in single precision."""
        near = np.empty(len(positions), np.float32)
        for part, mine, rows in self._places(positions):
            near[mine] = likeness(part.vectors[rows], self._single[query : query + 1])[0]
        return base[positions] + scale.of(near)

    def _extremes(self, query: int) -> tuple[float, float]:
        """Lowest and highest relevancy to a query, in double precision."""
        rows = np.flatnonzero(self._open)
        rough = _joined([near[query] for near in self._near])[rows]
        low = self._relevancies(rows[rough <= rough.min() + 2 * _SLACK], query).min()
        high = self._relevancies(rows[rough >= rough.max() - 2 * _SLACK], query).max()
        return float(low), float(high)

    def _exactly(self, positions: Rows, query: int, scale: _Scale) -> list[_Scored]:
        relevancy = self._relevancies(positions, query)
        if scale.base is not None:
            composite = scale.base[positions] + scale.factor * (relevancy - scale.shift)
        elif self._preset.ranking is Ranking.RELEVANCY:
            composite = relevancy
        else:
            recency, importance = self._scores(positions)
            composite = recency + importance + relevancy
        scored = [
            _Scored(position, self._record(position), gamma, likeness)
            for position, gamma, likeness in zip(
                positions.tolist(), composite.tolist(), relevancy.tolist(), strict=True
            )
        ]
        return sorted(scored, key=lambda one: one.order)

    def _relevancies(self, positions: Rows, query: int) -> Floats:
        # A row's own sum, not a matrix product, whose last bits depend on the shape it is part of.
        return np.asarray((self._vectors(positions) * self._queries[query]).sum(axis=1))

    def _distinct(self, scored: Sequence[_Scored], k: int, alike: dict[str, list[str]]) -> list[_Scored]:
        """The first k that are not alike; what is left out is noted with the one that is shown for it."""
        if self._preset.same_from is None:
            return list(scored[:k])
        chosen: list[_Scored] = []
        vectors = self._vectors(np.array([one.position for one in scored], np.intp))
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

    def _record(self, position: int) -> MemoryRecord:
        part = int(np.searchsorted(self._starts, position, "right")) - 1
        return self._parts[part].records[int(position - self._starts[part])]

    def _vectors(self, positions: Rows) -> Floats:
        found = np.empty((len(positions), self._queries.shape[1]))
        for part, mine, rows in self._places(positions):
            found[mine] = part.vectors[rows]
        return found

    def _places(self, positions: Rows) -> Iterator[tuple[Partition, slice | npt.NDArray[np.bool_], Rows]]:
        """The partitions of some positions: which of them are in each, and their rows there."""
        if len(self._parts) == 1:
            yield self._parts[0], slice(None), positions
            return
        parts = np.searchsorted(self._starts, positions, "right") - 1
        for number, partition in enumerate(self._parts):
            mine = parts == number
            yield partition, mine, positions[mine] - self._starts[number]


def visible(partition: Partition, now: float, kinds: Collection[str] | None) -> npt.NDArray[np.bool_]:
    """Which rows may be recalled now: alive, of these kinds, written and available at `now` at the latest."""
    seen = partition.alive
    if partition.latest_available > now:
        seen = seen & (partition.column(AVAILABLE) <= now)
    return seen.copy() if kinds is None else seen & partition.bearing(kinds)


def _nth(values: Floats | Singles, n: int) -> float:
    """The n-th highest."""
    return float(np.partition(values, len(values) - n)[len(values) - n])


def _peaks(values: Singles, n: int) -> Rows:
    """Positions of n of the highest; of many values the highest of some blocks each, which takes no sorting."""
    n = min(n, len(values))
    block = len(values) // (8 * n) if len(values) > _FEW else 1
    if block < 2:
        return np.argpartition(values, len(values) - n)[len(values) - n :]
    blocks = values[: len(values) // block * block].reshape(-1, block)
    best = blocks.max(axis=1)
    chosen = np.argpartition(best, len(best) - n)[len(best) - n :]
    return np.asarray(chosen * block + blocks[chosen].argmax(axis=1))


def _joined(parts: Sequence[npt.NDArray[T]]) -> npt.NDArray[T]:
    """Along the last axis; what is alone is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
