"""An outline never says less than the likeness is, whatever its directions were learnt from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embedders import HashEmbedder
from memory.ports import Matrix
from memory.projection import Projection
from tests.bench.bench_memory import texts


def vectors(rows: int, dimension: int, rank: int, seed: int) -> Matrix:
    """Rows of length 1 (some of 0) that lie nearly in `rank` directions."""
    chance = np.random.default_rng(seed)
    made = chance.normal(size=(rows, rank)) @ chance.normal(size=(rank, dimension))
    made += chance.choice([0, 1e-4, 0.3]) * chance.normal(size=made.shape)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    made[chance.random(rows) < 0.05] = 0
    return made.astype(np.float32)


def bounds(projection: Projection, queries: Matrix, rows: int) -> Matrix:
    """Those of all rows."""
    found = projection.bounds(projection.project(queries), range(-(-rows // projection.block)))
    return found.reshape(len(queries), -1)[:, :rows]


@given(
    rows=st.integers(1, 300),
    dimension=st.sampled_from([3, 40, 130]),
    rank=st.integers(1, 60),
    later=st.integers(0, 300),
    seed=st.integers(0, 10**6),
)
def test_it_bounds_every_likeness(rows: int, dimension: int, rank: int, later: int, seed: int) -> None:
    known, strange = vectors(rows, dimension, rank, seed), vectors(later, dimension, 3, seed + 1)
    queries = np.concatenate([known[:2], vectors(3, dimension, rank, seed + 2)])
    projection = Projection(known)

    whole = np.concatenate([known, strange])
    projection.extend(whole)
    exact = queries.astype(float) @ whole.astype(float).T
    assert (bounds(projection, queries, len(whole)) >= exact - 1e-5).all()
    assert np.linalg.norm(whole, axis=1).max() <= projection.longest + 1e-6

    every = np.arange(len(whole))
    asked = projection.project(queries)
    for query, (most, similarity) in enumerate(zip(bounds(projection, queries, len(whole)), exact, strict=True)):
        assert (projection.tighten(asked, query, every, most) >= similarity - 1e-5).all()

    kept = np.arange(0, len(whole), 3)
    projection.retain(kept)
    assert (bounds(projection, queries, len(kept)) >= exact[:, kept] - 1e-5).all()
    projection.extend(np.concatenate([whole[kept], strange]))
    exact = np.concatenate([exact[:, kept], queries.astype(float) @ strange.astype(float).T], axis=1)
    assert (bounds(projection, queries, exact.shape[1]) >= exact - 1e-5).all()


@pytest.mark.parametrize("rows", [5_000, 40_000])
def test_of_texts_that_share_words_it_leaves_few(rows: int) -> None:
    embedder = HashEmbedder()
    known = embedder.embed(list(texts(rows)))
    query = embedder.embed(list(texts(1, seed=2)))

    projection, exact = Projection(known), known @ query[0]
    coarse = bounds(projection, query, rows)[0]
    least = np.sort(exact)[-5] - 1e-5
    left = np.flatnonzero(coarse >= least)
    fine = projection.tighten(projection.project(query), 0, left, coarse[left])

    assert (fine >= exact[left] - 1e-5).all() and (fine <= coarse[left] + 1e-2).all()
    assert 5 <= (fine >= least).sum() < rows / 100 < len(left) < rows / 4
