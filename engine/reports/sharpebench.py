"""A backtest as sharpebench's scorer takes it (`sharpebench score FILE`): a board of one submission.

Trace, confidences and outcomes are of decisions: their reasons, and whether the next close went the way that an opinion
with a stated confidence had taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.domain.decision import DIRECTIONS, Action
from engine.reports.documents.backtest import returns_of, sessions_of
from engine.reports.summary import name_of

Document = Mapping[str, Any]


def submission(document: Document) -> list[dict[str, Any]]:
    """The board; the cost of models is 0 where it is unknown, and the trials 0 where nobody counted them."""
    judged, cost = list(_judged(document)), (document["model"] or {}).get("cost")
    orders = [{"event": "order_placed", "risk_gate_passed": True} for _ in document["trades"]]
    reasons = (
        {"event": "decision_rationale", "symbol": made["symbol"], "rationale": made["reason"]}
        for made in document["decisions"]
    )
    run = {
        "returns": returns_of(document),
        "trace": {"events": [*orders, *reasons]},
        "confidences": [confidence for confidence, _ in judged],
        "outcomes": [right for _, right in judged],
        "cost": 0.0 if cost is None else float(cost),
    }
    trials = (document.get("luck") or {}).get("trials") or 0
    return [{"agent_id": f"{name_of(document)} {document['run']}", "runs": [run], "in_sample_trials": trials}]


def _judged(document: Document) -> Iterator[tuple[float, bool]]:
    """Confidence and outcome of every opinion that took a side and stated one, as far as the next close is known."""
    places = {session: number for number, session in enumerate(sessions_of(document))}
    for made in document["decisions"]:
        closes, place = document["closes"][made["symbol"]], places.get(made["session"])
        if place is None or place + 1 >= len(closes) or None in closes[place : place + 2]:
            continue
        change = float(closes[place + 1]) - float(closes[place])
        for opinion in made["opinions"]:
            side = DIRECTIONS.get(Action(opinion["action"]), 0)
            if side and opinion["confidence"] is not None:
                yield opinion["confidence"], side * change > 0
