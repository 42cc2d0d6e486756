"""A recorded history as points to step through, and a backtest's events, whose journal keeps rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from engine.journal.entries import AnswerEntry, RunEntry
from engine.journal.reader import JournalReader
from engine.messages.events import AgentAnswered, Event, RunStarted
from engine.messages.from_values import agent_answered, decision_made, opinion_formed, order_filled, session_settled
from engine.reports.documents.questions import named_by_step
from engine.reports.documents.records import Records


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a recorded history.

    at: the event of a desk, or the session of a backtest, up to which its journal is read.
    session: the session whose close was the last one known then; None for an event outside of every run.
    ends: True where the session's run was over.
    """

    at: int | date
    session: date | None
    ends: bool


def timeline(records: Records) -> tuple[Point, ...]:
    """Every point in order: a desk's events, or a backtest's settled sessions. Raises what JournalReader raises."""
    reader = records.reader
    if reader is None:
        return ()
    if records.kind == "backtest":
        return tuple(Point(one.session, one.session, True) for one in reader.equity(records.run, records.part))
    sessions, last, points = {run.id: run.session for run in reader.runs()}, None, []
    for number, run, kind in reader.event_index():
        last = sessions.get(run) or last
        points.append(Point(number, last, kind == "RunFinished"))
    return tuple(points)


def session_events(reader: JournalReader, run: RunEntry, session: date) -> Iterator[Event]:
    """The events of a backtest's session, made from its rows: trades, answers, opinions, decisions, books."""
    at = datetime.combine(session, time(23, 59, 59), UTC)
    made = reader.decisions(run.id, first=session, last=session)
    opinions = reader.opinions(run.id, first=session, last=session)
    keys = dict.fromkeys([one.key for one in opinions] + [one.key for one in made])
    answers = [_answered(step, entry, at) for key in keys for step, entry in named_by_step(reader.answers(key))]
    steps = tuple(dict.fromkeys(event.step for event in answers))
    yield RunStarted(
        run=run.id,
        time=run.started,
        kind=run.kind,
        name=run.name,
        label=run.label,
        symbols=run.symbols,
        first=session,
        last=session,
        sessions=1,
        steps=steps or ("decision",),
    )
    yield from (order_filled(run.id, at, fill) for fill in reader.fills(run.id) if fill.session == session)
    yield from (session_settled(run.id, at, one) for one in reader.equity(run.id) if one.session == session)
    yield from answers
    if len({one.key.owner for one in opinions}) > 1:
        yield from (opinion_formed(at, one) for one in opinions)
    yield from (decision_made(at, one) for one in made)


def _answered(step: str, entry: AnswerEntry, at: datetime) -> AgentAnswered:
    return agent_answered(
        at, entry.key, step, result=entry.result, outcome=entry.outcome, reason=entry.reason, answer=entry.answer
    )
