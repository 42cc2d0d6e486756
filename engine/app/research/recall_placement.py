"""The place of a memory in what a recorded decision asked of memory, by deciding it again with its recorded answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from engine.app.memory.stored_memory import absence, memory_of_run
from engine.app.models.briefings import recorded_briefing
from engine.app.models.models import build_models
from engine.app.models.recorded_run import RecordedRun
from engine.app.research.decider import Decider, answers_of
from engine.app.research.recorded_turns import RecordedTurns, original_preset
from engine.cycle.recall import TradingMemory, WatchedRecall
from engine.domain.decision import Decision
from engine.errors import MissingData
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.ports import Calendar
from engine.reports.documents.memory import named
from engine.services import Services
from memory.record import MemoryRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A memory, its place in everything that a decision asked of memory, and the calendar of memory's steps."""

    record: MemoryRecord
    recalls: Sequence[WatchedRecall]
    calendar: Calendar


def recall_placement(services: Services, reader: JournalReader, decisions: Sequence[Decision], wanted: str) -> Watched:
    """Decide a symbol's decisions of one session (one per owner) again as they were, and watch the memory that an id,
    or enough of its beginning, names. Nothing is written, and no model is asked.

    Raises MissingData where the run has no memory, no memory has the id, or an answer is not recorded; what
    `Decider.decide` raises.
    """
    key, noted = decisions[0].key, list[WatchedRecall]()
    run = reader.run(key.run)
    stored = memory_of_run(services, run)
    if not stored.exists:
        raise MissingData(absence(stored, f"desk {services.desk}" if run.spec is None else f"backtest {run.id}"))
    preset = original_preset(services, run, recorded_briefing(reader, run))
    answers = answers_of(trail(reader, made.key) for made in decisions)
    models = build_models(services, preset, replayed=RecordedRun.of(reader, run.id, answers))
    with stored.opened() as memory:
        record = named(memory.records(), wanted)

    async def decide() -> None:
        async with aclosing(models):
            recorded = await RecordedTurns(services, reader).of(key)
            watch = partial(TradingMemory.watched, record_id=record.id, noted=noted)
            decider = Decider(services=services, preset=preset, models=models, watch=watch)
            await decider.decide(recorded, key.symbol)

    asyncio.run(decide())
    return Watched(record=record, recalls=noted, calendar=stored.calendar)
