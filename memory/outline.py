"""An outline of many vectors: a few numbers of each that bound its likeness to any query from above.

A vector is its part in some directions and a rest at right angles to them. The inner product of two vectors is that of
their parts plus that of their rests, and the latter is at most the product of the lengths of the rests. So what cannot
be among the first is known from a fraction of the numbers, and known for certain: the directions, learnt from the
vectors themselves, decide how much is left out, never what is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memory.ports import Matrix

OUTLINE_FROM = 2_048
"""Vectors from which an outline is worth its making."""

BLOCK = 2_048
"""Rows that are bounded together: what is read and made for them stays in a core's cache."""

_COARSE, _FINE = 31, 95
"""Directions that are looked at for all vectors, and for those that the coarse bound has left."""

_SAMPLE = 4_096

# What single precision can be off by in a squared length: lengths of rests are rounded up by it.
_ROUNDING = 1e-5

_ALONE = 2**18
"""Multiplications up to which a product is made in one thread: two that wait for one another are slower than one where
the machine has other work, at times a hundredfold, and hardly quicker where it has none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The outlines of some queries, a row each."""

    coarse: Matrix
    fine: Matrix

    def of(self, rows: Sequence[int]) -> Asked:
        """Those of some of the queries."""
        return Asked(self.coarse[rows], self.fine[rows])


class Outline:
    """The outline of the rows of one growing matrix, coarse and fine; `longest` is the length of the longest row."""

    def __init__(self, vectors: Matrix) -> None:
        """Learns the directions from some of these rows, and outlines all."""
        self.learnt_from = len(vectors)
        self.block = BLOCK
        self.longest = 0.0
        sample = vectors[:: max(1, len(vectors) // _SAMPLE)].astype(np.float64)
        _, directions = np.linalg.eigh(sample.T @ sample)
        self._directions = np.ascontiguousarray(directions[:, ::-1][:, :_FINE], np.float32)
        self._split = min(_COARSE, self._directions.shape[1])
        # Of each row the part in the directions of one stage, and last the length of what is left after it. The coarse
        # ones lie block by block, each number of its rows side by side, which a product of few queries goes fastest
        # through.
        self._coarse = np.zeros((0, self._split + 1, self.block), np.float32)
        self._fine = np.empty((0, self._directions.shape[1] - self._split + 1), np.float32)
        self._size = 0
        self.follow(vectors)

    def follow(self, vectors: Matrix) -> None:
        """Outlines the rows that came since."""
        if len(vectors) > len(self._fine):
            room = self._blocks(len(vectors) + len(vectors) // 8)
            self._coarse = _grown(self._coarse, room, self._blocks(self._size))
            self._fine = _grown(self._fine, room * self.block, self._size)
        while self._size < len(vectors):
            block, first = divmod(self._size, self.block)
            some = vectors[self._size : (block + 1) * self.block]
            coarse, fine = self._stages(some)
            self._coarse[block, :, first : first + len(some)] = coarse.T
            self._fine[self._size : self._size + len(some)] = fine
            self.longest = max(self.longest, float(np.linalg.norm(some, axis=1).max()))
            self._size += len(some)

    def keep(self, rows: npt.NDArray[np.intp]) -> None:
        """Drops all other rows; these are given in their order."""
        kept = np.zeros((self._blocks(len(rows)), *self._coarse.shape[1:]), np.float32)
        for block in range(len(kept)):
            some = rows[block * self.block : (block + 1) * self.block]
            kept[block, :, : len(some)] = self._coarse[some // self.block, :, some % self.block].T
        self._coarse = kept
        fine = np.empty((len(kept) * self.block, self._fine.shape[1]), np.float32)
        fine[: len(rows)] = self._fine[rows]
        self._fine = fine
        self._size = len(rows)

    def asked(self, queries: Matrix) -> Asked:
        """The outlines of queries, to bound their likeness by."""
        return Asked(*self._stages(queries))

    def bounds(self, asked: Asked, chosen: Iterable[int]) -> Matrix:
        """What the inner product of every query with every vector of some blocks is at most.

        Shape (queries, blocks, block); the last block's numbers behind the last row mean nothing.
        """
        queries = asked.coarse
        some = [self._coarse[block] for block in chosen]
        found = np.empty((len(queries), len(some), self.block), np.float32)
        step = max(1, _ALONE // (queries.shape[1] * self.block))
        for first in range(0, len(queries), step):
            part = _doubled(queries[first : first + step])
            made = found[first : first + step]
            room = np.empty((len(part), self.block), np.float32)
            for number, block in enumerate(some):
                np.dot(part, block, out=room)
                made[:, number] = room[: len(made)]
        return found

    def finer(self, asked: Asked, query: int, rows: npt.NDArray[np.intp], bounds: Matrix) -> Matrix:
        """The same, closer, for some rows and one query (its row), from their `bounds`."""
        rests = self._coarse[rows // self.block, -1, rows % self.block]
        return np.asarray(
            bounds - asked.coarse[query, -1] * rests + likeness(self._fine[rows], asked.fine[query : query + 1])[0]
        )

    def _stages(self, vectors: Matrix) -> tuple[Matrix, Matrix]:
        parts = vectors @ self._directions
        coarse, fine = parts[:, : self._split], parts[:, self._split :]
        whole = np.einsum("ij,ij->i", vectors, vectors)
        left = whole - np.einsum("ij,ij->i", coarse, coarse)
        least = left - np.einsum("ij,ij->i", fine, fine)
        return np.column_stack([coarse, _rest(left)]), np.column_stack([fine, _rest(least)])

    def _blocks(self, rows: int) -> int:
        return -(-rows // self.block)


def likeness(vectors: Matrix, queries: Matrix) -> Matrix:
    """Inner product of every query (rows) with every vector (columns), in single precision and in one thread."""
    asked = np.ascontiguousarray(_doubled(queries).T)
    found = np.empty((len(vectors), asked.shape[1]), np.float32)
    block = max(1, _ALONE // max(1, asked.size))
    for start in range(0, len(vectors), block):
        np.dot(vectors[start : start + block], asked, out=found[start : start + block])
    return found.T[: len(queries)]


def _doubled(queries: Matrix) -> Matrix:
    # A single one would be another routine of the library, one with threads.
    return np.repeat(queries, 2, axis=0) if len(queries) == 1 else queries


def _rest(squared: Matrix) -> Matrix:
    """Lengths of what the directions do not hold, rounded up."""
    return np.asarray(np.sqrt(np.maximum(squared, 0) + _ROUNDING), np.float32)


def _grown(rows: Matrix, room: int, filled: int) -> Matrix:
    grown = np.zeros((room, *rows.shape[1:]), np.float32)
    grown[:filled] = rows[:filled]
    return grown
