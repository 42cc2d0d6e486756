"""In-memory store: for backtests, which keep no memory on disk, and for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memory.errors import InvalidRecord
from memory.ports import StoreReport
from memory.record import Cause, MemoryRecord, Touch


class InMemoryStore:
    """Records and touches of this process; always writable."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._records: dict[str, MemoryRecord] = {}
        self._touches: dict[tuple[str, float, Cause, str], Touch] = {}
        self._of: dict[str, list[Touch]] = {}

    @property
    def writable(self) -> bool:
        """True."""
        return True

    @property
    def version(self) -> int:
        """Number of rows."""
        return len(self._records) + len(self._touches)

    @property
    def needs_compaction(self) -> bool:
        """False."""
        return False

    def records(self) -> list[MemoryRecord]:
        """All records, oldest first."""
        return list(self._records.values())

    def record(self, record_id: str) -> MemoryRecord | None:
        """A record by its id, or None."""
        return self._records.get(record_id)

    def touches(self, record_id: str | None = None) -> list[Touch]:
        """All touches, or those of one record, oldest first."""
        return list(self._touches.values()) if record_id is None else list(self._of.get(record_id, ()))

    def append_records(self, records: Sequence[MemoryRecord]) -> None:
        """Add new records. Raises InvalidRecord for a vector of another size."""
        check_dimension(records, self._dimension)
        for record in records:
            self._records.setdefault(record.id, record)

    def append_touches(self, touches: Sequence[Touch]) -> None:
        """Add new touches."""
        for touch in touches:
            identity = touch.identity
            if identity not in self._touches:
                self._touches[identity] = touch
                self._of.setdefault(touch.record_id, []).append(touch)

    def optimize(self) -> StoreReport:
        """Count the rows; nothing to compact."""
        size = sum(int(np.asarray(record.vector).nbytes) + len(record.text) for record in self._records.values())
        return StoreReport(len(self._records), len(self._touches), 0, 0, size)

    def close(self) -> None:
        """Do nothing."""


def check_dimension(records: Sequence[MemoryRecord], dimension: int) -> None:
    """Raise InvalidRecord for a vector of another length than the store's."""
    for record in records:
        if len(record.vector) != dimension:
            raise InvalidRecord(
                f"{record.kind} of {record.symbol}: its vector has {len(record.vector)} numbers, the store's have "
                f"{dimension}; use the embedder that the store was made with"
            )
