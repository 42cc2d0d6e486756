"""Decisions beside the same ones taken again, as `paperdesk why --redecide` and `paperdesk parity` print them."""

from __future__ import annotations

from engine.journal.entries import Recalled, Trail
from engine.lab.decision_changes import AnswerChange, Comparison, Field, Redecided, decision_fields
from engine.lab.recorded_turn import Parity
from engine.market.as_of import MarketAsOf
from engine.reports.documents import row_json
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row
from engine.reports.documents.trail import trail_row
from engine.session.cost_meter import use_of


def redecision_document(records: Records, done: Redecided, market: MarketAsOf | None = None) -> Row:
    """Both sides, whole, with what differs; closes since the decision are those of `market`."""
    then, changes = row_json.run(done.run), done.changes
    return {
        **records.head,
        "run": done.run.id,
        "symbol": done.symbol,
        "session": str(done.session),
        "asked": {"preset": changes.preset, "model": changes.model, "without": list(changes.without)},
        "then": {name: then[name] for name in ("label", "name", "decider")},
        "now": {"label": done.label, "name": done.preset},
        "same": all(one.same for one in done.comparisons),
        "same_throughout": all(one.same_throughout for one in done.comparisons),
        "notes": list(done.notes),
        "decisions": [_comparison(one, market) for one in done.comparisons],
    }


def _comparison(one: Comparison, market: MarketAsOf | None) -> Row:
    return {
        **row_json.fields(one, "same", "same_throughout"),
        "differs": [change.what for change in one.decision],
        "changes": [row_json.fields(change) for change in one.decision],
        "agents": [_agent(change, one) for change in one.answers],
        "memories": [{"then": _place(change.then), "now": _place(change.now)} for change in one.memories],
        "then": _side(one.then, market),
        "now": _side(one.now, market),
    }


def _agent(change: AnswerChange, one: Comparison) -> Row:
    """An agent whose answers differ; `decides` where it is the one whose answer the decision rests on."""
    sides = [side for side in (one.then, one.now) if side is not None]
    last = [answer for side in sides for answer in {each.key: each for each in side.answers}.values()]
    now, asked = change.now, change.then or change.now
    return {
        "owner": asked and asked.key.owner,
        **row_json.fields(change, "agent", "same_question"),
        "then": change.then and change.then.answer,
        "now": now and now.answer,
        "fields": [field.what for field in change.fields],
        "changes": [row_json.fields(field) for field in change.fields],
        "decides": now in last,
        "asked": [side for side, answer in (("then", change.then), ("now", now)) if answer is not None],
        "reason": "" if now is None else f"{now.outcome}: {now.reason}",
    }


def _place(one: Recalled | None) -> Row | None:
    return None if one is None else row_json.fields(one.memory, "id", "layer", "rank")


def _side(trail: Trail | None, market: MarketAsOf | None) -> Row | None:
    if trail is None:
        return None
    fields = {
        name: value if isinstance(value, str) else [*value] for name, value in decision_fields(trail.decision).items()
    }
    return trail_row(trail, market) | {"model": row_json.model_use(use_of(trail.answers)), "words": fields}


def parity_document(records: Records, parity: Parity) -> Row:
    """Decisions and orders of then and of the replay, and where today's data are not what was seen."""
    then = row_json.run(parity.run)
    return {
        **records.head,
        "run": parity.run.id,
        "session": str(parity.session),
        "then": {name: then[name] for name in ("label", "name", "decider")},
        "replayed": {"label": parity.label},
        "same": parity.same,
        "decisions": [_decision(one) for one in parity.comparisons],
        "orders": parity.orders,
        "order_changes": [
            {"order": change.what, "then": _text(change.then), "replayed": _text(change.now)}
            for change in parity.order_changes
        ],
        "data": list(parity.data),
    }


def _text(value: Field) -> str:
    return (value if isinstance(value, str) else ", ".join(value)) or "none"


def _decision(one: Comparison) -> Row:
    either = one.then or one.now
    assert either is not None  # a comparison has a side
    return {
        "symbol": either.decision.key.symbol,
        "owner": either.decision.key.owner,
        "same": one.same,
        "same_throughout": one.same_throughout,
        "differs": [change.what for change in one.decision],
        "then": None if one.then is None else row_json.decision(one.then.decision, one.then.opinions),
        "replayed": None if one.now is None else row_json.decision(one.now.decision, one.now.opinions),
    }
