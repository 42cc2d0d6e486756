"""An outline of many vectors: a few numbers of each that bound its likeness to any query from above.

A vector is its part in some directions and a rest at right angles to them. The inner product of two vectors is that of
their parts plus that of their rests, and the latter is at most the product of the lengths of the rests. So what cannot
be among the first is known from a fraction of the numbers, and known for certain: the directions, learnt from the
vectors themselves, decide how much is left out, never what is found.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memory.ports import Matrix

OUTLINE_FROM = 4_096
"""Vectors from which an outline is worth its making."""

_COARSE, _FINE = 31, 95
"""Directions that are looked at for all vectors, and for those that the coarse bound has left."""

_SAMPLE = 4_096

# What single precision can be off by in a squared length: lengths of rests are rounded up by it.
_ROUNDING = 1e-5

_BLOCK = 8_192

_ALONE = 2**18
"""Multiplications up to which a product is made in one thread: two that wait for one another are slower than one where
the machine has other work, at times a hundredfold, and hardly quicker where it has none."""


class Outline:
    """The outline of the rows of one growing matrix, coarse and fine."""

    def __init__(self, vectors: Matrix) -> None:
        """Learns the directions from some of these rows, and outlines all."""
        self.learnt_from = len(vectors)
        sample = vectors[:: max(1, len(vectors) // _SAMPLE)].astype(np.float64)
        _, directions = np.linalg.eigh(sample.T @ sample)
        self._directions = np.ascontiguousarray(directions[:, ::-1][:, :_FINE], np.float32)
        # Columns: the part in the directions of one stage, and last the length of what is left after it.
        coarse = min(_COARSE, self._directions.shape[1])
        self._split = coarse
        self._coarse = np.empty((0, coarse + 1), np.float32)
        self._fine = np.empty((0, self._directions.shape[1] - coarse + 1), np.float32)
        self._size = 0
        self.follow(vectors)

    def follow(self, vectors: Matrix) -> None:
        """Outlines the rows that came since."""
        if len(vectors) > len(self._coarse):
            room = len(vectors) + len(vectors) // 8
            self._coarse = _grown(self._coarse, room, self._size)
            self._fine = _grown(self._fine, room, self._size)
        for start in range(self._size, len(vectors), _BLOCK):
            coarse, fine = self._stages(vectors[start : start + _BLOCK])
            self._coarse[start : start + len(coarse)] = coarse
            self._fine[start : start + len(fine)] = fine
        self._size = len(vectors)

    def keep(self, rows: npt.NDArray[np.intp]) -> None:
        """Drops all other rows."""
        self._coarse, self._fine = self._coarse[rows], self._fine[rows]
        self._size = len(rows)

    def bounds(self, queries: Matrix) -> Matrix:
        """What the inner product of every query (rows) with every vector (columns) is at most."""
        asked, _ = self._stages(queries)
        return likeness(self._coarse[: self._size], asked)

    def finer(self, query: Matrix, rows: npt.NDArray[np.intp], bounds: Matrix) -> Matrix:
        """The same, closer, for some rows and one query (a matrix of one row), from their `bounds`."""
        coarse, fine = self._stages(query)
        return np.asarray(bounds - coarse[0, -1] * self._coarse[rows, -1] + likeness(self._fine[rows], fine)[0])

    def _stages(self, vectors: Matrix) -> tuple[Matrix, Matrix]:
        parts = vectors @ self._directions
        coarse, fine = parts[:, : self._split], parts[:, self._split :]
        whole = np.einsum("ij,ij->i", vectors, vectors)
        left = whole - np.einsum("ij,ij->i", coarse, coarse)
        least = left - np.einsum("ij,ij->i", fine, fine)
        return np.column_stack([coarse, _rest(left)]), np.column_stack([fine, _rest(least)])


def likeness(vectors: Matrix, queries: Matrix) -> Matrix:
    """Inner product of every query (rows) with every vector (columns), in single precision and in one thread."""
    count = len(queries)
    # A single column would be another routine of the library, one with threads.
    asked = np.ascontiguousarray(np.repeat(queries, 2, axis=0).T if count == 1 else queries.T)
    found = np.empty((len(vectors), asked.shape[1]), np.float32)
    block = max(1, _ALONE // max(1, asked.size))
    for start in range(0, len(vectors), block):
        np.dot(vectors[start : start + block], asked, out=found[start : start + block])
    return found.T[:count]


def _rest(squared: Matrix) -> Matrix:
    """Lengths of what the directions do not hold, rounded up."""
    return np.asarray(np.sqrt(np.maximum(squared, 0) + _ROUNDING), np.float32)


def _grown(rows: Matrix, room: int, filled: int) -> Matrix:
    grown = np.empty((room, rows.shape[1]), np.float32)
    grown[:filled] = rows[:filled]
    return grown
