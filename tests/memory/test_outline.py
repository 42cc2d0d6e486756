"""An outline never says less than the likeness is, whatever its directions were learnt from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.hash_embedder import HashEmbedder
from memory.outline import Outline
from memory.ports import Matrix
from tests.bench.bench_memory import texts


def vectors(rows: int, dimension: int, rank: int, seed: int) -> Matrix:
    """Rows of length 1 (some of 0) that lie nearly in `rank` directions."""
    chance = np.random.default_rng(seed)
    made = chance.normal(size=(rows, rank)) @ chance.normal(size=(rank, dimension))
    made += chance.choice([0, 1e-4, 0.3]) * chance.normal(size=made.shape)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    made[chance.random(rows) < 0.05] = 0
    return made.astype(np.float32)


def bounds(outline: Outline, queries: Matrix, rows: int) -> Matrix:
    """Those of all rows."""
    found = outline.bounds(outline.asked(queries), range(-(-rows // outline.block)))
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
    outline = Outline(known)

    whole = np.concatenate([known, strange])
    outline.follow(whole)
    exact = queries.astype(float) @ whole.astype(float).T
    assert (bounds(outline, queries, len(whole)) >= exact - 1e-5).all()
    assert np.linalg.norm(whole, axis=1).max() <= outline.longest + 1e-6

    every = np.arange(len(whole))
    asked = outline.asked(queries)
    for query, (most, likeness) in enumerate(zip(bounds(outline, queries, len(whole)), exact, strict=True)):
        assert (outline.finer(asked, query, every, most) >= likeness - 1e-5).all()

    kept = np.arange(0, len(whole), 3)
    outline.keep(kept)
    assert (bounds(outline, queries, len(kept)) >= exact[:, kept] - 1e-5).all()
    outline.follow(np.concatenate([whole[kept], strange]))
    exact = np.concatenate([exact[:, kept], queries.astype(float) @ strange.astype(float).T], axis=1)
    assert (bounds(outline, queries, exact.shape[1]) >= exact - 1e-5).all()


@pytest.mark.parametrize("rows", [5_000, 40_000])
def test_of_texts_that_share_words_it_leaves_few(rows: int) -> None:
    embedder = HashEmbedder()
    known = embedder.embed(list(texts(rows)))
    query = embedder.embed(list(texts(1, seed=2)))

    outline, exact = Outline(known), known @ query[0]
    coarse = bounds(outline, query, rows)[0]
    least = np.sort(exact)[-5] - 1e-5
    left = np.flatnonzero(coarse >= least)
    fine = outline.finer(outline.asked(query), 0, left, coarse[left])

    assert (fine >= exact[left] - 1e-5).all() and (fine <= coarse[left] + 1e-2).all()
    assert 5 <= (fine >= least).sum() < rows / 100 < len(left) < rows / 4
