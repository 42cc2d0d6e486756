"""Upper bounds of vectors' similarity to any query, from a few numbers each.

A vector is its projection onto some directions plus an orthogonal rest. The inner product of two vectors is that of
their projections plus that of their rests, and the latter is at most the product of the rests' lengths. So vectors that
cannot be among the first are ruled out by a fraction of the numbers, and with certainty: the directions, fitted to the
vectors, decide how many are ruled out, never the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from memory.ports import Matrix

T = TypeVar("T", bound=np.generic)

PROJECT_FROM = 2_048
"""Number of vectors from which projecting them pays."""

BLOCK = 2_048
"""Rows that are bounded together: their data stays in a core's cache."""

_COARSE, _FINE = 31, 95
"""Directions used for all vectors, and for those that the coarse bound has left."""

_SAMPLE = 4_096

# Largest error of single precision in a squared length: lengths of rests are rounded up by it.
_ROUNDING = 1e-5

_ALONE = 2**18
"""Multiplications up to which a product is made in one thread.

Two threads that wait for one another are slower than one where the machine has other work, at times a hundredfold, and
hardly quicker where it has none.
"""


@dataclass(frozen=True, slots=True)
class ProjectedQueries:
    """Projections of some queries, a row each."""

    coarse: Matrix
    fine: Matrix

    def of(self, rows: Sequence[int]) -> ProjectedQueries:
        """The projections of some of the queries."""
        return ProjectedQueries(self.coarse[rows], self.fine[rows])


class Projection:
    """Projections of the rows of one growing matrix, coarse and fine; `longest` is the length of the longest row."""

    def __init__(self, vectors: Matrix) -> None:
        """Fit the directions to a sample of the rows, and project all."""
        self.fitted_rows = len(vectors)
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
        self.extend(vectors)

    def extend(self, vectors: Matrix) -> None:
        """Project the rows that were added since."""
        if len(vectors) > len(self._fine):
            room = self._blocks(len(vectors) + len(vectors) // 8)
            self._coarse = grown(self._coarse, room, self._blocks(self._size))
            self._fine = grown(self._fine, room * self.block, self._size)
        while self._size < len(vectors):
            block, first = divmod(self._size, self.block)
            some = vectors[self._size : (block + 1) * self.block]
            coarse, fine = self._stages(some)
            self._coarse[block, :, first : first + len(some)] = coarse.T
            self._fine[self._size : self._size + len(some)] = fine
            self.longest = max(self.longest, float(np.linalg.norm(some, axis=1).max()))
            self._size += len(some)

    def retain(self, rows: npt.NDArray[np.intp]) -> None:
        """Drop all other rows; `rows` are in their order."""
        retained = np.zeros((self._blocks(len(rows)), *self._coarse.shape[1:]), np.float32)
        for block in range(len(retained)):
            some = rows[block * self.block : (block + 1) * self.block]
            retained[block, :, : len(some)] = self._coarse[some // self.block, :, some % self.block].T
        self._coarse = retained
        fine = np.empty((len(retained) * self.block, self._fine.shape[1]), np.float32)
        fine[: len(rows)] = self._fine[rows]
        self._fine = fine
        self._size = len(rows)

    def project(self, queries: Matrix) -> ProjectedQueries:
        """Project queries, to bound their similarity."""
        return ProjectedQueries(*self._stages(queries))

    def bounds(self, projected: ProjectedQueries, chosen: Iterable[int]) -> Matrix:
        """Upper bounds of the inner product of every query with every vector of some blocks.

        Shape (queries, blocks, block); numbers behind the last row have no meaning.
        """
        queries = projected.coarse
        some = [self._coarse[block] for block in chosen]
        result = np.empty((len(queries), len(some), self.block), np.float32)
        step = max(1, _ALONE // (queries.shape[1] * self.block))
        for first in range(0, len(queries), step):
            part = _doubled(queries[first : first + step])
            made = result[first : first + step]
            room = np.empty((len(part), self.block), np.float32)
            for number, block in enumerate(some):
                np.dot(part, block, out=room)
                made[:, number] = room[: len(made)]
        return result

    def tighten(self, projected: ProjectedQueries, query: int, rows: npt.NDArray[np.intp], bounds: Matrix) -> Matrix:
        """Closer bounds for some rows and one query (its row), from their `bounds`."""
        rests = self._coarse[rows // self.block, -1, rows % self.block]
        return np.asarray(
            bounds
            - projected.coarse[query, -1] * rests
            + similarity(self._fine[rows], projected.fine[query : query + 1])[0]
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


def similarity(vectors: Matrix, queries: Matrix) -> Matrix:
    """Inner products of every query (rows) with every vector (columns), in single precision and in one thread."""
    projected = np.ascontiguousarray(_doubled(queries).T)
    result = np.empty((len(vectors), projected.shape[1]), np.float32)
    block = max(1, _ALONE // max(1, projected.size))
    for start in range(0, len(vectors), block):
        np.dot(vectors[start : start + block], projected, out=result[start : start + block])
    return result.T[: len(queries)]


def _doubled(queries: Matrix) -> Matrix:
    # A single one would be another routine of the library, one with threads.
    return np.repeat(queries, 2, axis=0) if len(queries) == 1 else queries


def _rest(squared: Matrix) -> Matrix:
    """Lengths of the rests, rounded up."""
    return np.asarray(np.sqrt(np.maximum(squared, 0) + _ROUNDING), np.float32)


def grown(rows: npt.NDArray[T], room: int, filled: int) -> npt.NDArray[T]:
    """An array with room for more rows, with the filled ones of another."""
    result = np.zeros((room, *rows.shape[1:]), rows.dtype)
    result[:filled] = rows[:filled]
    return result
