"""A desk or run at its last close, as `paperdesk status` and `paperdesk positions` print it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

from engine.account.books import Since
from engine.domain.market import Symbol
from engine.domain.order import ZERO, Fill, OrderState, Side, is_own
from engine.domain.run import EquityPoint, RunKind, RunOutcome
from engine.domain.text import money
from engine.execution.controls import OrderTimes, approvals, halted, paused
from engine.execution.frozen_symbols import frozen_in, reasons
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.ports import Calendar
from engine.reports.documents import row_json
from engine.reports.documents.account import booked_since, measured_closes
from engine.reports.documents.operations import operation_rows
from engine.reports.documents.records import Records
from engine.reports.documents.rehearsal import rehearsal_summary
from engine.reports.documents.row_json import Row
from engine.reports.documents.settings import changed_since, settings_of
from engine.session.cost_meter import CostMeter

MISSED_WITHIN = timedelta(days=14)
"""Sessions without a run are named for so long."""


def status_document(
    records: Records, due: date | None = None, calendar: Calendar | None = None, now: datetime | None = None
) -> Row:
    """Halt and pause, last run, value, open orders, positions, counts and cost. `due` is the session that
    is to be decided, where that is known and counts for these records: it is printed where the desk has not decided for
    it, and `decided_alone` has the symbols that runs of their own have decided for it. The `calendar` tells which
    sessions passed before it without a run; `operation` has rates and runs as of `now`."""
    reader = records.reader
    if reader is None:
        stops, books = ("halted", "paused"), ("brought_in", "total_return", "value", "cash")
        return {
            **records.head,
            **dict.fromkeys(("settings", "changed", *stops, "last_run", "since", *books, "model", "operation")),
            "rehearsal": rehearsal_summary(records.desk),
            "positions": {},
            "open_orders": [],
            "due": due and str(due),
            "decided_alone": {},
            "missed": [],
            "frozen": {},
        }
    run = reader.latest_run() if records.run is None else reader.run(records.run)
    counts = reader.counts(records.run)
    waiting = reader.orders(records.run, open_only=True)
    return {
        **records.head,
        "halted": None if records.is_backtest else row_json.halt(halted(reader)),
        "paused": None if records.is_backtest else row_json.halt(paused(reader)),
        "last_run": None if run is None else row_json.run(run),
        **_settings(records, reader, run),
        "rehearsal": None if records.is_backtest else rehearsal_summary(records.desk),
        **_value(records, reader),
        "open_orders": [row_json.order(entry.order, entry.decided) for entry in waiting],
        "counts": {name: counts[name] for name in ("decisions", "orders", "fills", "answers")},
        "model": _model(records, reader, run),
        "due": None if due is None or _decided(reader, due) else str(due),
        "decided_alone": {} if due is None else reader.decided_alone(due),
        "missed": [] if due is None or calendar is None else [*map(str, missed_sessions(reader, calendar, due))],
        "frozen": _frozen(reader, records.run),
        "operation": None if now is None else operation_rows(reader, records.world, now),
    }


def open_answers(records: Records) -> Mapping[str, bool]:
    """The operator's answers on orders of a desk that are open, by order id: approved, or (False) vetoed."""
    if records.reader is None or records.is_backtest:
        return {}
    waiting = [entry.order.id for entry in records.reader.orders(records.run, open_only=True)]
    return {name: answer.approved for name, answer in approvals(records.reader, waiting).items()}


def late_orders(
    records: Records, calendar: Calendar | None, symbols: Sequence[Symbol], now: datetime | None
) -> frozenset[str]:
    """Orders of a desk of some symbols that were not sent in time, by id, and that its next run ends; none without a
    calendar and a time (UTC)."""
    if records.reader is None or calendar is None or now is None:
        return frozenset()
    times = OrderTimes(calendar, symbols, real_time=False)
    waiting = [one.order for one in records.reader.orders(open_only=True) if one.order.state is OrderState.INTENDED]
    return frozenset(one.id for one in waiting if now >= times.stays_until(one.session))


def _settings(records: Records, reader: JournalReader, run: RunEntry | None) -> Row:
    """The effective settings of the run, and those that are not the settings of the run before it; of a backtest its
    report tells them."""
    if run is None or records.is_backtest:
        return {"settings": None, "changed": None}
    return {"settings": settings_of(reader, run.id), "changed": changed_since(reader, run.id)}


def _value(records: Records, reader: JournalReader) -> Row:
    """The books of this moment, and how those of the last close came there: `change` is that of its session, `since`
    what was booked after it."""
    books, owners = last_books(records)
    since = booked_since(records, books)
    points: Sequence[EquityPoint] = reader.equity(records.world, records.part)
    if books is not None:
        points = [point for point in points if point.session <= books.session]
    rows, initial = measured_closes(records, points)
    last = rows[-1] if rows else None
    change = last.change if last is not None and len(rows) > 1 else None
    return {
        "session": None if books is None else str(books.session),
        "since": _since(since),
        "initial_value": None if initial is None else money(initial),
        "brought_in": money(sum((row.deposits for row in rows), ZERO)),
        "change": None if change is None else float(change),
        "total_return": None if last is None else float(last.growth - 1),
        **row_json.books(books if since is None else since.books),
        **row_json.per_owner(owners),
    }


def missed_sessions(reader: JournalReader, calendar: Calendar, due: date) -> tuple[date, ...]:
    """The sessions of the last two weeks before the one that is due, since the desk's first run, for which no run
    came."""
    came = {run.session for run in reader.runs(RunKind.DAILY) if run.outcome is not RunOutcome.SKIPPED}
    first = min((session for session in came if session is not None), default=due)
    past = calendar.sessions(max(first, due - MISSED_WITHIN), due - timedelta(days=1))
    return tuple(session for session in past if session not in came)


def _decided(reader: JournalReader, session: date) -> bool:
    daily = (run for run in reader.runs(RunKind.DAILY) if run.session == session)
    return any(run.outcome in (RunOutcome.DONE, RunOutcome.WAITING) for run in daily)


def _model(records: Records, reader: JournalReader, run: RunEntry | None) -> Row:
    """The use of models and its cost in USD, in all and by agent, model and month: a backtest that has ended knows its
    own, of all else the calls tell it."""
    if records.is_backtest and run is not None and run.model is not None:
        use = run.model
    else:
        calls = reader.calls(records.run)
        meter = CostMeter(", ".join(dict.fromkeys(call.model for call in calls)))
        meter.restore(calls)
        use = meter.use
    row = row_json.model_use(use)
    unsaid = ("training_cutoff", "prices_as_of", "unresolved_figures")
    agents = {name: _without(own, unsaid) for name, own in row["agents"].items()}
    return {**_without(row, unsaid), "agents": agents}


def _without(row: Row, names: Container[str]) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def positions_document(records: Records) -> Row:
    """The books at the last close (`session`) with what was booked `since`; null before the first. `frozen` are the
    symbols that its run gave no order, `yours` the positions in which orders of the operator's own have traded since
    they were opened."""
    closed, owners = last_books(records)
    since = booked_since(records, closed)
    books = closed if since is None else since.books
    return {
        **records.head,
        "session": None if closed is None else str(closed.session),
        "since": _since(since),
        **row_json.books(books),
        **row_json.per_owner(owners),
        "frozen": {} if records.reader is None else _frozen(records.reader, records.run),
        "yours": [] if books is None or records.reader is None else _yours(records.reader.fills(records.world), books),
    }


def _since(since: Since | None) -> Row | None:
    """The session and the number of trades since a close; null where nothing was booked."""
    return None if since is None else {"session": str(since.books.session), "fills": since.fills}


def _yours(fills: Sequence[Fill], books: EquityPoint) -> list[str]:
    """The symbols held in which the operator's own orders have traded since the position was last flat."""
    found = set[str]()
    held: defaultdict[str, Decimal] = defaultdict(Decimal)
    for fill in fills:
        if fill.session <= books.session:
            held[fill.symbol] += fill.quantity if fill.side is Side.BUY else -fill.quantity
            if is_own(fill.order_id):
                found.add(fill.symbol)
            if not held[fill.symbol]:
                found.discard(fill.symbol)
    return sorted(found & books.portfolio.positions.keys())


def _frozen(reader: JournalReader, run: str | None) -> dict[str, str]:
    """The symbols that a run, or the latest one, has frozen, with the reasons."""
    latest = reader.latest_run() if run is None else reader.run(run)
    return {} if latest is None else reasons(frozen_in(reader, latest.id))


def last_books(records: Records) -> tuple[EquityPoint | None, Sequence[EquityPoint]]:
    """The account's books at the last close (of a daily run, at the session that it was for), and the owners' own where
    they keep any."""
    if records.reader is None:
        return None, ()
    points = records.reader.equity(records.world, records.part, book=None)
    if records.kind == "daily":
        session = records.reader.run(records.run or "").session
        points = tuple(point for point in points if session is None or point.session <= session)
    last = next((point for point in reversed(points) if not point.book), None)
    return last, [point for point in points if last is not None and point.book and point.session == last.session]
