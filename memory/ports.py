"""Ports of the memory: a store of records and touches, and an embedder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from memory.record import MemoryRecord, Touch

Matrix = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Converts texts into vectors whose inner product is their similarity."""

    @property
    def id(self) -> str:
        """Name and version of the embedder, e.g. `hash-384`; a store belongs to one."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row per text, float32, of length 1. Raises EmbedderUnavailable."""


@dataclass(frozen=True, slots=True)
class StoreReport:
    """Result of `optimize`. Files and bytes are those of the store's folder."""

    records: int
    touches: int
    files_before: int
    files_after: int
    bytes_after: int


class Store(Protocol):
    """Two append-only logs. An append is complete or absent, also after a crash.

    A store has many readers and one writer. All methods raise StoreError or one of its kinds.
    """

    @property
    def writable(self) -> bool:
        """True for the one writer."""

    @property
    def version(self) -> int:
        """A number that grows with every change, also of another process."""

    @property
    def needs_compaction(self) -> bool:
        """True where so many small files exist that `optimize` is due."""

    def records(self) -> list[MemoryRecord]:
        """All records, in the order of their sequence; their vectors are rows of one matrix."""

    def record(self, record_id: str) -> MemoryRecord | None:
        """A record by its id, or None."""

    def touches(self, record_id: str | None = None) -> list[Touch]:
        """All touches, or those of one record, in the order of their sequence."""

    def append_records(self, records: Sequence[MemoryRecord]) -> None:
        """Write records. Existing ids are skipped."""

    def append_touches(self, touches: Sequence[Touch]) -> None:
        """Write touches. Existing ones are skipped."""

    def optimize(self) -> StoreReport:
        """Merge small files and remove unused versions. Loses nothing."""

    def close(self) -> None:
        """Release the writer's lock."""
