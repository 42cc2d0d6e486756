"""Memories, their life and the constants that they live by, as `paperdesk memory` prints them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from engine.cycle.recall import AFTER, LESSONS, WatchedRecall
from engine.domain.decision import FIGURE_DIGITS, REFLECTIONS, Decision, DecisionKey
from engine.domain.run import ModelUse
from engine.errors import MissingData, UsageError
from engine.ports import Calendar
from engine.preset import load_preset
from engine.reports.documents import row_json
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row
from engine.reports.tables import SHORT_ID
from memory.lifecycle import importance_at
from memory.live_index import ScoredRecord
from memory.marks import Marks
from memory.placement import Reason
from memory.presets import PRESETS, MemoryPreset
from memory.preview import lives
from memory.recall import LayeredMemory
from memory.record import MARKET, Cause, MemoryRecord, Touch

CITING = (Cause.CITED, Cause.PAID, Cause.COST)
"""Causes of changes that an opinion brought about: `by` names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """The memories of a list, each None for all: of a symbol and layer, as they were at a session's end; with
    `undecided` as they were while that session was decided."""

    symbol: str | None = None
    layer: str | None = None
    session: date | None = None
    undecided: bool = False

    def fits(self, record: MemoryRecord) -> bool:
        """True for a record of the symbol."""
        return self.symbol in (None, record.symbol)

    def keeps(self, one: ScoredRecord) -> bool:
        """True for a memory that fits."""
        return self.fits(one.record) and self.layer in (None, one.layer.value)


def list_document(
    head: Row, memory: LayeredMemory | None, calendar: Calendar, chosen: MemoryFilter, *, today: date, first: int = 0
) -> Row:
    """The memories that are alive and fit, the most important first; `first` keeps that many (0: all). Beside them
    those that the operator has forgotten. Raises UsageError for a session that lies in the future."""
    if chosen.session is not None and chosen.session > today:
        raise UsageError(f"{chosen.session} is in the future")
    alive: Sequence[ScoredRecord] = ()
    forgotten: list[Row] = []
    now = -math.inf
    if memory is not None:
        after = 0 if chosen.undecided else AFTER
        now = memory.latest if chosen.session is None else calendar.number(chosen.session) + after
        alive = memory.scored_records(now)
        gone = [one for one in memory.forgotten(now) if chosen.fits(one[0])]
        forgotten = [{**_record(record, calendar), "by": touch.key} for record, touch in gone]
    fitting = sorted(
        filter(chosen.keeps, alive), key=lambda one: (-one.importance, -one.record.born_step, one.record.id)
    )
    return {
        **head,
        "session": str(_session(calendar, now)) if math.isfinite(now) else None,
        "alive": len(alive),
        "count": len(fitting),
        "owners": sorted({one.record.owner for one in alive}),
        "kinds": sorted({one.record.kind for one in alive}),
        "symbols": sorted({one.record.symbol for one in alive}),
        "memories": [_state(one, calendar) for one in fitting[: first or None]],
        "forgotten": forgotten,
    }


def lifeline_document(head: Row, memory: LayeredMemory, calendar: Calendar, wanted: str) -> Row:
    """Every change of the memory that an id names, as `named` does, and its importance at the end of every session
    in which it was alive, up to the memory's last one."""
    record = named(memory.records(), wanted)
    line = memory.lifeline(record.id, memory.latest)
    values = list(_values(line, memory, calendar, record.written_step))
    changes = _changes(line, memory.preset, calendar)
    return {**head, **_record(record, calendar), "changes": changes, "values": values}


def placement_document(
    head: Row, key: DecisionKey, record: MemoryRecord, recalls: Sequence[WatchedRecall], calendar: Calendar
) -> Row:
    """The place of a memory in what a decision asked of memory."""
    lessons = [one for one in recalls if one.types == (LESSONS,) and one.placement.ranks]
    main = [one for one in recalls if one.types != (LESSONS,)]
    own = [one for one in main if one.owner == record.owner] or main[:1]
    return {
        **head,
        **row_json.fields(key, "run", "symbol", "session"),
        "memory": _record(record, calendar),
        "recalled": any(one.placement.reason is Reason.RECALLED for one in (*own, *lessons)),
        "recalls": [_watched(one, calendar) for one in (*own, *lessons)],
    }


def _watched(one: WatchedRecall, calendar: Calendar) -> Row:
    placement, gone = one.placement, one.placement.gone
    importance = None if placement.importance is None else placement.importance * 100
    return {
        "owner": one.owner,
        "question": LESSONS if one.types == (LESSONS,) else "memories",
        **row_json.fields(placement, "reason", "layer", "measure", "k"),
        "gone": gone and {"session": str(_session(calendar, gone.state.step)), "cause": gone.cause.value},
        "like": placement.like or None,
        **_rounded(recency=placement.recency, importance=importance),
        "types": [
            {
                **row_json.fields(rank, "query", "rank", "of"),
                **_rounded(relevancy=rank.relevancy, score=rank.composite, least_taken=rank.least),
            }
            for rank in placement.ranks
        ],
    }


def _rounded(**figures: float | None) -> Row:
    """Figures as a journal has those of what was recalled."""
    return {name: figure if figure is None else round(figure, FIGURE_DIGITS) for name, figure in figures.items()}


def map_document(head: Row, memory: LayeredMemory, calendar: Calendar, symbol: str | None) -> Row:
    """Documents with retrieval types, the same text of the same types once, at two coordinates: the principal
    components of the vectors, in which they differ most, signed so that the greatest part of each is positive.
    `explained` is their share of the variance, None where nothing differs. Raises MissingData where there is none.
    Source: FinAgent figure 5b [A2], which draws t-SNE; components are the same every time."""
    records = [one for one in memory.records() if one.labels and one.kind not in REFLECTIONS]
    unique = {(one.text, one.labels): one for one in reversed(records) if symbol in (None, one.symbol)}
    shown = sorted(unique.values(), key=lambda one: one.sequence)
    if not shown:
        of = "" if symbol is None else f" of {symbol}"
        raise MissingData(f"no memory{of} has retrieval types: market intelligence gives them (presets finagent, desk)")
    vectors = np.array([one.vector for one in shown], np.float64)
    places, lengths, directions = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    places = places * lengths * [1 if each[np.abs(each).argmax()] >= 0 else -1 for each in directions]
    places = np.pad(places[:, :2], ((0, 0), (0, max(0, 2 - places.shape[1]))))
    varied = float((lengths**2).sum())
    return {
        **head,
        "count": len(shown),
        "explained": float((lengths[:2] ** 2).sum()) / varied if varied > 0 else None,
        "memories": [
            {**_record(one, calendar), "x": round(float(x), FIGURE_DIGITS), "y": round(float(y), FIGURE_DIGITS)}
            for one, (x, y) in zip(shown, places, strict=True)
        ],
    }


def decided_with(records: Records, memory: Mapping[str, Any]) -> Decision:
    """The last decision that cited a memory, which is as `lifeline_document` prints it, up to the moment of the
    records; else the one of the session in which it was written. Raises MissingData where there is none."""
    decisions = records.required.decisions
    for change in reversed(memory["changes"]):
        if change["cause"] in CITING:
            day, symbol, opinion = change["by"].split(" ", 2)
            owner, _, cycle = opinion.rpartition(" ")
            session = date.fromisoformat(day)
            made = [one for one in decisions(records.run, symbol, session, session) if str(one.key.cycle) == cycle]
            if made:
                return _of_owner(made, owner)
    session = date.fromisoformat(memory["session" if memory["hindsight"] else "available"])
    made = [*decisions(records.run, None if memory["symbol"] == MARKET else memory["symbol"], session, session)]
    if not made:
        raise MissingData(f"no decision of {records.title} cited it, and none was made on {session}")
    return _of_owner(made, memory["owner"])


def _of_owner(made: Sequence[Decision], owner: str) -> Decision:
    """The last of some decisions that is an owner's; else, where opinions were combined, the last one."""
    return next((one for one in reversed(made) if one.key.owner == owner), made[-1])


def export_rows(memory: LayeredMemory, calendar: Calendar) -> Iterator[Row]:
    """Every memory with its changes."""
    for record in memory.records():
        changes = _changes(memory.lifeline(record.id), memory.preset, calendar)
        yield {**_record(record, calendar), "changes": changes}


def embedder_document(head: Row, *, before: str, after: str, count: int, changed: bool, use: ModelUse) -> Row:
    """A change of embedder, and its cost in USD."""
    made = {"before": before, "after": after, "count": count, "changed": changed}
    cost = None if use.cost is None else str(use.cost)
    return {**head, **made, "calls": use.calls, "input_tokens": use.usage.input_tokens, "cost": cost}


def constants_of(name: str) -> MemoryPreset:
    """The memory constants of a name; a preset of memory's own goes before a preset of agents. Raises UsageError."""
    return PRESETS[name] if name in PRESETS else load_preset(name).memory.constants


def lives_document(constants: MemoryPreset) -> Row:
    """The lives of memories that nobody cites, by a preset's constants."""
    rows = [
        {
            **row_json.fields(life, "layer", "importance", "probability"),
            "kind": life.kind or None,
            "ends": life.ends if math.isfinite(life.ends) else None,
            "moves": [{"step": step, "layer": layer.value} for step, layer in life.moves],
        }
        for life in lives(constants)
    ]
    return {"schema": 1, "preset": constants.name, "lives": rows}


def _state(one: ScoredRecord, calendar: Calendar) -> Row:
    """A memory with its present layer, importance and recency, and the session of its next change (None: never)."""
    return {
        **_record(one.record, calendar),
        **row_json.fields(one, "layer", "importance", "recency", "pinned"),
        "rewards": one.access_count,
        "next_change": str(_session(calendar, one.due)) if math.isfinite(one.due) else None,
    }


def _record(record: MemoryRecord, calendar: Calendar) -> Row:
    """A memory as it was written; `session` is that in which it became known."""
    names = ("id", "owner", "symbol", "kind", "hindsight", "source", "rests_on", "query_text", "text")
    return {
        **row_json.fields(record, *names),
        "session": str(_session(calendar, record.born_step)),
        "available": str(_session(calendar, record.available_at)),
        "born_into": record.birth_layer.value,
        "born_with": record.importance,
        "types": list(record.labels),
    }


def _changes(line: Sequence[Touch], preset: MemoryPreset, calendar: Calendar) -> list[Row]:
    """The changes of a memory, each with its cause and the state after it; of one that has gone, the importance by the
    rule of the layer that it left."""
    rows, layer = [], None
    for touch in line:
        state = touch.state
        layer = state.layer or layer
        rows.append(
            {
                "session": str(_session(calendar, state.step)),
                "cause": touch.cause.value,
                **row_json.fields(state, "step", "layer"),
                "importance": importance_at(preset, replace(state, layer=layer), state.step),
                "rewards": state.access_count,
                "by": touch.key,
            }
        )
    return rows


def _values(line: Sequence[Touch], memory: LayeredMemory, calendar: Calendar, written: float) -> Iterator[Row]:
    """Layer and importance of a memory since it was written, faded as it is at the end of each session."""
    latest, place = memory.latest, 0
    for number in range(int(written), int(latest) + 1):
        now = min(number + AFTER, latest)
        while place + 1 < len(line) and line[place + 1].state.step <= now:
            place += 1
        state = line[place].state
        if state.layer is not None:
            importance = importance_at(memory.preset, state, now)
            yield {"session": str(_session(calendar, now)), "layer": state.layer.value, "importance": importance}


def _session(calendar: Calendar, step: float) -> date:
    """The session of a step; what is written a moment after a decision is of its session."""
    return calendar.session_at(int(step))


def change_document(head: Row, record: MemoryRecord, marks: Marks, calendar: Calendar, **done: object) -> Row:
    """A memory that was pinned, forgotten, or of which that was taken back: its marks now, and what was `done`."""
    now = {"pinned": marks.pinned, "forgotten": marks.forgotten is not None}
    return {**head, **_record(record, calendar), **now, **done}


def named(records: Sequence[MemoryRecord], wanted: str) -> MemoryRecord:
    """The record that an id, or enough of its beginning, names. Raises MissingData where it names none, or several,
    UsageError for an empty one."""
    if not wanted.strip():
        raise UsageError("the id is empty: give one, or enough of its beginning; paperdesk memory list shows ids")
    found = [record for record in records if record.id.startswith(wanted.lower())]
    if len(found) == 1:
        return found[0]
    if not found:
        raise MissingData(f"no memory has the id {wanted}: paperdesk memory list shows ids")
    near = ", ".join(record.id[: max(SHORT_ID, len(wanted) + 4)] for record in found[:4])
    raise MissingData(f"{len(found)} memories have ids that begin with {wanted}: {near}; give more of it")
