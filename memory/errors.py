"""Errors that the memory raises on purpose; a caller maps them to its own (MemoryLocked to exit code 75).

    LayeredMemoryError
    |-- InvalidRecord         an empty text, a vector that is not finite or of another size, a step that is no number
    |-- UnknownRecord         no record has this id
    |-- UnknownPreset         no preset, layer or kind of this name
    |-- TimeOrder             a change is dated before one that is written already
    |-- EmbedderUnavailable   the embedder's library or model is missing, or its answer cannot be used
    `-- StoreError
        |-- MemoryLocked      another process writes into this store
        |-- ReadOnly          a write through a store that was opened for reading
        |-- EmbedderMismatch  the store was made with another embedder or dimension
        |-- StoreDamaged      a file of the store is missing, truncated or unreadable
        `-- StoreFull         the disk, a quota or a file size limit is reached; nothing was written

A message is one line: what is wrong, where, and what to do.
"""

from __future__ import annotations


class LayeredMemoryError(Exception):
    """Base of all errors of this package."""


class InvalidRecord(LayeredMemoryError):
    """An item that cannot be stored; nothing of its batch was."""


class UnknownRecord(LayeredMemoryError):
    """An id that no record has."""


class UnknownPreset(LayeredMemoryError):
    """A preset, layer or kind of source that does not exist; the message names those that do."""


class TimeOrder(LayeredMemoryError):
    """A change dated before one that is written already."""


class EmbedderUnavailable(LayeredMemoryError):
    """The embedder cannot work: a library or a model is missing, or vectors came back that cannot be used."""


class StoreError(LayeredMemoryError):
    """A store that cannot be used as requested."""


class MemoryLocked(StoreError):
    """The writer's lock is held by another process; try again later."""


class ReadOnly(StoreError):
    """A write through a store that was opened for reading."""


class EmbedderMismatch(StoreError):
    """The store belongs to another embedder; vectors of two embedders are not comparable."""


class StoreDamaged(StoreError):
    """A file of the store is missing, truncated or unreadable; it was left as it is."""


class StoreFull(StoreError):
    """A full disk or quota; earlier rows are complete."""
