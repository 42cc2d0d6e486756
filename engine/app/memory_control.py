"""The operator's changes of a desk's memory: a memory is pinned to its layer, or forgotten."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from engine.app.controls import controlled_journal
from engine.app.memory import memory_errors
from engine.app.memory_changes import CAUSES, follow_changes, last_changes, touch_key
from engine.app.stored_memory import absence, memory_of_desk
from engine.domain.printable import printable
from engine.errors import DataError, MissingData, TryAgainLater
from engine.execution.controls import PATIENCE
from engine.messages.commands import ChangeMemory, MemoryChange
from engine.reports.documents.memory import SHORT_ID, change_document, named
from engine.reports.documents.row_json import Row
from engine.services import Services
from memory.errors import InvalidRecord
from memory.marks import mark, marks_of
from memory.record import Touch

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
        from engine.journal.writer import JournalWriter

        with JournalWriter(journal, wait=PATIENCE) as writer:
            writer.command_done(writer.command(ChangeMemory(record.id, change, reason), now), now)
        try:
            with stored.opened(writing=True) as memory:
                follow_changes(memory, services.desk)
        except TryAgainLater:
            applied = False
    done = {"change": change.value, "changed": changed, "applied": applied, "reason": reason}
    head = {"schema": 1, "desk": services.desk, "run": None}
    return change_document(head, record, marks_of(record, after), stored.calendar, **done)
