"""Memories as a JSON document shows them: what each is, how it stands, what changed it and when."""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.ports import Calendar
    from memory.record import MemoryRecord, Touch
    from memory.view import ScoredRecord


def standing_row(one: ScoredRecord, calendar: Calendar) -> dict[str, Any]:
    """A memory with its layer, importance and recency as they stand, and when they change next (None: never)."""
    return {
        **record_row(one.record, calendar),
        "layer": one.layer.value,
        "importance": one.importance,
        "recency": one.recency,
        "rewards": one.access_count,
        "next_change": str(day_of(calendar, one.due)) if math.isfinite(one.due) else None,
    }


def record_row(record: MemoryRecord, calendar: Calendar) -> dict[str, Any]:
    """A memory as it was written."""
    return {
        "id": record.id,
        "owner": record.owner,
        "symbol": record.symbol,
        "kind": record.kind,
        "session": str(day_of(calendar, record.born_step)),
        "available": str(day_of(calendar, record.available_at)),
        "hindsight": record.hindsight,
        "born_into": record.birth_layer.value,
        "born_with": record.importance,
        "source": record.source,
        "types": list(record.labels),
        "rests_on": list(record.rests_on),
        "query_text": record.query_text,
        "text": record.text,
    }


def change_row(touch: Touch, calendar: Calendar) -> dict[str, Any]:
    """A change of a memory, with its cause and what stood after it."""
    state = touch.state
    return {
        "session": str(day_of(calendar, state.step)),
        "step": state.step,
        "cause": touch.cause.value,
        "layer": state.layer.value if state.layer else None,
        "importance": state.importance,
        "rewards": state.access_count,
        "by": touch.key,
    }


def day_of(calendar: Calendar, step: float) -> date:
    """The session of a step; what is written a moment after a decision is of its session."""
    return calendar.session_at(int(step))
