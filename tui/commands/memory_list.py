"""What is remembered, looked at: the list of what is alive, and the life of one memory."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from engine.errors import MissingData, UsageError
from tui.commands.memory_rows import change_row, day_of, record_row, standing_row
from tui.console import show, standard_output
from tui.plain_text import one_line
from tui.text_table import cut, table, wrapped

if TYPE_CHECKING:
    from engine.app.stored_memory import StoredMemory
    from engine.ports import Calendar
    from memory.record import MemoryRecord
    from memory.view import ScoredRecord

LIMIT = 20
"""Lines that are shown where no limit is given; a JSON document has all."""
_INDENT = " " * 10
SHORT_ID = 8
"""Characters of an id that a list shows; as many as tell it from all others are enough to name one."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories a list has, each None for all: of a symbol, layer and kind; as they stood at a session's end; at
    most how many."""

    symbol: str | None
    layer: str | None
    kind: str | None
    session: date | None
    limit: int | None

    def given(self) -> bool:
        """Whether anything was asked for."""
        return any(value is not None for value in (self.symbol, self.layer, self.kind, self.session, self.limit))

    def keeps(self, standing: ScoredRecord) -> bool:
        """Whether a memory fits."""
        record = standing.record
        return (
            self.symbol in (None, record.symbol)
            and self.layer in (None, standing.layer.value)
            and self.kind in (None, record.kind)
        )


def show_list(
    head: dict[str, Any], kept: StoredMemory, title: str, missing: str, chosen: Filter, as_json: bool
) -> None:
    """Shows what is alive and fits, the most important first; `missing` says why there is no memory, if it is so."""
    if missing:
        empty = {**head, "session": None, "alive": 0, "count": 0, "memories": []}
        show(json.dumps(empty, indent=2) if as_json else missing)
        return
    from engine.clock import LiveClock
    from engine.cycle.recall import AFTER

    with kept.opened() as memory:
        latest = memory.latest
        if chosen.session is not None and chosen.session > LiveClock().now().date():
            raise UsageError(f"{chosen.session} lies in the future: nobody knows what is remembered then")
        now = latest if chosen.session is None else kept.calendar.number(chosen.session) + AFTER
        alive = memory.scored_records(now)
    session = day_of(kept.calendar, now) if math.isfinite(now) else None
    found = sorted(filter(chosen.keeps, alive), key=lambda one: (-one.importance, -one.record.born_step, one.record.id))
    most = chosen.limit if chosen.limit is not None else 0 if as_json else LIMIT
    shown = found[:most] if most else found
    if as_json:
        rows = [standing_row(one, kept.calendar) for one in shown]
        document = {**head, "session": session and str(session), "alive": len(alive), "count": len(found)}
        show(json.dumps({**document, "memories": rows}, indent=2, allow_nan=False))
        return
    console = standard_output()
    width = min(console.width, 120)
    heading = wrapped(f"Memory of {title}, at the end of {session or 'no session'}", width)
    show("\n".join([*map(console.bold, heading), *_lines(shown, len(found), alive, kept.calendar, width)]))


def _lines(
    shown: Sequence[ScoredRecord], count: int, alive: Sequence[ScoredRecord], calendar: Calendar, width: int
) -> Iterator[str]:
    """Two lines for each memory: how it stands, and what it says."""
    if not shown:
        yield from wrapped(_none_of(alive), width)
        return
    owners = {one.record.owner for one in alive}
    rows = [
        (
            one.record.id[:SHORT_ID],
            str(day_of(calendar, one.record.born_step)),
            one.record.symbol,
            one.layer.value,
            f"{one.importance:.1f}",
            f"{one.recency:.2f}",
            f"{one.access_count}" if one.access_count else "",
        )
        for one in shown
    ]
    names = ("ID", "WRITTEN", "SYMBOL", "LAYER", "IMPORTANCE", "RECENCY", "REWARDS")
    head, *lines = table(names, rows, {"IMPORTANCE", "RECENCY", "REWARDS"}, width)
    yield head
    for line, one in zip(lines, shown, strict=True):
        owner = f"{one.record.owner}, " if len(owners) > 1 else ""
        yield line
        yield _INDENT + cut(f"{owner}{one.record.kind}: {one_line(one.record.text)}", width - len(_INDENT))
    if len(shown) < count:
        yield f"the {len(shown)} most important of {count}; --limit 0 shows all"


def _none_of(alive: Sequence[ScoredRecord]) -> str:
    if not alive:
        return "nothing is alive: it begins later, or has faded by then"
    kinds, symbols = ({getattr(one.record, name) for one in alive} for name in ("kind", "symbol"))
    return f"none of {len(alive):,} fits; there are {', '.join(sorted(kinds))} of {', '.join(sorted(symbols))}"


def show_lifeline(head: dict[str, Any], kept: StoredMemory, wanted: str, as_json: bool) -> None:
    """Shows every change of one memory. Raises MissingData where an id names none, or several."""
    with kept.opened() as memory:
        record = _named(memory.records(), wanted)
        line = memory.lifeline(record.id, memory.latest)
    if as_json:
        changes = [change_row(touch, kept.calendar) for touch in line]
        show(json.dumps({**head, **record_row(record, kept.calendar), "changes": changes}, indent=2, allow_nan=False))
        return
    console = standard_output()
    width = min(console.width, 110)
    show(console.bold(f"{record.symbol}  {record.kind} of {day_of(kept.calendar, record.born_step)}  {record.id}"))
    if record.hindsight:
        known = day_of(kept.calendar, record.available_at)
        show(f"written in training, with sight of what followed: it can be recalled from {known} on")
    show("\n".join(wrapped(one_line(record.text), width)))
    rows = [
        (
            str(day_of(kept.calendar, touch.state.step)),
            touch.cause.value,
            touch.state.layer.value if touch.state.layer else "gone",
            f"{touch.state.importance:.1f}",
            f"{touch.state.access_count}",
            _by(touch.key),
        )
        for touch in line
    ]
    head_row = ("SESSION", "CHANGE", "LAYER", "IMPORTANCE", "REWARDS", "BY")
    show("\n".join(table(head_row, rows, {"IMPORTANCE", "REWARDS"}, width)))


def _by(key: str) -> str:
    """What caused a change, in words: of a decision its session."""
    words = one_line(key).split()
    return f"decision of {words[0]}" if len(words) == 4 else " ".join(words)


def _named(records: Sequence[MemoryRecord], wanted: str) -> MemoryRecord:
    """The record that an id, or enough of its beginning, names."""
    found = [record for record in records if record.id.startswith(wanted.lower())]
    if len(found) == 1:
        return found[0]
    if not found:
        raise MissingData(f"no memory has the id {wanted}: paperdesk memory list shows ids")
    near = ", ".join(record.id[: max(SHORT_ID, len(wanted) + 4)] for record in found[:4])
    raise MissingData(f"{len(found)} memories have ids that begin with {wanted}: {near}; give more of it")
