"""The memories that were recalled for an opinion as one JSON object of lists, a list per column: names and alike values
stand together, and are said once."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from engine.domain.recollection import Recollection
from engine.journal.rows import Row, row_of, stored


def recalled_columns(memories: Iterable[Recollection], cited: Collection[str]) -> dict[str, list[Any]]:
    """The columns of some memories, at least one; `cited` has the ids of those that the opinion rests on."""
    rows = [row_of(memory, "kind", "session", "text", "owner") | {"cited": memory.id in cited} for memory in memories]
    return {name: [stored(row[name]) for row in rows] for name in rows[0]}


def recalled_rows(text: str) -> list[Row]:
    """A row per memory, in the order in which they were recalled. Up to version 13 the text is a list of them."""
    found = json.loads(text)
    if isinstance(found, list):
        return found
    return [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]
