"""The records that the app opens with: the events of the last run, the books, the latest decisions, all trades; what
changed since a visit; and where the film of a desk's history stops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from heapq import merge
from itertools import takewhile
from operator import itemgetter

from engine.account.books import Since
from engine.domain.decision import Action, Decision
from engine.domain.market import Symbol
from engine.domain.order import ZERO, Fill
from engine.domain.run import EquityPoint, RunKind, RunOutcome
from engine.execution.controls import command_words
from engine.journal.reader import JournalReader
from engine.messages.commands import Halt, Pause
from engine.messages.events import Event, Noticed
from engine.reports.documents.account import booked_since, closes, measured_closes
from engine.reports.documents.records import Records, records_at


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
    # A run that is at work may have written on since its number was read.
    last = max([before, *(number for number, _ in latest[-1:])])
    return _opening(records, tuple(event for _, event in latest), last)


def _opening(records: Records, events: tuple[Event, ...], last_event: int = 0) -> Opening:
    reader = records.required
    points = sorted(reader.equity(records.world, records.part), key=lambda point: point.session)
    rows, _ = measured_closes(records, points)
    return Opening(
        events=events,
        last_event=last_event,
        books=points[-1] if points else None,
        since=booked_since(records, points[-1] if points else None),
        change=rows[-1].change if rows else None,
        fall=rows[-1].fall if rows else ZERO,
        decisions=reader.decisions(records.world),
        fills=reader.fills(records.world),
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
    return _opening(records, tuple(session_events(reader, run, session, at, reader.decisions(run.id))))


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


@dataclass(frozen=True, slots=True)
class Changes:
    """Numbers of decisions and fills, and the time-weighted change of the desk's value (a fraction; None without a
    close since)."""

    decisions: int
    fills: int
    change: Decimal | None


def changes_since(records: Records, event: int) -> Changes | None:
    """The changes after an event (0: since the beginning); None where there are none, and for an event that the journal
    does not have, as after another journal was restored."""
    reader = records.reader
    if reader is None or event > reader.last_event():
        return None
    kinds = Counter(kind for _, _, kind in reader.event_index(event))
    found = Changes(kinds["DecisionMade"], kinds["OrderFilled"], _change(records, event))
    return found if any((found.decisions, found.fills, found.change)) else None


def _change(records: Records, event: int) -> Decimal | None:
    growth = {row.point.session: row.growth for row in measured_closes(records, closes(records))[0]}
    before: Decimal | int = 1
    if event:
        with records_at(records, event) as earlier:
            seen = [row.session for row in closes(earlier) if row.session in growth]
        before = growth[seen[-1]] if seen else 1
        if seen and seen[-1] == max(growth):
            return None
    return growth[max(growth)] / before - 1 if growth else None


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop once a session was decided, at a symbol, with what is to be read there."""

    session: date
    symbol: Symbol
    text: str


def film_stops(reader: JournalReader, first: date) -> tuple[Stop, ...]:
    """The last sale below cost that was decided from session `first` on, and before it the largest purchase of that
    symbol; none without both. Raises what JournalReader raises."""
    points = {point.session: point for point in reader.equity(book=None)}
    decisions = reader.decisions(first=first)
    for sold in reversed(decisions):
        session, symbol, point = sold.key.session, sold.key.symbol, points.get(sold.key.session)
        held = None if point is None else point.portfolio.positions.get(symbol)
        if point is None or held is None or held.average_cost is None or sold.opinion.action is not Action.SELL:
            continue
        price, paid = point.prices[symbol], held.average_cost
        bought = [
            made
            for made in decisions
            if made.key.symbol == symbol and made.key.session < session and made.opinion.action is Action.BUY
        ]
        if bought and price < paid:
            purchase = max(bought, key=lambda made: made.opinion.size)
            loss = f"{symbol} is sold at a loss: {paid:,.2f} paid, {price:,.2f} now ({price / paid - 1:.1%})"
            return (
                Stop(purchase.key.session, symbol, f"{symbol} is bought. {_why(purchase.opinion.reason)}"),
                Stop(session, symbol, f"{loss}. {_why(sold.opinion.reason)}"),
            )
    return ()


def _why(reason: str) -> str:
    return reason.partition("\n")[0]
