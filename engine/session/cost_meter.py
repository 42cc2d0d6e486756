"""Counts what a run asked its models, and says each answer as an event and in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from engine.agents.ask import AnswerRecord
from engine.domain.run import ModelUse
from engine.journal.entries import AnswerEntry, CallCost
from engine.messages.answer_text import answer_text
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
    """The model use of some decisions, recorded answers included; `spec` names the models."""
    asked = list(answers)
    meter = CostMeter(", ".join(dict.fromkeys(answer.result.model for answer in asked)))
    for answer in asked:
        meter.count(answer)
    return meter.use


def answered(record: AnswerRecord, run: str, now: datetime) -> AgentAnswered:
    """The event of one call."""
    key, result = record.key, record.result
    text = answer_text(record.answer) if record.answer is not None else f"{record.outcome}: {record.reason}"
    return AgentAnswered(
        run=run,
        time=now,
        session=key.session,
        symbol=key.symbol,
        owner=key.owner,
        step=key.step,
        text=text,
        model=result.model,
        abstained=record.outcome == "abstained",
        cached=result.cached,
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cost=result.cost,
        seconds=result.latency,
    )
