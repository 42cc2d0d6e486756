"""The use of models by a run, call by call, and the event of each answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from engine.agents.ask import AnswerRecord
from engine.domain.run import ModelUse
from engine.journal.entries import AnswerEntry, CallCost
from engine.messages.answer_text import answer_text
from engine.messages.events import AgentAnswered

COUNTS = ("calls", "cached_calls", "abstentions", "input_tokens", "output_tokens")
"""The figures of ModelUse that add up, beside the cost."""


class CostMeter:
    """The sum of a run's calls. An answer that was sent back costs like any other; an abstention is counted once."""

    def __init__(self, spec: str) -> None:
        self.use = ModelUse(spec=spec)

    def count(self, record: AnswerRecord | AnswerEntry) -> None:
        """Add one call. The cost of a run is unknown (None) once that of one call is."""
        result = record.result
        call = ModelUse(
            spec=self.use.spec,
            calls=1,
            cached_calls=int(result.cached),
            abstentions=int(record.outcome == "abstained"),
            input_tokens=result.usage.input_tokens,
            output_tokens=result.usage.output_tokens,
            cost=result.cost,
        )
        self.add(call)

    def goes_on(self, calls: Iterable[CallCost]) -> None:
        """Add what the run had asked before it was killed, or waited."""
        for call in calls:
            use = ModelUse(spec=self.use.spec, calls=1, cached_calls=int(call.cached), abstentions=int(call.abstained))
            self.add(replace(use, input_tokens=call.input_tokens, output_tokens=call.output_tokens, cost=call.cost))

    def add(self, use: ModelUse) -> None:
        """Add what was paid, such as for vectors beside the agents' answers."""
        sums = {name: getattr(self.use, name) + getattr(use, name) for name in COUNTS}
        cost = None if self.use.cost is None or use.cost is None else self.use.cost + use.cost
        self.use = replace(self.use, **sums, cost=cost)


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
