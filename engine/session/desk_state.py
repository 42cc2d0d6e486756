"""The state of a desk before a run, folded once from its journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from itertools import pairwise
from typing import TypeVar

from engine.cycle.turn import TradingHistory
from engine.domain.decision import Decision, Opinion
from engine.domain.run import EquityPoint
from engine.execution.venue import SettledSession
from engine.journal.codec import from_json
from engine.journal.reader import JournalReader
from engine.session.context import RunState
from engine.session.owner_books import BookOrders, OwnerBooks
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
    """The orders of the books that were decided on the last close."""
    for run in reversed(reader.runs()):
        if run.session == closed:
            text = reader.document(run.id, f"{BOOK_ORDERS} {closed}")
            if text is not None:
                return from_json(BookOrders, text)
    return None
