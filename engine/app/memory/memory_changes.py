"""Pins of memories, memories to forget, and both taken back: the journal has them, the store of memories follows it.

Whoever writes into the memory brings it to what the journal says. So a change holds that was made while a run held the
memory, and a store that was put back from a copy is brought there again.
"""

from __future__ import annotations

from datetime import UTC, datetime

from engine.journal.reader import JournalReader
from engine.messages.commands import ChangeMemory, MemoryChange
from engine.settings import places
from memory.errors import InvalidRecord, UnknownRecord
from memory.recall import LayeredMemory
from memory.record import Cause

CAUSES = {
    MemoryChange.PIN: Cause.PINNED,
    MemoryChange.UNPIN: Cause.UNPINNED,
    MemoryChange.FORGET: Cause.FORGOTTEN,
    MemoryChange.RESTORE: Cause.RESTORED,
}


def touch_key(reason: str, time: datetime) -> str:
    """The key of a change's touch, as a life-line shows it: who, when (UTC) and why."""
    moment = f"operator {time.astimezone(UTC).isoformat(timespec='milliseconds').replace('+00:00', 'Z')}"
    return f"{moment}: {reason}" if reason else moment


def last_changes(desk: str) -> list[tuple[datetime, ChangeMemory]]:
    """The last pin or unpin and the last forgetting or restoring of every memory of a desk, in the order in which they
    were made, each with its time (UTC). Raises what JournalReader raises."""
    journal = places.desk_journal(desk)
    if not journal.exists():
        return []
    last: dict[tuple[str, bool], tuple[datetime, ChangeMemory]] = {}
    with JournalReader(journal) as reader:
        for time, command in reader.commands(ChangeMemory):
            assert isinstance(command, ChangeMemory)
            pins = command.change in (MemoryChange.PIN, MemoryChange.UNPIN)
            last.pop((command.memory_id, pins), None)
            last[command.memory_id, pins] = (time, command)
    return list(last.values())


def follow_changes(memory: LayeredMemory, desk: str) -> list[str]:
    """Mark the memories of a desk as the last changes in its journal say. Returns why some cannot be marked so. Raises
    as `last_changes` does, and what the memory raises."""
    changes, troubles = last_changes(desk), []
    now = memory.latest if changes else 0.0
    for time, command in changes:
        try:
            memory.mark(command.memory_id, CAUSES[command.change], now, touch_key(command.reason, time))
        except UnknownRecord:
            continue  # it went with a store that is no more
        except InvalidRecord as error:
            troubles.append(str(error))
    return troubles
