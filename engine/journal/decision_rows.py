"""Rows of decisions, opinions, recalled memories and outcomes, beside the values that they stand for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from engine.domain.decision import Action, Cut, Decision, DecisionKey, Opinion, Outcome, Proposal, SizingRule
from engine.domain.recollection import Recollection
from engine.journal.codec import Row, decimal_or_none, text_or_none, to_json
from engine.journal.entries import Recalled


def key_row(key: DecisionKey) -> Row:
    """A decision's key as columns."""
    return {
        "run": key.run,
        "session": key.session.isoformat(),
        "cycle": key.cycle,
        "symbol": key.symbol,
        "owner": key.owner,
    }


def key_of(row: Mapping[str, Any]) -> DecisionKey:
    """A decision's key from its columns."""
    return DecisionKey(row["run"], date.fromisoformat(row["session"]), row["cycle"], row["symbol"], row["owner"])


def decision_row(decision: Decision) -> Row:
    """A decision as a row."""
    proposal = decision.proposal
    return key_row(decision.key) | {
        "book": decision.book,
        "action": decision.action.value,
        "size": str(decision.size),
        "proposed_action": proposal.action.value,
        "proposed_size": proposal.size,
        "proposed_rule": None if proposal.rule is None else proposal.rule.value,
        "explanation": proposal.explanation,
        "abstained": proposal.abstained_because,
        "cuts": to_json(decision.cuts),
        "unresolved": to_json(decision.unresolved_figures),
        "evidence": to_json(decision.evidence),
    }


def decision_of(row: Mapping[str, Any]) -> Decision:
    """A decision from its row."""
    rule = row["proposed_rule"]
    return Decision(
        key=key_of(row),
        action=Action(row["action"]),
        size=Decimal(row["size"]),
        proposal=Proposal(
            Action(row["proposed_action"]),
            row["proposed_size"],
            None if rule is None else SizingRule(rule),
            row["explanation"],
            row["abstained"],
        ),
        cuts=tuple(
            Cut(cut["rule"], Decimal(cut["asked"]), Decimal(cut["allowed"]), cut["reason"])
            for cut in json.loads(row["cuts"])
        ),
        unresolved_figures=tuple(json.loads(row["unresolved"])),
        evidence=tuple(json.loads(row["evidence"])),
        book=row["book"],
    )


def opinion_row(opinion: Opinion) -> Row:
    """An owner's opinion as a row."""
    return key_row(opinion.key) | {
        "action": opinion.action.value,
        "size": str(opinion.size),
        "reason": opinion.reason,
        "rule": None if opinion.rule is None else opinion.rule.value,
        "evidence": to_json(opinion.evidence),
        "unresolved": to_json(opinion.unresolved_figures),
        "confidence": text_or_none(opinion.confidence),
    }


def opinion_of(row: Mapping[str, Any]) -> Opinion:
    """An owner's opinion from its row."""
    return Opinion(
        key=key_of(row),
        action=Action(row["action"]),
        size=Decimal(row["size"]),
        reason=row["reason"],
        rule=None if row["rule"] is None else SizingRule(row["rule"]),
        evidence=tuple(json.loads(row["evidence"])),
        unresolved_figures=tuple(json.loads(row["unresolved"])),
        confidence=decimal_or_none(row["confidence"]),
    )


def memory_row(memory: Recollection) -> Row:
    """The text of a memory, as a row that its id names."""
    return {"id": memory.id, "kind": memory.kind, "written": memory.session.isoformat(), "text": memory.text}


def recalled_row(key: DecisionKey, memory: Recollection, cited: bool) -> Row:
    """The figures that a memory was ranked by when it was recalled for an opinion, as a row."""
    return key_row(key) | {
        "memory": memory.id,
        "layer": memory.layer,
        "recency": float(memory.recency),
        "relevancy": float(memory.relevancy),
        "importance": float(memory.importance),
        "score": float(memory.score),
        "rank": memory.rank,
        "types": to_json(memory.types),
        "cited": int(cited),
    }


def recalled_of(row: Mapping[str, Any]) -> Recalled:
    """A recalled memory from its row joined with the memory's text."""
    memory = Recollection(
        id=row["memory"],
        kind=row["kind"],
        layer=row["layer"],
        session=date.fromisoformat(row["written"]),
        text=row["text"],
        recency=row["recency"],
        relevancy=row["relevancy"],
        importance=row["importance"],
        score=row["score"],
        rank=row["rank"],
        types=tuple(json.loads(row["types"])),
    )
    return Recalled(memory, bool(row["cited"]))


def outcome_row(outcome: Outcome) -> Row:
    """The outcome of a decision as a row."""
    return {
        "decision_session": outcome.decision_session.isoformat(),
        "cycle": outcome.cycle,
        "horizon": outcome.horizon,
        "session": outcome.session.isoformat(),
        "symbol": outcome.symbol,
        "owner": outcome.owner,
        "action": outcome.action.value,
        "size": str(outcome.size),
        "close": str(outcome.close),
        "reward": str(outcome.reward),
        "cumulative": str(outcome.cumulative),
        "key_factors": outcome.key_factors,
    }


def outcome_of(row: Mapping[str, Any]) -> Outcome:
    """The outcome of a decision from its row."""
    return Outcome(
        decision_session=date.fromisoformat(row["decision_session"]),
        session=date.fromisoformat(row["session"]),
        symbol=row["symbol"],
        owner=row["owner"],
        action=Action(row["action"]),
        size=Decimal(row["size"]),
        close=Decimal(row["close"]),
        reward=Decimal(row["reward"]),
        cumulative=Decimal(row["cumulative"]),
        key_factors=row["key_factors"],
        cycle=row["cycle"],
        horizon=row["horizon"],
    )
