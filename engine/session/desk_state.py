"""The state of a desk before a run, folded from its journal, and earlier runs that never ended or never took place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import TypeVar

from engine.cycle.turn import TradingHistory
from engine.domain.decision import Decision, Opinion
from engine.domain.json_text import from_json
from engine.domain.market import Symbol
from engine.domain.order import OrderState, Side
from engine.domain.portfolio import ZERO
from engine.domain.run import EquityPoint, RunKind, RunOutcome
from engine.execution.controls import Approval, approvals
from engine.execution.limits import cost
from engine.execution.venue import SettledSession
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.market.trading_hours import decision_time
from engine.messages.events import OrderMoved
from engine.session.context import DeskRun, RunState, run_id
from engine.session.owner_books import BookOrders, OwnerBooks
from engine.session.recorded_inputs import moment_of
from engine.session.recorder import BOOK_ORDERS

T = TypeVar("T", Decision, Opinion)


def desk_state(reader: JournalReader) -> RunState:
    """Opinions and outcomes of all runs so far; decisions and opinions that wait for their outcome; the sessions that
    an earlier run settled without learning from them, because it was killed in between; and the owners' books."""
    decisions = sorted(reader.decisions(), key=lambda made: made.key.cycle)
    decided = {made.key for made in decisions}
    opinions = sorted(reader.opinions(), key=lambda made: made.key.cycle)
    made = [*(decision.opinion for decision in decisions), *opinions]
    history = TradingHistory().with_outcomes(reader.outcomes()).with_opinions(made)
    known = {(row.decision_session, row.symbol, row.owner) for rows in history.outcomes.values() for row in rows}
    awaiting = _latest(decisions, known)
    combined = _latest([one for one in opinions if one.key not in decided], known)
    points = reader.equity(book=None)
    sessions = {(one.key.session, one.book) for one in awaiting} | {(one.key.session, "") for one in combined}
    return RunState(
        history,
        awaiting,
        combined,
        _stretches(reader, [pair for pair in _pairs(points) if (pair[0].session, pair[0].book) in sessions]),
        _books(reader, points),
    )


def _latest(made: Iterable[T], known: set[tuple[date, str, str]]) -> tuple[T, ...]:
    """The last of each session, symbol and owner whose outcome is not known yet: earlier cycles were overtaken."""
    last = {(one.key.session, one.key.symbol, one.key.owner): one for one in made}
    return tuple(one for key, one in last.items() if key not in known)


def _pairs(points: Sequence[EquityPoint]) -> list[tuple[EquityPoint, EquityPoint]]:
    """Each close of a book with the next one of the same book."""
    names = dict.fromkeys(point.book for point in points)
    return [pair for name in names for pair in pairwise([point for point in points if point.book == name])]


def _stretches(reader: JournalReader, pairs: Sequence[tuple[EquityPoint, EquityPoint]]) -> tuple[SettledSession, ...]:
    if not pairs:
        return ()
    fills, flows, adoptions = reader.fills(book=None), reader.cash_flows(book=None), reader.adoptions()
    return tuple(
        SettledSession(
            before,
            after,
            tuple(f for f in fills if before.session < f.session <= after.session and f.book == after.book),
            tuple(f for f in flows if before.session < f.session <= after.session and f.book == after.book),
            tuple(a for a in adoptions if before.session < a.session <= after.session and not after.book),
        )
        for before, after in pairs
    )


def _books(reader: JournalReader, points: Sequence[EquityPoint]) -> OwnerBooks:
    """The owners' books at their last close, with the orders that wait, and the sessions that were not allocated."""
    last = {point.book: point for point in points if point.book}
    if not last:
        return OwnerBooks()
    closed = next(iter(last.values())).session
    account = [pair for pair in _pairs([point for point in points if not point.book]) if pair[0].session >= closed]
    return OwnerBooks(last, _waiting(reader, closed), _stretches(reader, account))


def _waiting(reader: JournalReader, closed: date) -> BookOrders | None:
    """The orders of the books that were decided on the last close, by one run or by several, each for other symbols."""
    texts = [reader.document(run.id, f"{BOOK_ORDERS} {closed}") for run in reader.runs() if run.session == closed]
    made = [from_json(BookOrders, text) for text in texts if text is not None]
    if not made:
        return None
    return BookOrders(
        session=closed,
        orders=tuple(order for one in made for order in one.orders),
        prices={symbol: price for one in made for symbol, price in one.prices.items()},
        sent=tuple(symbol for one in made for symbol in one.sent),
    )


def decided_elsewhere(desk: DeskRun) -> tuple[Symbol, ...]:
    """The symbols that other runs after the close of the session have decided, or whose order of one was recovered from
    the account."""
    keys = [one.key for one in desk.reader.decisions(first=desk.session, last=desk.session)]
    sent = desk.reader.orders(session=desk.session)
    made = [(one.run, one.cycle, one.symbol) for one in keys] + [(one.run, one.cycle, one.order.symbol) for one in sent]
    return tuple(dict.fromkeys(symbol for run, cycle, symbol in made if run != desk.run and cycle == desk.number))


def cash_waiting(desk: DeskRun) -> Decimal:
    """The cash that buys of other runs of the session may take which are intended and not sent, as one that waits for
    approval, at the close that they were decided on."""
    known = desk.market.at(decision_time(desk.calendar, desk.session))
    waiting = (entry for entry in desk.reader.orders(session=desk.session, open_only=True) if entry.run != desk.run)
    orders = [entry.order for entry in waiting if entry.order.state is OrderState.INTENDED]
    buys = (one for one in orders if one.side is Side.BUY and one.symbol in known.symbols and known.count(one.symbol))
    return sum((cost(order, known.close(order.symbol)) for order in buys), ZERO)


def close_abandoned(desk: DeskRun) -> Sequence[OrderMoved]:
    """End earlier runs that were killed and never gone on with. Orders that earlier runs intended for an earlier
    session are not traded late; those of earlier cycles of the same session stay until one decides again. What a killed
    run of one symbol has not decided, the daily run of its session decides. Returns the events of orders that ended,
    for after the start of the run."""
    earlier = [run for run in desk.reader.runs() if run.kind is not RunKind.BACKTEST and _before(run, desk)]
    open_orders = desk.reader.orders(open_only=True)
    passed = {run.id: run.outcome for run in earlier if run.session != desk.session}
    answered, moved = approvals(desk.reader, [entry.order.id for entry in open_orders]), []
    for entry in open_orders:
        if entry.run in passed and entry.order.state is OrderState.INTENDED:
            expired, now = entry.order.moved(OrderState.EXPIRED), desk.clock.now()
            detail = _unsent(passed[entry.run], answered.get(entry.order.id))
            desk.journal.order_moved(expired, now, detail=detail)
            moved.append(OrderMoved(desk.run, now, expired, detail))
    for run in earlier:
        if run.outcome is None:
            detail = "killed, and not gone on with while it could be"
            desk.journal.run_finished(run.id, RunOutcome.FAILED, desk.clock.now(), detail=detail)
    return moved


def _unsent(outcome: RunOutcome | None, answer: Approval | None) -> str:
    """The reason why an order of a run that ended so was not sent while its session was the last one."""
    if answer is not None:
        return f"it was {'approved, and not sent' if answer.approved else 'vetoed'} before its session had passed"
    if outcome is RunOutcome.WAITING:
        return "nobody approved it before its session had passed"
    if outcome is RunOutcome.HALTED:
        return "the desk was halted, and its session has passed"
    return "its run did not come to an end and its session has passed"


def _before(run: RunEntry, desk: DeskRun) -> bool:
    """True for a run that came before: within the same session only cycles of a lower number did, and runs of one
    symbol before those of all."""
    if run.session == desk.session:
        alone = run.kind is RunKind.SYMBOL and desk.only is None
        return alone or (run.kind is RunKind.INTRADAY and desk.number > run.cycle)
    return True


def decided_until(desk: DeskRun, session: date) -> datetime:
    """The moment up to which other cycles that rest on a session have read the news, UTC."""
    for run in reversed(desk.reader.runs(RunKind.INTRADAY)):
        decided = run.session == session and run.id != desk.run and desk.reader.decisions(run.id)
        if decided and (inputs := desk.reader.inputs(run.id, run.cycle)):
            return moment_of(inputs)
    return decision_time(desk.calendar, session)


def skip_missed(desk: DeskRun) -> tuple[date, ...]:
    """Write down the sessions that passed without a decision since the last one: no run took place, or what it needed,
    such as a model, could not be had."""
    runs = {run.session: run for run in desk.reader.runs(RunKind.DAILY) if run.session is not None}
    failed = [session for session, run in runs.items() if session < desk.session and _decided_nothing(desk, run)]
    taken = [session for session, run in runs.items() if run.outcome != RunOutcome.SKIPPED and session not in failed]
    alone = {run.session for run in desk.reader.runs(RunKind.SYMBOL) if run.session and run.session < desk.session}
    if not (taken or failed or alone) or max(taken, default=date.min) >= desk.session:
        return ()
    first = max(taken) + timedelta(days=1) if taken else min([*failed, *alone])
    missed = desk.calendar.sessions(first, desk.session - timedelta(days=1))
    for session in missed:
        if session not in runs:
            _skip(desk, session)
        elif session in failed:
            run = runs[session]
            detail = f"nothing was decided while it was the last session: {run.detail}"
            desk.journal.run_finished(run.id, RunOutcome.SKIPPED, desk.clock.now(), detail=detail, model=run.model)
    return tuple(missed)


def _decided_nothing(desk: DeskRun, run: RunEntry) -> bool:
    return run.outcome in (RunOutcome.FAILED, RunOutcome.PAUSED) and not desk.reader.decisions(run.id)


def _skip(desk: DeskRun, session: date) -> None:
    identity, now = run_id(desk.desk, session), desk.clock.now()
    detail = "no run took place while it was the last session"
    if alone := desk.reader.decided_alone(session):
        detail = f"no daily run took place while it was the last session; decided alone: {', '.join(alone)}"
    entry = RunEntry(
        id=identity,
        kind=RunKind.DAILY,
        name=desk.name,
        started=now,
        label=desk.label,
        spec=None,
        symbols=desk.symbols,
        session=session,
        cycle=1,
    )
    with desk.journal.together():
        desk.journal.run_started(entry)
        desk.journal.run_finished(identity, RunOutcome.SKIPPED, now, detail=detail)
