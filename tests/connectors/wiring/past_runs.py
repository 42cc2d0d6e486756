"""What a backtest leaves behind: the trails of its decisions, and what it remembered."""

from __future__ import annotations

from connectors.wiring.services import services
from engine.app.memory import memory_of_run
from engine.journal.entries import Trail
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.settings import places
from engine.settings.config import Config
from memory.record import MemoryRecord


def trails(run: str) -> list[Trail]:
    """The trail of every decision."""
    with JournalReader(places.run_journal(run)) as reader:
        return [trail(reader, decision.key) for decision in reader.decisions()]


def memories(run: str) -> list[MemoryRecord]:
    """All that it remembered, oldest first; nothing where it kept no memory."""
    with JournalReader(places.run_journal(run)) as reader:
        kept = memory_of_run(services(Config()), reader.run(run))
    if not kept.exists:
        return []
    with kept.opened() as memory:
        return sorted(memory.records(), key=lambda record: record.born_step)
