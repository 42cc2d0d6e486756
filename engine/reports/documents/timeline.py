"""A recorded history as points to step through, and a backtest's events, whose journal keeps rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import chain

from engine.agents.registry import registered
from engine.domain.decision import DecisionKey
from engine.journal.entries import AnswerEntry, RunEntry
from engine.journal.reader import JournalReader
from engine.messages.answer_text import answer_text
from engine.messages.events import AgentAnswered, Event, RunStarted
from engine.messages.from_values import decision_made, opinion_formed, order_filled, session_settled
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
    answers = [_answers(reader, key, at) for key in keys]
    steps = tuple(dict.fromkeys(event.step for event in chain.from_iterable(answers)))
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
    yield from chain.from_iterable(answers)
    if len({one.key.owner for one in opinions}) > 1:
        yield from (opinion_formed(at, one) for one in opinions)
    yield from (decision_made(at, one) for one in made)


def _answers(reader: JournalReader, key: DecisionKey, at: datetime) -> list[AgentAnswered]:
    """The answers behind an opinion; an agent that is asked several questions is asked them in their order."""
    asked: Counter[str] = Counter()
    events = []
    for entry in reader.answers(key):
        asked[entry.agent] += entry.attempt == 1
        events.append(_answered(entry, asked[entry.agent] - 1, at))
    return events


def _answered(entry: AnswerEntry, number: int, at: datetime) -> AgentAnswered:
    agent = registered().get(entry.agent)
    questions = (entry.agent,) if agent is None else agent.questions
    text = f"{entry.outcome}: {entry.reason}" if entry.answer is None else answer_text(entry.answer)
    key, result = entry.key, entry.result
    return AgentAnswered(
        run=key.run,
        time=at,
        session=key.session,
        symbol=key.symbol,
        owner=key.owner,
        step=questions[min(number, len(questions) - 1)],
        text=text,
        model=result.model,
        abstained=entry.outcome == "abstained",
        cached=result.cached,
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cost=result.cost,
        seconds=result.latency,
    )
