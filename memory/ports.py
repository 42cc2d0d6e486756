"""What the memory needs from outside: a place to keep records and touches, and something that turns text to vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from memory.record import MemoryRecord, Touch

Matrix = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors whose inner product is their likeness."""

    @property
    def id(self) -> str:
        """Name and version of what makes the vectors, e.g. `hash-384`; a store belongs to one."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row per text, float32, of length 1. Raises EmbedderUnavailable."""


@dataclass(frozen=True, slots=True)
class StoreReport:
    """What `optimize` left behind."""

    records: int
    touches: int
    files_before: int
    files_after: int
    bytes_after: int


class Store(Protocol):
    """Two append-only logs. What an `append` is given is there as a whole or not at all, also after a crash.

    A store may be read by many and is written by one. All methods raise StoreError or one of its kinds.
    """

    @property
    def writable(self) -> bool:
        """Whether this is the one writer."""

    @property
    def version(self) -> int:
        """Grows with every change, also with those of another process."""

    @property
    def untidy(self) -> bool:
        """Whether so many small files have gathered that `optimize` is due."""

    def records(self) -> list[MemoryRecord]:
        """All records, in the order of their sequence; their vectors are rows of one matrix."""

    def record(self, record_id: str) -> MemoryRecord | None:
        """One record, if it is there."""

    def touches(self, record_id: str | None = None) -> list[Touch]:
        """All touches, or those of one record, in the order of their sequence."""

    def append_records(self, records: Sequence[MemoryRecord]) -> None:
        """Writes records. Ids that are there already are left alone."""

    def append_touches(self, touches: Sequence[Touch]) -> None:
        """Writes touches. Those that are there already are left alone."""

    def optimize(self) -> StoreReport:
        """Puts many small files together, removes what no version needs. Loses nothing."""

    def close(self) -> None:
        """Gives up the writer's place."""
