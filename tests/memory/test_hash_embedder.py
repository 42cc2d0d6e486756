"""The embedder without dependencies: deterministic, of length 1, alike for like words."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.embedders import HashEmbedder

EMBEDDER = HashEmbedder()


@given(st.lists(st.text(), max_size=8))
def test_rows_are_finite_and_of_length_1_and_do_not_depend_on_their_neighbours(texts: list[str]) -> None:
    rows = EMBEDDER.embed(texts)

    assert rows.shape == (len(texts), EMBEDDER.dimension) and rows.dtype == np.float32
    assert np.linalg.norm(rows.astype(float), axis=1) == pytest.approx([1] * len(texts), abs=1e-6)
    for text, row in zip(texts, rows, strict=True):
        assert np.array_equal(EMBEDDER.embed([text])[0], row)


def test_the_vectors_are_those_of_its_id() -> None:
    """A change of even one number would mix two embedders in one store: it needs a new id then."""
    rows = EMBEDDER.embed(["Apple raises prices", "Gewinne über Erwartung", "\U0001f4c8 to the moon", "10-Q"])

    signs = np.sign(rows).astype(np.int8).tobytes()
    assert EMBEDDER.id == "hash-384"
    assert hashlib.sha256(signs).hexdigest()[:16] == "f3f567daa2b573bc"
    assert np.count_nonzero(rows, axis=1).tolist() == [46, 61, 35, 9]


def test_case_and_white_space_do_not_count() -> None:
    rows = EMBEDDER.embed(["Apple  raises\nprices", " apple RAISES prices "])

    assert np.array_equal(rows[0], rows[1])


def test_a_follow_up_is_found_by_its_words() -> None:
    known = [
        "Boeing delays first flight of the 777X until next year",
        "Honeywell agrees to buy a maker of flight control software",
        "Microsoft raises its quarterly dividend by ten percent",
        "Johnson & Johnson pauses a vaccine trial",
    ]
    follow_ups = [
        "Boeing: the 777X first flight is delayed again, into late next year",
        "Honeywell's purchase of the flight control software maker closes",
        "Microsoft pays its raised quarterly dividend today",
        "Johnson & Johnson resumes its vaccine trial",
    ]

    similarity = EMBEDDER.embed(follow_ups) @ EMBEDDER.embed(known).T

    assert similarity.argmax(axis=1).tolist() == [0, 1, 2, 3]
    unlike = similarity[~np.eye(4, dtype=bool)]
    assert similarity.diagonal().min() > unlike.max() + 0.1
