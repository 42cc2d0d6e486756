"""The records that the app opens with: the events of the last run, the books, the latest decisions, all trades."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from heapq import merge
from itertools import takewhile
from operator import itemgetter

from engine.account.present_books import Since
from engine.domain.decision import Decision
from engine.domain.order import Fill
from engine.domain.portfolio import ZERO
from engine.domain.run import EquityPoint, RunKind, RunOutcome
from engine.execution.controls import command_words
from engine.journal.reader import JournalReader
from engine.messages.commands import Halt, Pause
from engine.messages.events import Event, Noticed
from engine.reports.documents.account import booked_since, measured_closes
from engine.reports.documents.records import Records


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A desk as its journal has it; empty for one that never ran.

    events: those since the last run that decided began, in order.
    last_event: the number of the journal's last event up to which they were read.
    books: the books at the last close.
    since: what was booked after it; None where nothing was.
    change: the time-weighted change of the last session, a fraction.
    fall: the fraction, not positive, from the highest growth so far.
    decisions: every decision, in the order in which they were taken.
    fills: every trade.
    """

    events: tuple[Event, ...] = ()
    last_event: int = 0
    books: EquityPoint | None = None
    since: Since | None = None
    change: Decimal | None = None
    fall: Decimal = ZERO
    decisions: tuple[Decision, ...] = ()
    fills: tuple[Fill, ...] = ()


def opening_of(records: Records, *, events: bool = True) -> Opening:
    """Read a desk's journal, without `events` all but those of the last run. Raises what JournalReader raises."""
    reader = records.reader
    if reader is None:
        return Opening()
    before = reader.last_event()
    latest = tuple(_events_of_latest(reader)) if events else ()
    points = sorted(reader.equity(), key=lambda point: point.session)
    rows, _ = measured_closes(records, points)
    last = rows[-1] if rows else None
    return Opening(
        events=tuple(event for _, event in latest),
        # A run that is at work may have written on since its number was read.
        last_event=max([before, *(number for number, _ in latest[-1:])]),
        books=points[-1] if points else None,
        since=booked_since(records, points[-1] if points else None),
        change=None if last is None else last.change,
        fall=ZERO if last is None else last.fall,
        decisions=reader.decisions(),
        fills=reader.fills(),
    )


def _events_of_latest(reader: JournalReader) -> Iterator[tuple[int, Event]]:
    """All events since the run began that decided last, or is at work, those of the operator's own orders too, and the
    operator's commands as notices; each with the number of the last event by then."""
    latest = _decided(reader)[-1:]
    first = _first_event(reader, latest[0]) if latest else None
    if first is None:
        return iter(())
    return merge(events_of(reader, last=first - 1), _commands(reader, first), key=itemgetter(0))


def _decided(reader: JournalReader) -> list[str]:
    """The runs that decided, or are to, the latest last."""
    runs = (run for run in reader.runs() if run.kind is not RunKind.ORDER)
    return [run.id for run in runs if run.outcome is not RunOutcome.SKIPPED]


def _first_event(reader: JournalReader, run: str) -> int | None:
    """The number of a run's first event; None without any."""
    return next((number for number, _ in reader.events_after(run=run, limit=1)), None)


def _commands(reader: JournalReader, first: int) -> Iterator[tuple[int, Event]]:
    given = reader.controls(event=first)
    for place, words in command_words(reader, [command for _, _, command in given]):
        event, time, command = given[place]
        yield event, Noticed("", time, "warning" if isinstance(command, Halt | Pause) else "info", words)


def opening_of_backtest(records: Records, session: date, at: datetime) -> Opening:
    """A backtest as it was in a session that it settled, its events made from its rows and dated to `at`, UTC. Raises
    what JournalReader raises."""
    # The agents' registry is behind it, which a desk's records do not need.
    from engine.reports.documents.timeline import session_events

    reader = records.required
    run = reader.run(records.run or "")
    points = sorted(reader.equity(run.id, records.part), key=lambda point: point.session)
    rows, _ = measured_closes(records, points)
    decisions = reader.decisions(run.id)
    return Opening(
        events=tuple(session_events(reader, run, session, at, decisions)),
        books=points[-1] if points else None,
        change=rows[-1].change if rows else None,
        fall=rows[-1].fall if rows else ZERO,
        decisions=decisions,
        fills=reader.fills(run.id),
    )


def earlier_events(records: Records, run: str, most: int = 10) -> tuple[Event, ...]:
    """The events from before a run began, those of at most so many runs that decided, in order. Raises what
    JournalReader raises."""
    reader = records.reader
    if reader is None or records.is_backtest:
        return ()
    decided, end = _decided(reader), _first_event(reader, run)
    before = decided[: decided.index(run)] if run in decided else decided
    begun = (first for one in before[-most:] if (first := _first_event(reader, one)) is not None)
    events = events_of(reader, last=next(begun, 1) - 1)
    return tuple(event for _, event in takewhile(lambda one: end is None or one[0] < end, events))


def events_of(reader: JournalReader, run: str | None = None, last: int = 0) -> Iterator[tuple[int, Event]]:
    """Every event of a run, or of all, after a number, each with its own; in order, read in pages."""
    while page := reader.events_after(last, run):
        yield from page
        last = page[-1][0]
