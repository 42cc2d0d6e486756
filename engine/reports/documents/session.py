"""A run of a desk as one JSON document, read from its journal: printed, notified and reported alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from engine.account.time_weighted import measured, net_deposits
from engine.domain.order import OrderState
from engine.domain.run import Adoption, CashFlow, EquityPoint, RunKind, RunOutcome, TradingMode
from engine.domain.text import money, plain
from engine.errors import MissingData
from engine.execution.controls import halted, paused
from engine.execution.frozen_symbols import frozen_error, frozen_in, reasons
from engine.journal.entries import OrderEntry, RunEntry
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.messages.events import Noticed
from engine.reports.card import card
from engine.reports.documents import row_json
from engine.reports.documents.opening import events_of
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row, open_command, unresolved_by_agent
from engine.reports.documents.settings import changed_since, settings_of
from engine.reports.documents.trail import trail_row

SCHEMA = 1


def session_document(reader: JournalReader, desk: str, run: str, outcome: str | None = None) -> Row:
    """A run of a desk in JSON's own types. Raises MissingData for an unknown run.

    outcome: the run's own unless another is given.
    symbol: the one symbol that the run was for; null for all of the desk's.
    decided_alone: symbols that were left out of it, each with the run of its own that has decided it.
    settings: every effective one; null for a run that ended before it kept them.
    changed: the settings that are not those of the run before, `since` its session.
    halted, paused: the halt and the pause of the desk at this moment.
    decisions: those of the run; `card` is the short form of each one's trail, a text a line.
    orders: those of the run, for the next open.
    waiting: those of them that are not submitted: they wait for approval, or for the end of a halt.
    differences: the points in which broker and journal disagreed.
    fills, cash_flows: those since the run before it, of the operator's own orders too.
    skipped: sessions that passed without a run.
    frozen: symbols that got no order because their data contradicts itself, each with what has to be mended.
    as_of, exchange_close: the moment (UTC) of value, cash and positions, and the exchange's close of the session, which
        is earlier where crypto among shares moves the desk's close; null where the books are not known.
    before: the close before the run's session, the deposits and withdrawals since (`brought_in`, no profit) and the
        `change` without them.
    notes: what a person should know.
    """
    entry = reader.run(run)
    books, before, owners = _books(reader, entry)
    booked_by = _booked_by(reader, run)
    bound, orders = reader.account(), reader.orders(run)
    decisions = reader.decisions(run)
    cards = [list(card(trail_row(trail(reader, one.key)))) for one in decisions]
    unresolved = unresolved_by_agent(decisions, entry.model)
    return {
        "schema": SCHEMA,
        "desk": desk,
        "run": run,
        "session": str(entry.session),
        **row_json.fields(entry, "cycle", "started", "ended", "detail", "label"),
        "outcome": entry.outcome if outcome is None else outcome,
        "symbol": entry.symbols[0] if entry.kind is RunKind.SYMBOL else None,
        "decided_alone": reader.decided_alone(entry.session) if entry.kind is RunKind.DAILY and entry.session else {},
        "halted": row_json.halt(halted(reader)),
        "paused": row_json.halt(paused(reader)),
        "broker": {"kind": entry.extra.get("broker", "simulated"), "account": bound and bound.account},
        "mode": entry.extra.get("mode", TradingMode.AUTO),
        "preset": entry.name,
        "settings": settings_of(reader, run),
        "changed": changed_since(reader, run),
        "decisions": [
            {**row, "card": lines, "open": open_command(row, desk=desk)}
            for row, lines in zip(row_json.decisions(decisions, reader.opinions(run)), cards, strict=True)
        ],
        "orders": [_order(reader, known) for known in orders],
        "waiting": [known.order.id for known in orders if known.order.state is OrderState.INTENDED],
        "differences": list(entry.extra.get("differences", ())),
        "fills": [row_json.desk_fill(fill) for one in booked_by for fill in reader.fills(one)],
        "cash_flows": [_cash_flow(flow) for one in booked_by for flow in reader.cash_flows(one)],
        "adoptions": [_adoption(one) for one in reader.adoptions() if _since(before, one.session, entry.session)],
        "skipped": [str(day) for day in _skipped(reader, entry)],
        "frozen": reasons(frozen_in(reader, run)),
        "before": None if books is None or before is None else _before(reader, before, books),
        **{name: books and entry.extra.get(name) for name in ("as_of", "exchange_close")},
        **row_json.books(books),
        **row_json.per_owner(owners),
        "unresolved_figures": sum(unresolved.values()),
        "model": entry.model and row_json.model_use(entry.model, unresolved),
        "notes": list(_notes(reader, run)),
    }


def raise_frozen(document: Row) -> None:
    """Raise the error that a run with frozen symbols ends with, from its document."""
    if document["frozen"]:
        raise frozen_error(document["frozen"])


def run_of_session(records: Records, session: date | None) -> str:
    """The desk's daily run of a session, or with None the latest that took place; where there is none, the latest of
    one symbol. Raises MissingData that names the latest sessions."""
    runs, alone = records.required.runs(RunKind.DAILY), records.required.runs(RunKind.SYMBOL)
    came = [run for run in runs if run.outcome is not RunOutcome.SKIPPED] or alone
    if session is None and came:
        return came[-1].id
    found = next((run.id for run in (*runs, *reversed(alone)) if run.session == session), None)
    if found is None:
        known = ", ".join(dict.fromkeys(str(run.session) for run in runs[:-6:-1]))
        raise MissingData(f"{records.title} has no run for {session}; the latest are for {known or 'no session yet'}")
    return found


def failure_document(desk: str, session: date | None, mode: TradingMode, broker: str) -> Row:
    """A run that ended before its journal had anything of it."""
    return {
        "schema": SCHEMA,
        "desk": desk,
        "run": None,
        "session": None if session is None else str(session),
        "outcome": RunOutcome.FAILED,
        "broker": {"kind": broker, "account": None},
        "mode": mode,
    }


def _books(
    reader: JournalReader, entry: RunEntry
) -> tuple[EquityPoint | None, EquityPoint | None, Sequence[EquityPoint]]:
    """The books at the close that the run decided on, those before them, and the owners' own at the close."""
    known = reader.equity(book=None)
    points = [one for one in known if not one.book and entry.session is not None and one.session <= entry.session]
    if not points or points[-1].session != entry.session:
        return None, None, ()
    owners = [one for one in known if one.book and one.session == entry.session]
    return points[-1], points[-2] if len(points) > 1 else None, owners


def _booked_by(reader: JournalReader, run: str) -> tuple[str, ...]:
    """The run with those of the operator's own orders since the run before it: each books what it finds."""
    found: list[str] = []
    for one in reader.runs():
        found.append(one.id)
        if one.id == run:
            break
        if one.kind is not RunKind.ORDER and one.outcome is not RunOutcome.SKIPPED:
            found.clear()
    return tuple(found)


def _before(reader: JournalReader, before: EquityPoint, books: EquityPoint) -> Row:
    """The close before, and how it came from there to the books."""
    points = (before, books)
    last = measured(points, net_deposits(points, reader.cash_flows(), reader.adoptions()))[-1]
    return {
        "session": str(before.session),
        "value": money(before.value),
        "brought_in": money(last.deposits),
        "change": None if last.change is None else float(last.change),
    }


def _since(before: EquityPoint | None, day: date, session: date | None) -> bool:
    """True for a day that lies after the close before a session and not after the session."""
    return session is not None and day <= session and (before is None or day > before.session)


def _cash_flow(flow: CashFlow) -> Row:
    """Cash, or shares, that moved without a trade, with the broker's words."""
    return {**row_json.cash_flow(flow), **row_json.fields(flow, "quantity"), "words": flow.description or None}


def _adoption(one: Adoption) -> Row:
    """A difference in which a person took the broker's side."""
    return {**row_json.fields(one, "session", "before", "after", "reason"), "what": one.symbol or "cash"}


def _order(reader: JournalReader, known: OrderEntry) -> Row:
    """An order with how it came to stand so, in the words of who says it."""
    last = reader.order_moves(known.order.id)[-1]
    return row_json.order(known.order, known.decided) | {
        "filled": plain(last.filled_quantity),
        "detail": last.detail or None,
    }


def _skipped(reader: JournalReader, entry: RunEntry) -> Iterator[date]:
    """Sessions without a run between this run and the one before it."""
    earlier = [
        run for run in reader.runs(RunKind.DAILY) if run.session and entry.session and run.session < entry.session
    ]
    before = max(
        (run.session for run in earlier if run.session and run.outcome is not RunOutcome.SKIPPED), default=None
    )
    for run in earlier:
        if run.outcome is RunOutcome.SKIPPED and run.session and (before is None or run.session > before):
            yield run.session


def _notes(reader: JournalReader, run: str) -> Iterator[Mapping[str, Any]]:
    """Notices from while it ran, and notes on it since; each once, however often the run was begun."""
    noticed = [(event.level, event.text) for _, event in events_of(reader, run) if isinstance(event, Noticed)]
    noticed += [(note.level, note.text) for note in reader.notes(run)]
    for level, text in dict.fromkeys(noticed):
        yield {"level": level, "text": text}
