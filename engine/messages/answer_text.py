"""A checked answer of a model as text for a person: in the app's panes, in a decision's trail, in its event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from engine.domain.decision import DecisionKey
from engine.domain.model_call import ModelResult
from engine.messages.events import AgentAnswered


def answer_text(answer: Mapping[str, Any]) -> str:
    """An answer for a person to read: a line per field, then every list: of single words on one line, of others each
    entry on its own."""
    return "\n".join(_lines(answer))


def agent_answered(
    time: datetime,
    key: DecisionKey,
    step: str,
    *,
    result: ModelResult,
    outcome: str,
    reason: str,
    answer: Mapping[str, Any] | None,
) -> AgentAnswered:
    """The event of one call for the question `step`; `outcome`, `reason` and `answer` are those of an AnswerRecord. An
    answer that could not be used follows the reason, after an empty line."""
    unusable = "\n\n".join(part for part in (f"{outcome}: {reason}", result.text) if part)
    return AgentAnswered(
        run=key.run,
        time=time,
        session=key.session,
        symbol=key.symbol,
        owner=key.owner,
        step=step,
        text=unusable if answer is None else answer_text(answer),
        model=result.model,
        abstained=outcome == "abstained",
        cached=result.cached,
        usage=result.usage,
        cost=result.cost,
        seconds=result.latency,
    )


def _lines(answer: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in sorted(answer.items(), key=lambda field: isinstance(field[1], list)):
        name = f"{prefix}{_name(key)}"
        if isinstance(value, Mapping):
            yield from _lines(value, f"{name} ")
        elif isinstance(value, list):
            if value and all(isinstance(entry, str) and len(entry.split()) == 1 for entry in value):
                yield f"{name}: {', '.join(value)}"
            elif value:
                yield f"{name}:"
                yield from (f"- {_entry(entry)}" for entry in value)
        elif value is not None and value != "":
            yield f"{name}: {_word(value)}"


def _entry(entry: object) -> str:
    """One entry of a list; of one with fields its text, which is the longest, and the rest behind it."""
    if not isinstance(entry, Mapping):
        return str(entry)
    texts = [key for key, value in entry.items() if isinstance(value, str) and key != "id"]
    text = max(texts, key=lambda key: len(entry[key]), default="")
    said = [f"{_name(key)} {_word(value)}" for key, value in entry.items() if key not in (text, "id")]
    return " ".join(part for part in (str(entry.get(text, "")), f"({', '.join(said)})" if said else "") if part)


def _name(key: str) -> str:
    return key.replace("_", " ")


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
