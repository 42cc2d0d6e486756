"""Positions at the last close, as `paperdesk positions` prints them."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.run import EquityPoint
from engine.reports.documents import row_json
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row


def positions_document(records: Records) -> Row:
    """The books at the last close; null before the first."""
    books, owners = last_books(records)
    session = None if books is None else str(books.session)
    return {**records.head, "session": session, **row_json.books(books), **row_json.per_owner(owners)}


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
