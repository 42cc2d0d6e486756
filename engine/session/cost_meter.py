"""Counts what a run asked its models, and says each answer as an event and in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from engine.agents.ask import AnswerRecord
from engine.domain.run import ModelUse
from engine.journal.entries import AnswerEntry, CallCost
from engine.messages.events import AgentAnswered


class CostMeter:
    """Adds up the calls of a run. `sent back` answers cost like any other; an abstention is counted once."""

    def __init__(self, spec: str) -> None:
        self.use = ModelUse(spec=spec)

    def count(self, record: AnswerRecord | AnswerEntry) -> None:
        """Adds one call. The cost of a run is unknown (None) once that of one call is."""
        result = record.result
        self.add(
            ModelUse(
                spec=self.use.spec,
                calls=1,
                cached_calls=int(result.cached),
                abstentions=int(record.outcome == "abstained"),
                input_tokens=result.usage.input_tokens,
                output_tokens=result.usage.output_tokens,
                cost=result.cost,
            )
        )

    def goes_on(self, calls: Iterable[CallCost]) -> None:
        """Adds what the run had asked before it was killed, or waited."""
        for call in calls:
            self.add(
                ModelUse(
                    spec=self.use.spec,
                    calls=1,
                    cached_calls=int(call.cached),
                    abstentions=int(call.abstained),
                    input_tokens=call.input_tokens,
                    output_tokens=call.output_tokens,
                    cost=call.cost,
                )
            )

    def add(self, use: ModelUse) -> None:
        """Adds what was paid, such as for vectors beside the agents' answers."""
        cost = None if self.use.cost is None or use.cost is None else self.use.cost + use.cost
        self.use = replace(
            self.use,
            calls=self.use.calls + use.calls,
            cached_calls=self.use.cached_calls + use.cached_calls,
            abstentions=self.use.abstentions + use.abstentions,
            input_tokens=self.use.input_tokens + use.input_tokens,
            output_tokens=self.use.output_tokens + use.output_tokens,
            cost=cost,
        )


def use_of(answers: Iterable[AnswerEntry]) -> ModelUse:
    """What was asked for some decisions, recorded answers included; `spec` names the models."""
    asked = list(answers)
    meter = CostMeter(", ".join(dict.fromkeys(answer.result.model for answer in asked)))
    for answer in asked:
        meter.count(answer)
    return meter.use


def answered(record: AnswerRecord, run: str, now: datetime) -> AgentAnswered:
    """The event of one call."""
    asked, result = record.asked, record.result
    text = in_words(record.answer) if record.answer is not None else f"{record.outcome}: {record.reason}"
    return AgentAnswered(
        run=run,
        time=now,
        session=asked.session,
        symbol=asked.symbol,
        owner=asked.owner,
        step=asked.step,
        text=text,
        model=result.model,
        abstained=record.outcome == "abstained",
        cached=result.cached,
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cost=result.cost,
        seconds=result.latency,
    )


def in_words(answer: Mapping[str, Any]) -> str:
    """An answer for a person to read: a line per field, then every list: of single words on one line, of others each
    entry on its own."""
    return "\n".join(_lines(answer))


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
