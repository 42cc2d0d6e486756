"""The changes of a desk since an event of its journal, in three figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from engine.reports.documents.account import closes, measured_closes
from engine.reports.documents.records import Records, records_at


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
