"""Map events to rows and back. Run, time and type have columns; of an answer's event the row names the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from engine.domain.json_text import to_json
from engine.journal.answer_rows import event_of_answer
from engine.journal.database import reading
from engine.journal.rows import Row
from engine.messages.events import AgentAnswered, Event, from_plain, to_plain

ANSWER = "answer"
"""In an event's JSON: the number of the answer that it is about, whose row says the rest; beside it the `step`."""

_COLUMNS = ("run", "time", "type")


def event_row(event: Event, answer: Mapping[str, Any] | None) -> Row:
    """An event as a row; `answer` is the row that an AgentAnswered may be about."""
    plain = {name: value for name, value in to_plain(event).items() if name not in _COLUMNS}
    if isinstance(event, AgentAnswered) and answer and event_of_answer(answer, event.step, event.time) == event:
        plain = {ANSWER: answer["seq"], "step": event.step}
    return {"run": event.run, "time": event.time, "type": type(event).__name__, "json": to_json(plain)}


def event_of(row: Mapping[str, Any], answer: Callable[[int], Mapping[str, Any]]) -> Event:
    """An event from its row; `answer` gives the row of an answer by its number."""
    with reading(row):
        said = json.loads(row["json"])
        if ANSWER not in said:
            return from_plain({name: row[name] for name in _COLUMNS} | said)
        return event_of_answer(answer(said[ANSWER]), said["step"], datetime.fromisoformat(row["time"]))
