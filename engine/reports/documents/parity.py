"""A recorded day beside its replay, as `paperdesk parity` prints it."""

from __future__ import annotations

from engine.lab.decision_changes import Comparison
from engine.lab.parity import Parity
from engine.reports.documents import row_json
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row


def parity_document(records: Records, found: Parity) -> Row:
    """Decisions and orders of then and of the replay, and where today's data are not what was seen."""
    then = row_json.run(found.run)
    return {
        **records.head,
        "run": found.run.id,
        "session": str(found.session),
        "then": {name: then[name] for name in ("label", "name", "decider")},
        "replayed": {"label": found.label},
        "same": found.same,
        "decisions": [_decision(one) for one in found.comparisons],
        "orders": found.orders,
        "order_changes": [
            {"order": change.what, "then": _plain(change.stood), "replayed": _plain(change.now)}
            for change in found.order_changes
        ],
        "data": list(found.data),
    }


def _plain(value: str | tuple[str, ...]) -> str:
    return (value if isinstance(value, str) else ", ".join(value)) or "none"


def _decision(one: Comparison) -> Row:
    either = one.stood or one.now
    assert either is not None  # a comparison has a side
    return {
        "symbol": either.decision.key.symbol,
        "owner": either.decision.key.owner,
        "same": one.same,
        "same_throughout": one.same_throughout,
        "differs": [change.what for change in one.decision],
        "then": None if one.stood is None else row_json.decision(one.stood.decision, one.stood.opinions),
        "replayed": None if one.now is None else row_json.decision(one.now.decision, one.now.opinions),
    }
