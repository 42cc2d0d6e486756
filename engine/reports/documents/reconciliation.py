"""A broker's account beside the journal, as `paperdesk reconcile` prints it."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from engine.account.reconciliation import ReconciliationReport
from engine.domain.decimal_text import plain
from engine.domain.run import Adoption
from engine.reports.documents import row_json
from engine.reports.documents.equity import BrokerValues, broker_row
from engine.reports.documents.row_json import Row

SCHEMA = 1


def reconciliation_document(
    desk: str, report: ReconciliationReport, adopted: Iterable[Adoption], values: BrokerValues
) -> Row:
    """Both sides and their differences; `begun` is false for a journal that has nothing of the account yet."""
    ours, theirs = report.journal.portfolio(report.activity), report.account
    begun = report.journal.bound is not None
    held = {symbol: position.quantity for symbol, position in theirs.positions.items()}
    return {
        "schema": SCHEMA,
        "desk": desk,
        "account": theirs.id,
        "begun": begun,
        "agree": not report.differences,
        "cash": _sides(ours.cash if begun else None, theirs.cash),
        "positions": {
            symbol: _sides(ours.quantity(symbol) if begun else None, held.get(symbol))
            for symbol in sorted(ours.positions.keys() | held.keys())
        },
        "differences": [row_json.difference(one) for one in report.differences],
        "adopted": [
            {"what": one.symbol or "cash", "before": plain(one.before), "after": plain(one.after)} for one in adopted
        ],
        "values": [{"session": str(one.session), **broker_row(one)} for one in values.differing],
    }


def _sides(journal: Decimal | None, broker: Decimal | None) -> Row:
    sides = {"journal": journal, "broker": broker}
    return {side: None if amount is None else plain(amount) for side, amount in sides.items()}
