"""Texts that say what an earlier one said."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from memory.ports import Embedder, Matrix
from memory.record import Item, MemoryRecord, Vector

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_FIGURE = re.compile(r"[+-]?\d+(?:[.,]\d+)*")
_NEAREST = 5
"""Earlier records whose texts are embedded where their vectors are those of query texts."""


def restated(
    item: Item, vector: Vector, earlier: Sequence[MemoryRecord], embedder: Embedder, least: float
) -> MemoryRecord | None:
    """The earlier record that says what a new item says; None where there is none.

    The same text does, and a text with a cosine of `least` or more whose figures are the same: "2 of 5 earned" is near
    to "3 of 5 earned" and says something else. Dates do not count.
    """
    same = next((record for record in earlier if record.text == item.text), None)
    if same is not None:
        return same
    wanted = _figures(item.text)
    near = _from(least, earlier, np.array([record.vector for record in earlier]), vector)
    near = [record for record in near if _figures(record.text) == wanted]
    if near and (item.query_text.strip() or any(record.query_text.strip() for record in near)):
        # Vectors of query texts tell what is searched for, not what is said.
        near = near[:_NEAREST]
        said = embedder.embed([item.text, *(record.text for record in near)])
        near = _from(least, near, said[1:], said[0])
    return near[0] if near else None


def _from(least: float, records: Sequence[MemoryRecord], vectors: Matrix, vector: Vector) -> list[MemoryRecord]:
    """The records whose vectors have a cosine of `least` or more, the nearest first, then the oldest."""
    if not records:
        return []
    # A row's own sum, whose last bits do not depend on how many rows there are.
    cosines = (vectors * vector.astype(np.float64)).sum(axis=1).tolist()
    found = [(-cosine, record.sequence, record) for cosine, record in zip(cosines, records, strict=True)]
    return [record for cosine, _, record in sorted(found, key=lambda one: one[:2]) if -cosine >= least]


def _figures(text: str) -> list[str]:
    return sorted(_FIGURE.findall(_DATE.sub("", text)))
