"""Map events to rows and back. The run and the type have columns; of an answer's event the row names the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from engine.domain.json_text import to_json
from engine.journal.answer_rows import event_of_answer
from engine.journal.database import reading
from engine.journal.packing import THREAD
from engine.journal.rows import Row
from engine.messages.events import AgentAnswered, Event, from_plain, to_plain

ANSWER = "answer"
"""In an event's JSON: the number of the answer that it is about, whose row says the rest; beside it the `step`, and how
long `after` the answer it was published (microseconds)."""
_MICROSECOND = timedelta(microseconds=1)


def event_row(event: Event, answer: Mapping[str, Any] | None) -> Row:
    """An event as a row; `answer` is the row that an AgentAnswered may be about."""
    plain = {name: value for name, value in to_plain(event).items() if name not in ("run", "type")}
    if isinstance(event, AgentAnswered) and answer and event_of_answer(answer, event.step, event.time) == event:
        after = (event.time - _time_of(answer)) // _MICROSECOND
        plain = {ANSWER: answer["seq"], "after": after, "step": event.step}
    row = {"run": event.run, "time": "", "type": type(event).__name__, THREAD: getattr(event, "symbol", "")}
    return row | {"json": to_json(plain)}


def event_of(row: Mapping[str, Any], answer: Callable[[int], Mapping[str, Any]]) -> Event:
    """An event from its row; `answer` gives the row of an answer by its number."""
    with reading(row):
        said = json.loads(row["json"])
        if ANSWER not in said:
            # The columns say the rest; events of before they were packed say all of it.
            return from_plain({name: row[name] for name in ("run", "type")} | said)
        about = answer(said[ANSWER])
        return event_of_answer(about, said["step"], _time_of(about) + said["after"] * _MICROSECOND)


def _time_of(answer: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(answer["time"])
