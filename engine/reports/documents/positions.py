"""Positions at the last close, as `paperdesk positions` prints them."""

from __future__ import annotations

from engine.domain.decimal_text import money
from engine.domain.run import EquityPoint
from engine.reports.documents import row_json
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row


def positions_document(records: Records) -> Row:
    """The books at the last close; null before the first."""
    books = last_books(records)
    if books is None:
        return {**records.head, "session": None, "value": None, "cash": None, "positions": {}}
    return {
        **records.head,
        "session": str(books.session),
        "value": money(books.value),
        "cash": money(books.portfolio.cash),
        "positions": row_json.held(books),
    }


def last_books(records: Records) -> EquityPoint | None:
    """The books at the last close; of a daily run, at the session that it was for."""
    if records.reader is None:
        return None
    points = records.reader.equity(records.world, records.part)
    if records.kind == "daily":
        session = records.reader.run(records.run or "").session
        points = tuple(point for point in points if session is None or point.session <= session)
    return points[-1] if points else None
