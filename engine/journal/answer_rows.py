"""Rows of answers and charts, beside the values that they stand for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from engine.domain.chart import ChartSpec
from engine.domain.model_call import FailureKind, Message, ModelFailure, ModelResult, Usage
from engine.journal.codec import Row, decimal_or_none, from_json, moment, packed, text_or_none, to_json, unpacked
from engine.journal.decision_rows import key_of, key_row
from engine.journal.entries import AnswerEntry, CallCost


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
    """An answer from its row and its system prompt; `chart` gives a chart by its fingerprint."""
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
    """Messages, text, raw and checked answer of an answer's row, compressed or, from before version 7, plain."""
    if row["packed"] is not None:
        found: Mapping[str, Any] = json.loads(unpacked(row["packed"]))
        return found
    parsed = {name: None if row[name] is None else json.loads(row[name]) for name in ("messages", "raw", "answer")}
    return parsed | {"text": row["text"]}


def call_of(row: Mapping[str, Any]) -> CallCost:
    """The cost of a call, from its columns."""
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
