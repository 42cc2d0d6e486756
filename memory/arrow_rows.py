"""Records and touches as rows of Arrow tables.

LanceDB reads and writes Arrow; pyarrow is imported here alone, when a store is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from memory.record import Cause, Layer, MemoryRecord, State, Touch

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = ("id", "owner", "symbol", "kind", "text", "query_text", "source", "birth_layer")


def record_schema(embedder: str, dimension: int) -> pa.Schema:
    """Columns of the table of records; the metadata names the embedder of its vectors."""
    import pyarrow as pa

    fields = [pa.field(name, pa.string()) for name in _TEXTS]
    fields += [
        pa.field("born_step", pa.float64()),
        pa.field("available_at", pa.float64()),
        pa.field("hindsight", pa.bool_()),
        pa.field("importance", pa.float64()),
        pa.field("rests_on", pa.list_(pa.string())),
        pa.field("labels", pa.list_(pa.string())),
        pa.field("sequence", pa.int64()),
        pa.field("vector", pa.list_(pa.float32(), dimension)),
    ]
    return pa.schema(fields, metadata={"embedder": embedder, "dimension": str(dimension)})


def record_rows(records: Sequence[MemoryRecord], schema: pa.Schema) -> pa.Table:
    """Convert records to rows of a schema."""
    import pyarrow as pa

    vectors = np.stack([record.vector for record in records]).astype(np.float32, copy=False)
    columns: dict[str, Any] = {
        name: [getattr(record, name) for record in records] for name in schema.names if name != "vector"
    }
    columns["birth_layer"] = [record.birth_layer.value for record in records]
    columns["rests_on"] = [list(record.rests_on) for record in records]
    columns["labels"] = [list(record.labels) for record in records]
    columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return pa.table(columns, schema=schema)


def records_of(table: pa.Table) -> list[MemoryRecord]:
    """Convert rows to records; their vectors are rows of one matrix."""
    if not table.num_rows:
        return []
    vectors = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    rows = vectors.reshape(table.num_rows, -1)
    names = [field.name for field in fields(MemoryRecord)]
    columns: dict[str, Any] = {name: table[name].to_pylist() for name in names if name != "vector"}
    columns["birth_layer"] = [Layer(layer) for layer in columns["birth_layer"]]
    columns["rests_on"] = [tuple(ids) for ids in columns["rests_on"]]
    columns["labels"] = [tuple(labels) for labels in columns["labels"]]
    columns["vector"] = rows
    return [
        MemoryRecord(**dict(zip(names, values, strict=True)))
        for values in zip(*(columns[name] for name in names), strict=True)
    ]


def touch_schema() -> pa.Schema:
    """Columns of the table of touches."""
    import pyarrow as pa

    texts = [pa.field(name, pa.string()) for name in ("id", "record_id", "cause", "key", "layer")]
    floats = ("step", "importance", "importance_step", "recency_step")
    numbers = [pa.field(name, pa.float64()) for name in floats]
    return pa.schema([*texts, *numbers, pa.field("access_count", pa.int64()), pa.field("sequence", pa.int64())])


def touch_rows(touches: Sequence[Touch], schema: pa.Schema) -> pa.Table:
    """Convert touches to rows of a schema."""
    import pyarrow as pa

    own = ("id", "record_id", "cause", "key", "sequence")
    columns = {
        name: [getattr(touch if name in own else touch.state, name) for touch in touches] for name in schema.names
    }
    return pa.table(columns, schema=schema)


def touches_of(table: pa.Table) -> Iterator[Touch]:
    """Convert rows to touches."""
    for row in table.to_pylist():
        row["layer"] = Layer(row["layer"]) if row["layer"] else None
        state = State(**{field.name: row[field.name] for field in fields(State)})
        yield Touch(row["record_id"], Cause(row["cause"]), state, row["key"], row["sequence"])
