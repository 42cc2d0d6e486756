"""Runs, answers, decisions and outcomes: their rows and the values they stand for, side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from engine.domain.chart import ChartSpec
from engine.domain.decision import Action, Cut, Decision, DecisionKey, Outcome, Proposal, SizingRule
from engine.domain.model_call import FailureKind, Message, ModelFailure, ModelResult, Usage
from engine.domain.recollection import Recollection
from engine.domain.run import ModelUse, RunKind, RunOutcome, RunSpec
from engine.journal.codec import Row, decimal_or_none, from_json, moment, packed, text_or_none, to_json, unpacked
from engine.journal.entries import AnswerEntry, CallCost, Note, Recalled, RunEntry
from engine.messages import commands


def run_of(row: Mapping[str, Any]) -> RunEntry:
    """A run from its row."""
    return RunEntry(
        id=row["id"],
        kind=RunKind(row["kind"]),
        name=row["name"],
        started=datetime.fromisoformat(row["started"]),
        label=row["label"],
        spec=None if row["spec"] is None else from_json(RunSpec, row["spec"]),
        symbols=tuple(json.loads(row["symbols"])),
        session=None if row["session"] is None else date.fromisoformat(row["session"]),
        cycle=row["cycle"],
        ended=None if row["ended"] is None else datetime.fromisoformat(row["ended"]),
        outcome=None if row["outcome"] is None else RunOutcome(row["outcome"]),
        value=decimal_or_none(row["value"]),
        detail=row["detail"],
        model=None if row["model"] is None else from_json(ModelUse, row["model"]),
        extra=json.loads(row["extra"] or "{}"),
    )


def run_row(run: RunEntry) -> Row:
    """A run that begins, as a row."""
    return {
        "id": run.id,
        "kind": run.kind.value,
        "name": run.name,
        "label": run.label,
        "spec": None if run.spec is None else to_json(run.spec),
        "symbols": to_json(run.symbols),
        "session": text_or_none(run.session),
        "cycle": run.cycle,
        "started": moment(run.started),
        "detail": run.detail,
    }


def note_of(row: Mapping[str, Any]) -> Note:
    """A note from its row."""
    time = None if row["time"] is None else datetime.fromisoformat(row["time"])
    return Note(row["run"], row["level"], row["text"], time)


def command_of(row: Mapping[str, Any]) -> tuple[int, datetime, commands.Command]:
    """A command from its row: number, time, command."""
    kind: type[commands.Command] = getattr(commands, row["type"])
    return row["seq"], datetime.fromisoformat(row["time"]), from_json(kind, row["json"])


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
        "action": decision.action.value,
        "size": str(decision.size),
        "asked_action": proposal.action.value,
        "asked_size": proposal.size,
        "asked_rule": None if proposal.rule is None else proposal.rule.value,
        "explanation": proposal.explanation,
        "abstained": proposal.abstained_because,
        "cuts": to_json(decision.cuts),
        "unresolved": to_json(decision.unresolved_figures),
        "evidence": to_json(decision.evidence),
    }


def decision_of(row: Mapping[str, Any]) -> Decision:
    """A decision from its row."""
    rule = row["asked_rule"]
    return Decision(
        key=key_of(row),
        action=Action(row["action"]),
        size=Decimal(row["size"]),
        proposal=Proposal(
            Action(row["asked_action"]),
            row["asked_size"],
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
    )


def memory_row(memory: Recollection) -> Row:
    """What a memory says, as a row that its id names."""
    return {"id": memory.id, "kind": memory.kind, "written": memory.session.isoformat(), "text": memory.text}


def recalled_row(key: DecisionKey, memory: Recollection, cited: bool) -> Row:
    """How a memory stood when it was recalled for a decision, as a row."""
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
    """A recalled memory from its row joined with what the memory says."""
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


def charts_in(entry: AnswerEntry) -> dict[str, ChartSpec]:
    """Every chart of an answer by its fingerprint, those of its question first."""
    shown = (*entry.charts, *(chart for message in entry.messages for chart in message.charts))
    return {chart.fingerprint(): chart for chart in shown}


def chart_row(fingerprint: str, chart: ChartSpec) -> Row:
    """A chart as a row; its text is the one that the fingerprint is made of."""
    return {"fingerprint": fingerprint, "json": "", "packed": packed(to_json(chart))}


def chart_of(row: Mapping[str, Any]) -> ChartSpec:
    """A chart from its row."""
    return from_json(ChartSpec, row["json"] if row["packed"] is None else unpacked(row["packed"]))


def answer_row(entry: AnswerEntry, system: str) -> Row:
    """An answer as a row that names its system prompt by hash and its charts by fingerprint."""

    def names(shown: Iterable[ChartSpec]) -> list[str]:
        return [chart.fingerprint() for chart in shown]

    result, failure = entry.result, entry.result.failure
    texts = {
        "messages": [[message.role, message.text, names(message.charts)] for message in entry.messages],
        "answer": entry.answer,
        "raw": result.answer,
        "text": result.text.encode("utf-8", "backslashreplace").decode("utf-8"),
    }
    return key_row(entry.key) | {
        "agent": entry.agent,
        "attempt": entry.attempt,
        "sample": entry.sample,
        "time": moment(entry.time),
        "model": result.model,
        "prompt_hash": entry.prompt_hash,
        "system": system,
        "messages": "",
        "charts": to_json(names(entry.charts)),
        "seen": int(entry.seen),
        "view": entry.view,
        "outcome": entry.outcome,
        "reason": entry.reason,
        "text": "",
        "packed": packed(to_json(texts)),
        "failure": None if failure is None else failure.kind.value,
        "failure_detail": None if failure is None else failure.detail,
        "stop_reason": result.stop_reason,
        "input_tokens": result.usage.input_tokens,
        "cached_input_tokens": result.usage.cached_input_tokens,
        "output_tokens": result.usage.output_tokens,
        "cost": text_or_none(result.cost),
        "latency": float(result.latency),
        "request_hash": result.request_hash,
        "cached": int(result.cached),
        "notes": to_json(result.notes),
    }


def answer_of(row: Mapping[str, Any], system: str, chart: Callable[[str], ChartSpec]) -> AnswerEntry:
    """An answer from its row, its system prompt, and what finds a chart by its fingerprint."""
    failure, texts = row["failure"], _texts(row)
    result = ModelResult(
        model=row["model"],
        answer=texts["raw"],
        failure=None if failure is None else ModelFailure(FailureKind(failure), row["failure_detail"]),
        text=texts["text"],
        stop_reason=row["stop_reason"],
        usage=Usage(row["input_tokens"], row["cached_input_tokens"], row["output_tokens"]),
        cost=decimal_or_none(row["cost"]),
        latency=row["latency"],
        request_hash=row["request_hash"],
        cached=bool(row["cached"]),
        notes=tuple(json.loads(row["notes"])),
    )
    return AnswerEntry(
        key=key_of(row),
        time=datetime.fromisoformat(row["time"]),
        agent=row["agent"],
        attempt=row["attempt"],
        prompt_hash=row["prompt_hash"],
        system=system,
        messages=tuple(
            Message(role, text, tuple(chart(fingerprint) for fingerprint in shown))
            for role, text, shown in texts["messages"]
        ),
        result=result,
        outcome=row["outcome"],
        reason=row["reason"],
        answer=texts["answer"],
        charts=tuple(chart(fingerprint) for fingerprint in json.loads(row["charts"])),
        seen=bool(row["seen"]),
        sample=row["sample"],
        view=row["view"],
    )


def _texts(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Messages, text, raw and checked answer of an answer's row, as it was written or before texts were compressed."""
    if row["packed"] is not None:
        found: Mapping[str, Any] = json.loads(unpacked(row["packed"]))
        return found
    parsed = {name: None if row[name] is None else json.loads(row[name]) for name in ("messages", "raw", "answer")}
    return parsed | {"text": row["text"]}


def call_of(row: Mapping[str, Any]) -> CallCost:
    """What a call cost, from the columns that tell it."""
    return CallCost(
        agent=row["agent"],
        model=row["model"],
        abstained=row["outcome"] == "abstained",
        cached=bool(row["cached"]),
        input_tokens=row["input_tokens"],
        cached_input_tokens=row["cached_input_tokens"],
        output_tokens=row["output_tokens"],
        cost=decimal_or_none(row["cost"]),
        latency=row["latency"],
    )


def outcome_row(outcome: Outcome) -> Row:
    """What a decision earned, as a row."""
    return {
        "decision_session": outcome.decision_session.isoformat(),
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
    """What a decision earned, from its row."""
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
    )
