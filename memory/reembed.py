"""Another embedder for the same records."""

from __future__ import annotations

from dataclasses import replace

from memory.errors import StoreError
from memory.ports import Embedder, Store

_BATCH = 1_000
"""Texts embedded at once."""


def reembed(source: Store, target: Store, embedder: Embedder) -> int:
    """Embed every text anew: copy a store into an empty one made for `embedder`; return the number of records.

    Ids do not depend on vectors, so every lifeline stays as it is. Raises StoreError where the target is not empty.
    """
    if target.records():
        raise StoreError("re-embedding needs an empty place: the target has records already")
    records = source.records()
    for start in range(0, len(records), _BATCH):
        batch = records[start : start + _BATCH]
        vectors = embedder.embed([record.query_text.strip() or record.text for record in batch])
        target.append_records([replace(r, vector=row) for r, row in zip(batch, vectors, strict=True)])
    target.append_touches(source.touches())
    return len(records)
