"""A desk's memory belongs to its journal: the journal has the number and the hash of the memory's last row.

Whoever writes into the memory says so before and after. A memory that is missing, older or newer than the journal, or
another desk's, decides nothing until the operator has restored or accepted it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from engine.errors import DataError, MissingData
from engine.journal.reader import JournalReader
from engine.messages.events import MemoryWritten, Publish
from memory.recall import LayeredMemory
from memory.record import NOTHING, Head

ACCEPT = "paperdesk memory accept"


def check_memory(memory: LayeredMemory | None, reader: JournalReader, desk: str) -> None:
    """Raise MissingData or DataError for a memory, None for none, that is not the one that the journal knows."""
    head, known = NOTHING if memory is None else memory.head, reader.last_of(MemoryWritten)
    if known is None or known.rows == 0 or head == (bound := Head(known.rows, known.last)):
        return
    of = f"the memory of the desk {desk}"
    accept = f"accept it as it is ({ACCEPT})"
    if memory is None or head.rows == 0:
        raise MissingData(
            f"{of} is missing, and its journal knows {known.rows:,} rows of it: restore a backup (paperdesk restore "
            f"FILE), or go on with an empty one ({ACCEPT})"
        )
    if head.rows < bound.rows:
        raise DataError(
            f"{of} is older than its journal ({head.rows:,} of {bound.rows:,} rows): restore the newest backup "
            f"(paperdesk restore FILE), or {accept}"
        )
    if not memory.holds(bound):
        raise DataError(
            f"{of} is not the one that its journal knows (row {bound.rows:,} is another): restore a backup of both "
            f"(paperdesk restore FILE), or {accept}"
        )
    if not known.open:
        raise DataError(
            f"{of} is newer than its journal ({head.rows:,} rows, {bound.rows:,} known): put the newer journal back "
            f"(paperdesk restore FILE), rebuild it from the account (paperdesk reconcile --rebuild), or {accept}"
        )


def known_head(reader: JournalReader) -> Head:
    """The last row of the memory that a journal knows."""
    known = reader.last_of(MemoryWritten)
    return NOTHING if known is None else Head(known.rows, known.last)


@dataclass(frozen=True, slots=True)
class MemoryBinding:
    """The journal's side of a memory that is written to.

    reader, record: read the journal, and write events into it.
    run: the run that writes, or the last one.
    now: the present moment, UTC.
    """

    desk: str
    reader: JournalReader
    record: Publish
    run: str
    now: Callable[[], datetime]

    @contextmanager
    def writing(self, memory: LayeredMemory) -> Iterator[None]:
        """Check the memory, and bind it before and after the block. Where the block does not come to its end the memory
        stays bound as one that may have gone on. Raises as `check_memory` does."""
        check_memory(memory, self.reader, self.desk)
        self.bind(memory.head, still_open=True)
        yield
        self.bind(memory.head)

    def bind(self, head: Head, *, still_open: bool = False) -> None:
        """Make a row the last one that the journal knows."""
        self.record(MemoryWritten(self.run, self.now(), head.rows, head.last, still_open))
