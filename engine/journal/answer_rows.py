"""Map answers of models, their charts and their events to rows and back. What the rest of a row says is said once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from engine.domain.chart import ChartSpec
from engine.domain.decision import DecisionKey
from engine.domain.json_text import from_json, to_json
from engine.domain.model_call import AnswerRecord, FailureKind, Message, ModelFailure, ModelResult
from engine.journal.database import reading
from engine.journal.entries import StatedAnswer
from engine.journal.rows import Row, row_of, stored, value_of
from engine.messages.answer_text import agent_answered
from engine.messages.events import AgentAnswered, Event, from_plain, to_plain

SAME = "="
"""In an answer's row: `raw` is what `text` says as JSON, in the order of the text; `answer` is what `raw` says."""

CHART_DIGITS = 32
"""Digits of its fingerprint that name a chart."""


def charts_in(entry: AnswerRecord) -> dict[str, ChartSpec]:
    """Every chart of an answer by its name, those of its question first."""
    shown = (*entry.charts, *(chart for message in entry.messages for chart in message.charts))
    return {_name(chart): chart for chart in shown}


def chart_of(row: Mapping[str, Any]) -> ChartSpec:
    """A chart from its row."""
    with reading(row):
        return from_json(ChartSpec, row["json"])


def answer_row(entry: AnswerRecord, system: str) -> Row:
    """An answer as a row that names its system prompt by hash and its charts by fingerprint."""
    result, failure = entry.result, entry.result.failure
    raw, text = stored(result.answer), stored(result.text)
    of_entry = row_of(entry, "result", "answer", "messages", "charts", "step")
    return (
        of_entry
        | row_of(result, "answer", "failed")
        | {
            "system": system,
            "messages": [[message.role, message.text, _names(message.charts)] for message in entry.messages],
            "charts": _names(entry.charts),
            "answer": SAME if raw is not None and stored(entry.answer) == raw else entry.answer,
            "raw": SAME if raw is not None and _canonical(text) == raw else raw,
            "text": text,
            "failure": None if failure is None else failure.kind,
            "failure_detail": None if failure is None else failure.detail,
        }
    )


def answer_of(row: Mapping[str, Any], chart: Callable[[str], ChartSpec]) -> AnswerRecord:
    """An answer from its row joined with its system prompt; `chart` gives a chart by its name."""
    with reading(row):
        texts = texts_of(row)
        messages = tuple(Message(role, text, tuple(map(chart, shown))) for role, text, shown in texts["messages"])
        shown_first = tuple(map(chart, json.loads(row["charts"])))
        result = _result_of(row, texts)
    return value_of(
        AnswerRecord,
        row,
        system=row["system_text"],
        messages=messages,
        result=result,
        answer=texts["answer"],
        charts=shown_first,
        step="",
    )


def stated_answer_of(row: Mapping[str, Any]) -> StatedAnswer:
    """The checked answer of an answer's row, without its question."""
    with reading(row):
        answer = texts_of(row)["answer"]
    return value_of(StatedAnswer, row, answer=answer)


def event_of_answer(row: Mapping[str, Any], step: str, time: datetime) -> AgentAnswered:
    """The event of an answer to the question `step`, from the answer's row."""
    with reading(row):
        texts = texts_of(row)
        result = _result_of(row, texts)
    return agent_answered(
        time,
        value_of(DecisionKey, row),
        step,
        result=result,
        outcome=row["outcome"],
        reason=row["reason"],
        answer=texts["answer"],
    )


def texts_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Messages, text, raw and checked answer of an answer's row."""
    # The text itself, in which the fields stand in the order that the model gave them.
    raw = row["text"] if row["raw"] == SAME else row["raw"]
    answer = raw if row["answer"] == SAME else row["answer"]
    columns = {"messages": row["messages"], "raw": raw, "answer": answer}
    return {name: None if text is None else json.loads(text) for name, text in columns.items()} | {"text": row["text"]}


def _result_of(row: Mapping[str, Any], texts: Mapping[str, Any]) -> ModelResult:
    failure = row["failure"]
    return value_of(
        ModelResult,
        row,
        answer=texts["raw"],
        failure=None if failure is None else ModelFailure(FailureKind(failure), row["failure_detail"]),
        text=texts["text"],
        failed=(),
    )


def _name(chart: ChartSpec) -> str:
    return chart.fingerprint()[:CHART_DIGITS]


def _names(charts: Iterable[ChartSpec]) -> list[str]:
    return [_name(chart) for chart in charts]


def _canonical(text: str) -> str | None:
    """The JSON of a text as the journal writes it; None for a text that is none."""
    try:
        return to_json(json.loads(text))
    except (ValueError, RecursionError):
        return None


ANSWER = "answer"
"""In an event's JSON: the number of the answer that it is about, whose row says the rest; beside it the `step`."""

_COLUMNS = ("run", "time", "type")


def event_row(event: Event, answer: Mapping[str, Any] | None) -> Row:
    """An event as a row; `answer` is the row that an AgentAnswered may be about."""
    plain = {name: value for name, value in to_plain(event).items() if name not in _COLUMNS}
    if isinstance(event, AgentAnswered) and answer and event_of_answer(answer, event.step, event.time) == event:
        plain = {ANSWER: answer["seq"], "step": event.step}
    return {"run": event.run, "time": event.time, "type": type(event).__name__, "json": to_json(plain)}


def event_of(row: Mapping[str, Any], answer: Callable[[int], Mapping[str, Any]]) -> Event:
    """An event from its row; `answer` gives the row of an answer by its number."""
    with reading(row):
        said = json.loads(row["json"])
        if ANSWER not in said:
            return from_plain({name: row[name] for name in _COLUMNS} | said)
        return event_of_answer(answer(said[ANSWER]), said["step"], datetime.fromisoformat(row["time"]))
