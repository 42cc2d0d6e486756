"""The operator's changes of a desk's memory: a memory is pinned to its layer, or forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from engine.app.memory import (
    CAUSES,
    MemoryBinding,
    absence,
    check_memory,
    follow_changes,
    known_head,
    last_changes,
    memory_errors,
    memory_of_desk,
    touch_key,
)
from engine.app.orders.controls import controlled_journal
from engine.app.records.desk_journal import desk_lock
from engine.domain.text import printable
from engine.errors import DataError, MissingData, TryAgainLater
from engine.execution.controls import PATIENCE
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.commands import ChangeMemory, MemoryChange
from engine.reports.documents.memory import change_document, named
from engine.reports.documents.row_json import Row
from engine.reports.tables import SHORT_ID
from engine.services import Services
from engine.settings import places
from memory.errors import InvalidRecord
from memory.marks import mark, marks_of
from memory.recall import LayeredMemory
from memory.record import NOTHING, Touch

Line = tuple[Touch, ...]
"""Touches of a record, in their order."""
PINS = (MemoryChange.PIN, MemoryChange.UNPIN)


def change_memory(services: Services, wanted: str, change: MemoryChange, *, reason: str, now: datetime) -> Row:
    """Change the desk's memory that an id names, and the document of it: `changed` is False where it is so already,
    `applied` where a run holds the memory and makes the change when it ends.

    Raises MissingData for a desk without a memory or without that one, UsageError for no id, DataError for one that has
    faded and for a pin of one that is forgotten, and as `controlled_journal` and `memory_errors` do.
    """
    stored = memory_of_desk(services)
    if not stored.exists:
        raise MissingData(absence(stored, f"desk {services.desk}"))
    journal = controlled_journal(services.desk)
    reason = " ".join(printable(reason).split())
    with stored.opened() as memory:
        check_desk_memory(services, memory)
        record = named(memory.records(), wanted)
        at = memory.latest
        line = memory.lifeline(record.id, at)[1:]

    def marked(line: Line, one: ChangeMemory, time: datetime) -> Line:
        made = mark(record, marks_of(record, line), CAUSES[one.change], at, touch_key(one.reason, time))
        return line if made is None else (*line, made)

    for time, one in last_changes(services.desk):
        # Those that were made while a run held the memory are not in it yet.
        if one.memory_id == record.id:
            with suppress(InvalidRecord):
                line = marked(line, one, time)
    if change in PINS and marks_of(record, line).forgotten is not None:
        # Also where the pin holds already: it has no effect before the memory is restored.
        short = record.id[:SHORT_ID]
        raise DataError(f"memory {short} is forgotten: restore it first with paperdesk memory restore {short}")
    with memory_errors():
        after = marked(line, ChangeMemory(record.id, change, reason), now)
    applied, changed = True, after != line
    if changed:
        with JournalWriter(journal, wait=PATIENCE) as writer:
            writer.command_done(writer.command(ChangeMemory(record.id, change, reason), now), now)
        try:
            with stored.opened(writing=True) as memory, _bound(services, now) as binding, binding.writing(memory):
                follow_changes(memory, services.desk)
        except TryAgainLater:
            applied = False
    done = {"change": change.value, "changed": changed, "applied": applied, "reason": reason}
    head = {"schema": 1, "desk": services.desk, "run": None}
    return change_document(head, record, marks_of(record, after), stored.calendar, **done)


def check_desk_memory(services: Services, memory: LayeredMemory | None) -> None:
    """Raise as `check_memory` does where a desk's memory, None where it has none, is not the one that its journal
    knows."""
    journal = places.desk_journal(services.desk)
    if not journal.exists():
        return
    with JournalReader(journal) as reader:
        check_memory(memory, reader, services.desk)


def accept_memory(services: Services, now: datetime) -> Row:
    """Bind the journal to the memory that the desk has, whatever it knew before, under the desk's lock; the document of
    it. Raises MissingData for a desk without a journal, TryAgainLater while a run is at work, and as `memory_errors`
    does."""
    stored, journal = memory_of_desk(services), places.desk_journal(services.desk)
    if not journal.exists():
        raise MissingData(f"the desk {services.desk} has no journal that could know a memory: paperdesk --daily")
    head = NOTHING
    with desk_lock(services.desk):
        if stored.exists:
            with stored.opened() as memory:
                head = memory.head
        with _bound(services, now) as binding:
            before = known_head(binding.reader)
            binding.bind(head)
    return {"schema": 1, "desk": services.desk, "run": None, "rows": head.rows, "known": before.rows}


@contextmanager
def _bound(services: Services, now: datetime) -> Iterator[MemoryBinding]:
    journal = places.desk_journal(services.desk)
    with JournalWriter(journal, wait=PATIENCE) as writer, JournalReader(journal) as reader:
        last = reader.latest_run()
        yield MemoryBinding(services.desk, reader, writer.event, "" if last is None else last.id, lambda: now)
