"""Answers of the agents with memory keep to what was given: ids, sessions, scales; a bad one goes back once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from engine.agents.agent import Agent
from engine.agents.decision import EVIDENCE_DECISION, EvidencedTrade
from engine.agents.immediate import (
    IMMEDIATE,
    EvaluatedReflection,
    FiveLevelReflection,
    ImmediateReflection,
    ThreeWayReflection,
)
from engine.agents.intelligence import INTELLIGENCE, IntelligenceItem
from engine.agents.past import PAST
from engine.agents.reflections import EXTENDED, HIGH_LEVEL, LOW_LEVEL
from engine.domain.decision import Advice, SizingRule
from engine.domain.market import Filing, NewsItem
from engine.errors import InvariantBroken
from tests.engine.agents import evidence_samples as some
from tests.engine.agents.samples import TRADE, Desk, ListedModel, answered, outcome

ITEM = {
    "id": "1",
    "effect": "positive",
    "horizon": "short",
    "weight": 5,
    "concerns_company": True,
    "summary": "It grew.",
}
INTELLIGENCE_ANSWER: dict[str, Any] = {
    "items": [ITEM, ITEM | {"id": "2"}],
    "summary": "It grew.",
    "recent_market": "bullish",
    "queries": {"short_term": "growth", "medium_term": "cloud", "long_term": "strategy"},
}
PAST_ANSWER: dict[str, Any] = {"summary": "It grew before.", "still_valid": ["S1"], "outdated": ["S2"]}
LOW: dict[str, Any] = {"short_term": "Up.", "medium_term": "Up.", "long_term": "Up.", "lesson": "Go.", "query": "up"}
JUDGED = {"session": "2023-05-30", "right": True, "why": "It rose."}
HIGH: dict[str, Any] = {"judgements": [JUDGED], "improvements": [], "lessons": ["Go on."], "query": "dips"}
EXTENDED_ANSWER: dict[str, Any] = {
    "trading_trend": "More.",
    "self_evaluation": "Good.",
    "repeat": [],
    "avoid": [],
    "query": "more",
}
LAYERS: dict[str, list[str]] = {"shallow": ["S1"], "intermediate": ["I1"], "deep": [], "reflection": ["R1"]}
IMMEDIATE_ANSWER: dict[str, Any] = {"evidence": LAYERS, "reason": "Momentum.", "action": "BUY"}
FIVE_ANSWER: dict[str, Any] = {
    "signals": dict.fromkeys(LAYERS, "none"),
    **IMMEDIATE_ANSWER,
    "action": "hold",
    "confidence": 0.25,
}
EXPLAINED: dict[str, Any] = {"evidence": LAYERS, "reason": "The news."}
STEPS = dict.fromkeys(("sentiment", "price_view", "lessons", "indicators", "position"), "Said.")
EVIDENCED: dict[str, Any] = {**TRADE, **STEPS, "evidence": ["S1", "D1"]}

TEST = some.immediate_view(*some.MEMORIES)
FIVE = some.immediate_view(*some.MEMORIES, scale="five")
TRAINING = some.immediate_view(*some.MEMORIES, next_move=0.01)
REVIEWED = some.high_level_view(outcome(3), outcome(2), outcome(1, some.ABSTAIN))
WITH_MEMORIES = some.evidence_view(recollections=some.MEMORIES)

GOOD: dict[str, tuple[Agent[Any, Any], Any, Mapping[str, Any]]] = {
    "intelligence": (INTELLIGENCE, some.intelligence_view("It grew.", "It fell."), INTELLIGENCE_ANSWER),
    "past": (PAST, some.past_view(*some.MEMORIES), PAST_ANSWER),
    "low level": (LOW_LEVEL, some.low_level_view(), LOW),
    "high level": (HIGH_LEVEL, REVIEWED, HIGH),
    "extended": (EXTENDED, some.extended_view(outcome(1)), EXTENDED_ANSWER),
    "three ways": (IMMEDIATE, TEST, IMMEDIATE_ANSWER),
    "five levels": (IMMEDIATE, FIVE, FIVE_ANSWER | {"action": "slightly decrease", "confidence": 0.6}),
    "training": (IMMEDIATE, TRAINING, EXPLAINED),
    "decision": (EVIDENCE_DECISION, WITH_MEMORIES, EVIDENCED),
}

BAD: dict[str, tuple[str, Mapping[str, Any], str]] = {
    "an item nobody gave": ("intelligence", {"items": [ITEM | {"id": "zz"}]}, "not given: zz"),
    "an item judged twice": ("intelligence", {"items": [ITEM, ITEM]}, "more than once: 1"),
    "no weight": ("intelligence", {"items": [ITEM | {"weight": 0}]}, "weight"),
    "too much weight": ("intelligence", {"items": [ITEM | {"weight": 11}]}, "weight"),
    "weight in words": ("intelligence", {"items": [ITEM | {"weight": "five"}]}, "weight"),
    "an unknown effect": ("intelligence", {"items": [ITEM | {"effect": "bullish"}]}, "effect"),
    "a query that repeats the summary": (
        "intelligence",
        {"queries": INTELLIGENCE_ANSWER["queries"] | {"long_term": "It grew."}},
        "repeat the summary",
    ),
    "no query": ("intelligence", {"queries": {"short_term": "growth"}}, "medium_term"),
    "a memory nobody has": ("past", {"still_valid": ["S9"]}, "still_valid names ids that were not given: S9"),
    "outdated that nobody has": ("past", {"outdated": ["S9"]}, "outdated names ids that were not given: S9"),
    "valid and outdated": ("past", {"still_valid": ["S2"]}, "not both: S2"),
    "no horizon": ("low level", {"long_term": " "}, "long_term"),
    "a day without a decision": ("high level", {"judgements": [JUDGED | {"session": "2023-04-01"}]}, "2023-04-01"),
    "an abstention judged": ("high level", {"judgements": [JUDGED | {"session": "2023-05-31"}]}, "2023-05-31"),
    "a decision judged twice": ("high level", {"judgements": [JUDGED, JUDGED]}, "more than once"),
    "a judgement in words": ("high level", {"judgements": [JUDGED | {"right": "yes"}]}, "right"),
    "no lesson": ("high level", {"lessons": []}, "lessons"),
    "a memory under another layer": (
        "three ways",
        {"evidence": LAYERS | {"shallow": ["I1"]}},
        "evidence.shallow names ids that were not given: I1",
    ),
    "a level on the scale of three": ("three ways", {"action": "slightly decrease"}, "action"),
    "three ways on the scale of five": ("five levels", {"action": "SELL"}, "action"),
    "an action in training": ("training", {"action": "BUY"}, "action"),
    "a layer left out": ("training", {"evidence": {"shallow": []}}, "evidence"),
    "evidence nobody gave": ("decision", {"evidence": ["S1", "made up"]}, "not given: made up"),
    "evidence twice": ("decision", {"evidence": ["S1", "S1"]}, "more than once: S1"),
    "a step left out": ("decision", {"sentiment": ""}, "sentiment"),
    "another ticker": ("decision", {"symbol": "TSLA"}, "TSLA"),
    "a rule of the other side": ("decision", {"rule": "reversal"}, "reversal"),
    "too large a trade": ("decision", {"position_size": 50}, "position_size"),
}


@pytest.mark.parametrize("case", GOOD)
async def test_a_good_answer_is_taken_at_once(case: str) -> None:
    agent, view, answer = GOOD[case]
    desk = Desk(ListedModel([answered(answer)]))
    reply = await desk.asker.ask(agent, view)
    assert reply.answer is not None, reply.abstained_because
    assert reply.attempts == 1
    assert desk.records[0].answer == answer
    assert all(line.strip() for line in reply.answer.lines())


@pytest.mark.parametrize("case", BAD)
async def test_a_rule_breaking_answer_goes_back_once_and_then_the_agent_abstains(case: str) -> None:
    name, change, complaint = BAD[case]
    agent, view, answer = GOOD[name]
    desk = Desk(ListedModel([answered({**answer, **change})]))
    reply = await desk.asker.ask(agent, view)
    assert reply.answer is None and reply.attempts == 2
    assert complaint in reply.abstained_because
    assert complaint in desk.model.requests[1].messages[-1].text


async def test_the_scale_and_training_choose_the_answer() -> None:
    for view, answer, kind, said in (
        (TEST, IMMEDIATE_ANSWER, ThreeWayReflection, "BUY"),
        (FIVE, FIVE_ANSWER, EvaluatedReflection, "hold"),
        (TRAINING, EXPLAINED, ImmediateReflection, ""),
    ):
        reply = await Desk(ListedModel([answered(answer)])).asker.ask(IMMEDIATE, view)
        assert type(reply.answer) is kind
        assert reply.answer.recommendation == said
        assert reply.answer.evidence.handles == ("S1", "I1", "R1")
    five = await Desk(ListedModel([answered(FIVE_ANSWER)])).asker.ask(IMMEDIATE, FIVE)
    assert isinstance(five.answer, FiveLevelReflection) and five.answer.action is Advice.HOLD


async def test_a_decision_with_evidence_is_a_trade_and_more() -> None:
    reply = await Desk(ListedModel([answered(EVIDENCED)])).asker.ask(EVIDENCE_DECISION, WITH_MEMORIES)
    answer = reply.answer
    assert isinstance(answer, EvidencedTrade)
    assert (answer.recommendation, answer.position_size, answer.rule) == ("BUY", 7, SizingRule.STRONG_UPTREND)
    assert answer.evidence == ["S1", "D1"]


async def test_charts_travel_with_the_reflections_that_see_them() -> None:
    for name in ("low level", "high level"):
        agent, view, answer = GOOD[name]
        desk = Desk(ListedModel([answered(answer)]))
        await desk.asker.ask(agent, view)
        assert desk.model.requests[0].messages[0].charts == (view.chart,)
        blind = Desk(ListedModel([answered(answer)], sees=False))
        await blind.asker.ask(agent, view)
        assert blind.model.requests[0].messages[0].charts == () and not blind.records[0].seen


def test_items_are_made_of_news_and_filings() -> None:
    at = datetime(2023, 6, 1, 20, tzinfo=UTC)
    news = NewsItem(
        id="id-1",
        symbol="MSFT",
        date=some.DAY,
        available_at=at,
        summary="It grew.",
        headline="Big <b>day</b>",
        published=None,
        source="Wire",
    )
    forms = ("10-Q", "10-K/A", "8-K")
    filings = [
        Filing(id=f"f{n}", symbol="MSFT", form=form, date=some.DAY, available_at=at, summary="Revenue grew.")
        for n, form in enumerate(forms)
    ]
    view = some.IntelligenceView.of("MSFT", some.DAY, "desk", [news], filings=filings)
    assert [(item.id, item.kind, item.text) for item in view.items] == [
        ("f0", "10-Q", "Revenue grew."),
        ("f1", "10-K", "Revenue grew."),
        ("f2", "report", "Revenue grew."),
        ("id-1", "news", "Big day. It grew."),
    ]
    assert IntelligenceItem("x", "news", some.DAY, "w" * 9_000).text.endswith("…")


def test_reasons_belong_to_decisions() -> None:
    view = some.high_level_view(outcome(3), outcome(2), reasons=("first\n<b>reason</b>", "second"))
    assert view.reasons == ("first reason", "second")
    assert view.decided == {some.day(3), some.day(2)}
    with pytest.raises(InvariantBroken, match="1 reasons for 2 outcomes"):
        some.high_level_view(outcome(3), outcome(2), reasons=("first",))


def test_a_period_knows_what_was_bought_and_sold() -> None:
    view = some.extended_view(outcome(4), outcome(3, some.SELL), outcome(2, some.HOLD), outcome(1))
    assert (view.bought, view.sold) == (10, 5)
