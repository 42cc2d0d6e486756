"""A debate as a row of a decision's trail: every owner's advice round by round, the comments, and who was right."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.debate import Debate, RoundAdvice
from engine.reports.documents import row_json
from engine.reports.documents.closes import CloseAfter
from engine.reports.documents.row_json import Row


def debate_row(debate: Debate, closes: Sequence[CloseAfter]) -> Row:
    """A debate. An owner's results are what its last advice gained or avoided by each of the closes after the decision,
    as fractions; None for a hold and for an abstention."""
    owners = dict.fromkeys(one.owner for one in debate.advice)
    return {
        **row_json.fields(debate, "decides", "ended", "rounds"),
        "owners": [_owner(debate, owner, closes) for owner in owners],
        "comments": [
            row_json.fields(one, "round", "author", "receiver", "stance", "text", "about") for one in debate.comments
        ],
    }


def _owner(debate: Debate, owner: str, closes: Sequence[CloseAfter]) -> Row:
    advice = debate.of(owner)
    last = advice[-1].advice
    side = 0 if last is None else (last.level > 0) - (last.level < 0)
    return {
        "owner": owner,
        "changed": debate.changed(owner),
        "advice": [_advice(one) for one in advice],
        "results": [
            {"sessions": one.sessions, "session": str(one.session), "result": side * one.change if side else None}
            for one in closes
        ],
    }


def _advice(one: RoundAdvice) -> Row:
    return {
        **row_json.fields(one, "round", "advice", "trade", "reason"),
        "confidence": None if one.confidence is None else float(one.confidence),
    }
