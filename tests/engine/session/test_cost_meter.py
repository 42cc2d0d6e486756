"""What a run asked its models, added up, and each answer in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal

from engine.domain.model_call import AnswerRecord, FailureKind, ModelFailure, ModelResult, Usage
from engine.domain.run import ModelUse
from engine.journal.entries import CallCost
from engine.session.cost_meter import CostMeter, answered
from tests.engine.journal.full_journal import answer

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def call(
    outcome: Literal["answered", "sent back", "abstained"] = "answered",
    cost: str | None = "0.02",
    cached: bool = False,
    tokens: tuple[int, int] = (100, 20),
) -> AnswerRecord:
    """One call of a model."""
    result = ModelResult(
        model="vendor:small",
        answer={"a": 1} if outcome == "answered" else None,
        failure=None if outcome == "answered" else ModelFailure(FailureKind.TIMED_OUT, "after 5 s"),
        usage=Usage(tokens[0], 0, tokens[1]),
        cost=None if cost is None else Decimal(cost),
        latency=1.5,
        cached=cached,
    )
    checked = {"sentiment": "bullish"} if outcome == "answered" else None
    return answer(result=result, outcome=outcome, step="news", reason="timed out", answer=checked)


def test_calls_tokens_and_costs_add_up_and_an_abstention_counts_once() -> None:
    meter = CostMeter("vendor:small")
    for record in (
        call(),
        call("sent back", tokens=(110, 30)),
        call("abstained", "0.01", tokens=(120, 0)),
        call(cost="0", cached=True),
    ):
        meter.count(record)

    assert replace(meter.use, agents={}, models={}) == ModelUse(
        spec="vendor:small",
        calls=4,
        cached_calls=1,
        abstentions=1,
        usage=Usage(430, 0, 70),
        cost=Decimal("0.05"),
    )


def test_the_cost_is_unknown_for_good_once_that_of_a_call_is() -> None:
    meter = CostMeter("vendor:small")
    for cost in ("0.02", None, "0.02"):
        meter.count(call(cost=cost))

    assert meter.use.cost is None
    assert meter.use.calls == 3


def test_an_answer_is_an_event_with_its_words_or_the_reason_that_there_are_none() -> None:
    said = answered(call(), "r", NOON)
    assert (said.text, said.abstained, said.cost, said.seconds) == ("sentiment: bullish", False, Decimal("0.02"), 1.5)
    assert (said.run, said.time, said.symbol, said.step, said.model) == ("r", NOON, "AAA", "news", "vendor:small")
    silent = answered(call("abstained"), "r", NOON)
    assert (silent.text, silent.abstained) == ("abstained: timed out", True)
    assert not answered(call("sent back"), "r", NOON).abstained


def test_a_run_that_goes_on_counts_what_it_had_asked() -> None:
    meter = CostMeter("vendor:small")
    one = CallCost(
        agent="news",
        model="vendor:small",
        abstained=False,
        cached=False,
        usage=Usage(100, 0, 20),
        cost=Decimal("0.02"),
        latency=1.5,
    )
    meter.restore([one, replace(one, abstained=True, usage=Usage(120, 0, 0), cost=Decimal("0.01"))])
    meter.count(call(cost="0", cached=True))

    assert replace(meter.use, agents={}, models={}) == ModelUse(
        spec="vendor:small",
        calls=3,
        cached_calls=1,
        abstentions=1,
        usage=Usage(320, 0, 40),
        cost=Decimal("0.03"),
    )
