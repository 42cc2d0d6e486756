"""Records and touches on disk: two append-only LanceDB tables in one folder, one writer under a file lock.

The only file that imports lancedb and pyarrow (half a second and more, so not before a store is opened). A commit of
Lance is complete or absent, and each append here is one commit: a killed writer leaves a store that opens. LanceDB runs
threads of its own, so a process that uses a store is spawned, never forked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from datetime import timedelta
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout

from memory.errors import (
    EmbedderMismatch,
    InvalidRecord,
    LayeredMemoryError,
    MemoryLocked,
    ReadOnly,
    StoreDamaged,
    StoreError,
    StoreFull,
)
from memory.in_memory_store import check_dimension
from memory.ports import Embedder, StoreReport
from memory.record import Cause, Layer, MemoryRecord, State, Touch

if TYPE_CHECKING:
    import pyarrow as pa


def defer_package(name: str) -> None:
    """Let a package be imported without running its `__init__`; without effect where it is imported already or missing.

    Its modules are found and imported as ever. `importlib.util.LazyLoader` would run `__init__` as soon as one of them
    is imported.
    """
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader, package = spec.loader, module_from_spec(spec)

    def whole(attribute: str) -> Any:
        if package.__dict__.pop("__getattr__", None) is None:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}", name=attribute, obj=package)
        loader.exec_module(package)
        return getattr(package, attribute)

    package.__dict__["__getattr__"] = whole
    sys.modules.setdefault(name, package)


RECORDS, TOUCHES, LOCK = "records", "touches", "memory.lock"

COMPACT_FROM = 20
"""Number of small files, of both tables together, from which `optimize` is due: after a few trading days. Each comes
with a version and a record of its transaction, and is dropped when `optimize` is due again: a store has some five times
as many files at most."""

RETAINED = timedelta(seconds=1)
"""Age from which versions before the last are dropped. Readers take a fraction of that; one that is slower reads the
last version again."""

# What the system says when it cannot take more: no space, a file size limit, a quota.
_FULL = re.compile(r"os error (28|27|122)\b|no space left|file too large|quota exceeded", re.IGNORECASE)
_LAST_BYTES = b"LANC"


def load_library() -> ModuleType:
    """Import lancedb, which takes half a second or more: ahead of its use in a background thread."""
    # The client of its REST catalog, of no use here, would take longer than all the rest.
    defer_package("lance_namespace_urllib3_client")
    import lancedb

    return lancedb


def store_embedder(folder: Path) -> tuple[str, int]:
    """Id and dimension of the embedder that a store was made with. Raises StoreError where there is none."""
    if not table_exists(folder, RECORDS):
        raise StoreError(f"no memory at {folder}; the first run that stores memories creates it")
    try:
        metadata = load_library().connect(folder).open_table(RECORDS).schema.metadata
        return metadata[b"embedder"].decode(), int(metadata[b"dimension"])
    except Exception as error:
        raise _store_error(error, folder, "opened") from error


class LanceStore:
    """A store in a folder. Opened with `writing` it holds the writer's lock until `close`.

    Raises MemoryLocked (another writer), EmbedderMismatch, StoreDamaged, StoreFull, ReadOnly, StoreError.
    """

    def __init__(self, folder: Path, embedder: Embedder, *, writing: bool) -> None:
        self._folder = folder
        self._embedder = embedder
        self._lock: FileLock | None = None
        self._appended = 0
        self._small_files = 0
        self._known_records: set[str] = set()
        self._known_touches: dict[str, list[Touch]] = {}
        self._records_table: Any = None
        self._touches_table: Any = None
        if writing:
            self._acquire_lock()
        elif not table_exists(folder, RECORDS):
            raise StoreError(f"no memory at {folder}; the first run that stores memories creates it")
        try:
            self._open(writing)
        except BaseException:
            self.close()
            raise

    @property
    def writable(self) -> bool:
        """True while this process holds the writer's lock."""
        return self._lock is not None

    @property
    def version(self) -> int:
        """Sum of both tables' versions. A reader asks the disk; a writer is alone and counts."""
        if self.writable:
            return self._appended
        with self._guarded("looked at"):
            if self._touches_table is None:
                self._touches_table = self._table(TOUCHES)
            touches = 0 if self._touches_table is None else int(self._touches_table.version)
            return int(self._records_table.version) + touches

    @property
    def needs_compaction(self) -> bool:
        """True from COMPACT_FROM small files on."""
        return self._small_files >= COMPACT_FROM

    def records(self) -> list[MemoryRecord]:
        """All records, in the order of their sequence. Raises StoreDamaged where a file cannot be read."""
        with self._damage_named():
            return records_of(self._read(lambda: self._records_table.to_arrow().sort_by("sequence")))

    def record(self, record_id: str) -> MemoryRecord | None:
        """A record by its id, or None."""
        wanted = f"id = '{_quoted(record_id)}'"
        result = self._read(lambda: self._records_table.search().where(wanted).limit(1).to_arrow())
        with self._damage_named():
            return next(iter(records_of(result)), None)

    def touches(self, record_id: str | None = None) -> list[Touch]:
        """All touches, or those of one record, in the order of their sequence."""
        known = self._known_touches if self.writable else self._read_touches()
        if record_id is not None:
            return list(known.get(record_id, ()))
        return sorted((touch for line in known.values() for touch in line), key=lambda touch: touch.sequence)

    def append_records(self, records: Sequence[MemoryRecord]) -> None:
        """Write new records in one commit. Raises InvalidRecord for a vector of another size, StoreFull."""
        check_dimension(records, self._embedder.dimension)
        fresh = list({r.id: r for r in records if r.id not in self._known_records}.values())
        if self._append(self._records_table, record_rows, fresh):
            self._known_records.update(record.id for record in fresh)

    def append_touches(self, touches: Sequence[Touch]) -> None:
        """Write new touches in one commit. Raises StoreFull."""
        known = self._known_touches if self.writable else {}
        fresh: dict[str, Touch] = {}
        for touch in touches:
            if all(other.identity != touch.identity for other in known.get(touch.record_id, ())):
                fresh.setdefault(touch.id, touch)
        if self._append(self._touches_table, touch_rows, list(fresh.values())):
            for touch in fresh.values():
                known.setdefault(touch.record_id, []).append(touch)

    def optimize(self, keep: timedelta | None = None) -> StoreReport:
        """Compact both tables and drop versions older than `keep`, by default RETAINED, with their files.

        Raises StoreError where the compaction failed or changed nothing: the store is complete, but it will grow slow.
        """
        self._require_writer()
        before = len(self._files())
        with self._guarded("optimized"):
            for table in (self._records_table, self._touches_table):
                table.optimize(cleanup_older_than=RETAINED if keep is None else keep)
                fragments = int(table.stats()["fragment_stats"]["num_small_fragments"])
                if fragments > 1:
                    raise StoreError(f"memory at {self._folder}: compaction of {table.name} left {fragments} pieces")
        self._small_files = self._count_small_files()
        files = self._files()
        with self._guarded("counted"):
            rows = int(self._records_table.count_rows()), int(self._touches_table.count_rows())
        return StoreReport(*rows, before, len(files), sum(size for _, size in files))

    def close(self) -> None:
        """Release the writer's lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _acquire_lock(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._folder / LOCK)
            lock.acquire(timeout=0)
        except Timeout:
            raise MemoryLocked(
                f"memory at {self._folder}: another process is writing to it; wait until it is done, or stop it"
            ) from None
        except OSError as error:
            raise _store_error(error, self._folder, "opened") from error
        self._lock = lock
        # What a killed writer was in the middle of; nothing refers to it, and nobody but a writer makes such files.
        for left in self._folder.rglob(".tmp*"):
            left.unlink(missing_ok=True)

    def _open(self, writing: bool) -> None:
        library = load_library()
        dimension = self._embedder.dimension  # it may ask a service, whose errors are none of the store's
        with self._guarded("opened"):
            self._database = library.connect(self._folder, read_consistency_interval=timedelta(0))
            self._records_table = self._table(RECORDS)
            self._touches_table = self._table(TOUCHES)
            if writing and self._records_table is None:
                self._records_table = self._database.create_table(
                    RECORDS, schema=record_schema(self._embedder.id, dimension)
                )
            if writing and self._touches_table is None:
                self._touches_table = self._database.create_table(TOUCHES, schema=touch_schema())
            self._check_embedder()
            self._small_files = self._count_small_files()
            if writing:
                ids = self._records_table.search().select(["id"]).limit(None).to_arrow()["id"]
                self._known_records.update(ids.to_pylist())
                self._known_touches = self._read_touches()

    def _table(self, name: str) -> Any:
        """A table, or None where it was never made. One that was made and cannot be opened is damaged."""
        return self._database.open_table(name) if table_exists(self._folder, name) else None

    def _check_embedder(self) -> None:
        metadata = self._records_table.schema.metadata or {}
        if b"embedder" not in metadata:
            raise StoreDamaged(f"memory at {self._folder} does not record its embedder; nothing was changed")
        stored, dimension = (metadata.get(key, b"").decode() for key in (b"embedder", b"dimension"))
        if (stored, dimension) != (self._embedder.id, str(self._embedder.dimension)):
            raise EmbedderMismatch(
                f"memory at {self._folder} was made with embedder {stored or 'unknown'} ({dimension or '?'} numbers), "
                f"not {self._embedder.id} ({self._embedder.dimension}); configure that one, or move the store away"
            )

    def _append(self, table: Any, rows: Any, values: Sequence[Any]) -> bool:
        """Commit values; False where there are none."""
        self._require_writer()
        if not values:
            return False
        with self._guarded("written"):
            table.add(rows(values, table.schema))
        self._appended += 1
        self._small_files += 1
        return True

    def _require_writer(self) -> None:
        if not self.writable:
            raise ReadOnly(f"memory at {self._folder} was opened read-only")

    def _read_touches(self) -> dict[str, list[Touch]]:
        lines: dict[str, list[Touch]] = {}
        if self._touches_table is None:
            return lines
        for touch in touches_of(self._read(lambda: self._touches_table.to_arrow().sort_by("sequence"))):
            lines.setdefault(touch.record_id, []).append(touch)
        return lines

    def _read(self, take: Callable[[], Any]) -> Any:
        """Rows of a table. A reader whose version the writer has dropped meanwhile reads the last one."""
        if not self.writable:
            with suppress(Exception):  # Lance has no one type for a file that is gone; a damaged one fails again below
                return take()
            with self._guarded("opened"):
                self._records_table, self._touches_table = self._table(RECORDS), self._table(TOUCHES)
        with self._guarded("read"):
            return take()

    def _count_small_files(self) -> int:
        tables = [table for table in (self._records_table, self._touches_table) if table is not None]
        return sum(int(table.stats()["fragment_stats"]["num_small_fragments"]) for table in tables)

    def _files(self) -> list[tuple[Path, int]]:
        return [(path, path.stat().st_size) for path in self._folder.rglob("*") if path.is_file()]

    @contextmanager
    def _guarded(self, doing: str) -> Iterator[None]:
        """Translate LanceDB's errors, of many types, to StoreError; a panic of its Rust code is no Exception."""
        try:
            yield
        except LayeredMemoryError:
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise _store_error(error, self._folder, doing) from error

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        """A row that could never have been written is damage."""
        try:
            yield
        except (InvalidRecord, ValueError, TypeError) as error:
            raise StoreDamaged(f"memory at {self._folder} is damaged ({error}); nothing was changed") from error


def table_exists(folder: Path, name: str) -> bool:
    """True where a table (RECORDS, TOUCHES) was ever committed.

    A writer killed while making it leaves a folder without a committed file. Data without a version is no such folder,
    but a table that lost its versions.
    """
    parts = (folder / f"{name}.lance" / part for part in ("_versions", "data"))
    return any(not path.name.startswith(".tmp") for part in parts for path in part.glob("*.*"))


def _store_error(error: BaseException, folder: Path, doing: str) -> StoreError:
    message = " ".join(str(error).split())
    if _FULL.search(message):
        return StoreFull(f"memory at {folder}: no room to write; free some and run again, what was there is whole")
    if isinstance(error, PermissionError):
        return StoreError(f"memory at {folder} cannot be {doing}: permission denied")
    reason = message.partition(", /")[0].removeprefix("lance error: ")[:160]  # what follows is a path of Lance's source
    cut = ", ".join(str(path.relative_to(folder)) for path in _truncated_files(folder))
    if not cut and doing not in ("opened", "read", "looked at"):
        return StoreError(f"memory at {folder} cannot be {doing}: {reason}; what is in it is whole")
    return StoreDamaged(
        f"memory at {folder} cannot be {doing} ({cut or 'which file is not known'}): {reason}; "
        "nothing was changed, put the file back from a copy"
    )


def _truncated_files(folder: Path) -> list[Path]:
    """Data and version files without the bytes that every file of Lance ends with."""
    result = []
    for path in sorted(folder.glob("*.lance/*/*")):
        if path.suffix in (".lance", ".manifest") and not path.name.startswith(".tmp"):
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - len(_LAST_BYTES)))
                if file.read() != _LAST_BYTES:
                    result.append(path)
    return result


def _quoted(text: str) -> str:
    return text.replace("'", "''")


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
