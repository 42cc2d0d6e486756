"""A recorded history as points to step through, and a backtest's events, whose journal keeps rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from engine.domain.decision import Decision
from engine.domain.run import RunKind
from engine.journal.entries import RunEntry
from engine.journal.point_in_time import Within
from engine.journal.reader import JournalReader
from engine.messages.events import (
    DecisionMade,
    Event,
    MemoryWritten,
    OpinionFormed,
    OrderFilled,
    RunFinished,
    RunStarted,
    SessionSettled,
)
from engine.reports.documents.questions import step_names
from engine.reports.documents.records import Records


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a recorded history.

    at: the event of a desk, or the session of a backtest or a point within it, up to which its journal is read.
    session: the session whose close was the last one known then; None for an event outside of every run.
    ends: True where the session's run was over.
    running: True where a run that decides was at work.
    """

    at: int | date | Within
    session: date | None
    ends: bool
    running: bool


def timeline(records: Records) -> tuple[Point, ...]:
    """Every point in order: a desk's events, or of each session of a backtest its close, the answers and the decisions.
    Raises what JournalReader raises."""
    reader = records.reader
    if reader is None:
        return ()
    if records.is_backtest:
        return tuple(_points_of_backtest(records, reader))
    return tuple(_points_of_desk(reader))


def _points_of_desk(reader: JournalReader) -> Iterator[Point]:
    runs = {run.id: run for run in reader.runs()}
    session, running = None, False
    for number, name, kind in reader.event_index():
        if kind == MemoryWritten.__name__:  # nothing that a screen shows; the last one follows the end of its run
            continue
        run = runs.get(name)
        session = session if run is None else run.session or session
        decides = run is None or run.kind is not RunKind.ORDER  # no run is at work while such an order is placed
        ends = decides and kind == "RunFinished"
        running = decides and not ends and (running or kind == "RunStarted")
        yield Point(number, session, ends, running)


def _points_of_backtest(records: Records, reader: JournalReader) -> Iterator[Point]:
    counted = reader.counted_by_session(records.run or "")
    for one in reader.equity(records.run, records.part):
        answers, decisions = counted.get(one.session, (0, 0))
        made = [(count, 0) for count in range(answers + 1)] + [(answers, count + 1) for count in range(decisions)]
        yield from (Point(Within(one.session, *counts), one.session, False, True) for counts in made[:-1])
        yield Point(one.session, one.session, True, False)


def session_events(
    reader: JournalReader, run: RunEntry, session: date, at: datetime, decisions: Sequence[Decision]
) -> Iterator[Event]:
    """The events of a backtest's session, made from its rows, dated to `at`, UTC, from which its books are
    known: trades, books, answers, opinions, decisions, and with the last session the end. `decisions` are those of
    the run."""
    steps = tuple(step_names(reader.agent_calls(run.id, session)))
    before = max((one.key.session for one in decisions if one.key.session < session), default=None)
    # Those of the session before come first: of a cycle that is under way the last steps have no answer yet.
    earlier = () if before is None else step_names(reader.agent_calls(run.id, before))
    opinions = reader.opinions(run.id, first=session, last=session)
    yield RunStarted(
        run=run.id,
        time=at,
        kind=run.kind,
        name=run.name,
        label=run.label,
        symbols=run.symbols,
        first=session,
        last=session,
        sessions=1,
        steps=tuple(dict.fromkeys((*earlier, *steps))) or ("decision",),
    )
    yield from (OrderFilled(run.id, at, fill) for fill in reader.fills(run.id) if fill.session == session)
    yield from (SessionSettled(run.id, at, one) for one in reader.equity(run.id) if one.session == session)
    yield from reader.answer_events(run.id, session, steps, at)
    if len({one.key.owner for one in opinions}) > 1:
        yield from (OpinionFormed(run.id, at, one) for one in opinions)
    yield from (DecisionMade(run.id, at, one) for one in decisions if one.key.session == session)
    if run.outcome is not None:
        yield RunFinished(run.id, at, run.outcome, run.value, run.detail)
