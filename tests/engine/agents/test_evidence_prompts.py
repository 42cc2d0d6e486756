"""The prompts of the agents with memory say what their views hold and what their answers must be."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from engine.agents.agent import View, one_line
from engine.agents.reflections import PerformanceView
from engine.agents.registry import registered
from engine.agents.rendering import render
from engine.domain.decision import Action, Cut, Decision, DecisionKey, Proposal, ReadOutcome, TradeValues
from engine.market.figures import PriceMove
from tests.engine.agents import evidence_samples as some
from tests.engine.agents.samples import outcome

LESSON = some.MEMORIES[-1:]
FOLLOWED = (PriceMove(1, -0.0125), PriceMove(7, 0.0234, hindsight=True))
TEST = some.immediate_view(*some.MEMORIES, outcomes=(outcome(1),), extended=some.EXTENDED, profile="Software.")
TRAINING = some.immediate_view(*some.MEMORIES, next_move=-0.0273)
FIVE = some.immediate_view(scale="five")

CASES: dict[str, tuple[str, View]] = {
    "intelligence": ("market-intelligence", some.intelligence_view("It grew.", "It fell.")),
    "no news": ("market-intelligence", some.intelligence_view(prices=())),
    "past": ("past-intelligence", some.past_view(*some.MEMORIES)),
    "no past": ("past-intelligence", some.past_view()),
    "low level": (
        "low-level-reflection",
        some.low_level_view(intelligence=some.INTELLIGENCE, past=some.PAST, lessons=(LESSON, (), LESSON)),
    ),
    "low level in training": ("low-level-reflection", some.low_level_view(moves=FOLLOWED)),
    "low level with nothing": ("low-level-reflection", some.low_level_view(moves=())),
    "high level": (
        "high-level-reflection",
        some.high_level_view(outcome(3), outcome(2), reasons=("dip", "rise"), lessons=LESSON),
    ),
    "high level with nothing": ("high-level-reflection", some.high_level_view()),
    "extended": ("extended-reflection", some.extended_view(outcome(2), memories=LESSON)),
    "immediate": ("immediate-reflection", TEST),
    "immediate in training": ("immediate-reflection", TRAINING),
    "immediate in five levels": ("immediate-reflection", FIVE),
    "comment": ("debate-comment", some.comment_view(*some.MEMORIES)),
    "comment after the trade": ("debate-comment", some.comment_view(decides=False)),
    "reconsidered": ("debate-decision", some.reconsider_view(*some.MEMORIES, earlier=LESSON)),
    "reconsidered with nothing": ("debate-decision", some.reconsider_view(received=(), dissent=0.0)),
    "decision": ("evidence-decision", some.evidence_view(**some.FULL)),
    "whole decision": ("whole-decision", some.whole_view(**some.FOUND)),
    "decision with nothing": ("evidence-decision", some.evidence_view()),
}


def rendered(agent: str, view: Any, sees: bool = True) -> tuple[str, str]:
    asked = registered()[agent]
    question = render(asked.prompt, view, asked.expects(view), sees)
    return question.system, question.user


def told(case: str, sees: bool = True) -> tuple[str, str]:
    return rendered(*CASES[case], sees)


def fields_of(answer: type[BaseModel]) -> list[tuple[str, str | None]]:
    """The fields of an answer and of the models in it."""
    found: list[tuple[str, str | None]] = []
    for name, field in answer.model_fields.items():
        found.append((name, one_line(field.description or "")))
        for part in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(part, type) and issubclass(part, BaseModel):
                found += fields_of(part)
    return found


@pytest.mark.parametrize("sees", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_every_field_of_the_answer_is_asked_for_in_its_own_words(case: str, sees: bool) -> None:
    system, user = told(case, sees)
    agent, view = CASES[case]
    for name, description in fields_of(registered()[agent].expects(view)):
        assert f"- {name}" in system
        assert description and description in system
    assert "MSFT" in user and "MSFT" not in system
    assert "{{" not in system + user and "None" not in system + user and "\n\n\n\n" not in system + user
    assert view.summary()


@pytest.mark.parametrize("case", ["low level", "high level"])
def test_a_picture_is_spoken_of_only_to_who_sees_it(case: str) -> None:
    blind, seen = "\n".join(told(case, False)), "\n".join(told(case, True))
    assert "image" not in blind and "2023-05-30" in blind and "207.00" in blind
    assert "image" in seen and "207.00" not in seen


def test_a_model_that_does_not_see_reads_trades_and_returns_by_session() -> None:
    _, user = told("high level", False)
    assert "- 2023-05-29 206.00 ? BUY\n- 2023-05-30 207.00 +2.00% BUY\n- 2023-05-31 208.00 +2.00%\n" in user


def test_hindsight_is_told_in_training_and_marked_as_such() -> None:
    system, user = told("low level in training")
    assert "This is training" in system
    assert "- over 1 session up to now: -1.25%\n- over 7 sessions that FOLLOWED (hindsight): +2.34%" in user
    system, user = told("immediate in training")
    assert "You decide nothing" in system and "- action" not in system
    assert "the session that FOLLOWED (hindsight): -2.73%" in user and "shares held" not in user


@pytest.mark.parametrize("case", ["low level", "immediate", "immediate in five levels", "decision"])
def test_outside_training_nobody_is_told_of_hindsight(case: str) -> None:
    assert "hindsight" not in "\n".join(told(case)).lower()


def test_items_and_memories_are_told_with_the_ids_that_answers_name() -> None:
    _, user = told("intelligence")
    assert "- [1] 2023-06-01 news: It grew.\n- [2] 2023-06-01 news: It fell.\n" in user
    assert "- 2023-06-01: close 180.25, +1.25%" in user
    for case in ("past", "immediate", "decision"):
        _, user = told(case)
        places = [user.index(f"- [{memory.handle}] 2023-05-22 {memory.kind}: ") for memory in some.MEMORIES]
        assert places == sorted(places)
        headings = ("Shallow", "Intermediate", "Deep", "Reflection")
        assert all(f"{layer} memory, best first:" in user for layer in headings)


def test_the_decision_reads_all_that_it_may_rest_on() -> None:
    system, user = told("decision")
    for text in (
        "You know the cloud.",
        "You are a moderate trader",
        "Nothing before earnings.",
        'BUY, "strong uptrend"',
        "At least 10.00% of the portfolio stays in cash",
    ):
        assert text in system
    for text in (
        "shares held: 100",
        "Guidance was raised by 12.5%.",
        "positive, short term, weight 7: Guidance was raised.",
        "The market was lately bullish.",
        "In May a rise in guidance was followed by +2.5%.",
        "Lesson: A raised guidance in a rise was followed by +1.25%.",
        "Lesson: Purchases into strength paid.",
        "Recommends: BUY",
        "Self evaluation: It earned 2%.",
        "macd, buy: MACD at 1.234 stands above its signal line at 0.987: buy.",
        "Software and cloud services.",
        "BUY 5, close 180.25, reward +1.000%",
    ):
        assert text in user
    assert "A peer opened a shop" not in user


def test_a_debater_is_shown_cases_comments_and_dissent() -> None:
    system, user = told("comment")
    assert "Every trader reconsiders its advice afterwards" in system
    assert "The case of bear, a trader of this character: You are a risk-averse investor." in user
    assert "Its intermediate memory, best first:" in user and "Your own case, bull" in user
    assert "Every trader reconsiders" not in told("comment after the trade")[0]
    _, user = told("reconsidered")
    for text in (
        "Shares held: 12.",
        "- Round 1, bear wants less: It fell.",
        "mean distance to yours 0.25",
        "- bear: hold, stated confidence 0.60",
        "Your reflections and the comments of the last sessions, oldest first",
    ):
        assert text in user


def test_the_reasoning_is_asked_for_before_the_action() -> None:
    system, _ = told("decision")
    steps = ("sentiment", "price_view", "lessons", "indicators", "position", "recommendation", "position_size")
    places = [system.index(f"- {name}:") for name in steps]
    assert places == sorted(places)


def test_the_risk_character_speaks_in_the_system_part() -> None:
    assert "You are a risk-seeking investor." in told("immediate")[0]
    assert "Choose one of five levels" in told("immediate in five levels")[0]
    assert "Choose BUY or SELL" in told("immediate")[0]


FOREIGN = st.text(max_size=80)


@given(FOREIGN, FOREIGN)
def test_foreign_text_cannot_leave_its_fence(first: str, second: str) -> None:
    memory = some.recollection(f"id{first}", second, kind=first)
    for agent, view in (
        ("market-intelligence", some.intelligence_view(first, second, prices=())),
        ("past-intelligence", some.past_view(memory)),
    ):
        _, user = rendered(agent, view)
        bare = user.replace("<<<", "").replace(">>>", "")
        assert "<" not in bare and ">" not in bare
        assert user.count("<<<") == user.count(">>>")
        assert user.count("<<<") <= 2


def test_a_view_never_holds_more_than_a_prompt_may_carry() -> None:
    texts = [f"{n} " + "word " * 400 for n in range(60)]
    view = some.intelligence_view(*texts)
    assert view.left_out == 60 - len(view.items) > 0
    assert view.items[-1].text.startswith("59 ") and view.items[0].text.startswith(f"{view.left_out} ")
    assert f"... and {view.left_out} more" in rendered("market-intelligence", view)[1]
    assert "more left out" in view.summary()


def test_filings_stay_when_the_news_is_cut() -> None:
    filing = some.intelligence_view("Annual revenue grew. " * 500, kind="10-K").items
    news = some.intelligence_view(*["word " * 500] * 60).items
    view = some.IntelligenceView(symbol="MSFT", session=some.DAY, owner="desk", items=(*filing, *news))
    assert view.items[0] == filing[0] and 7_900 < len(filing[0].text) <= 8_000
    assert sum(len(item.line) for item in view.items) <= 60_000


LONG = some.recollection("n3", f"Microsoft opened a data centre. {'It is large. ' * 20}It cost $48.25 million.", rank=3)


def test_a_memory_stands_whole_once_in_the_questions_of_an_analysis() -> None:
    view = some.evidence_view(**some.FULL | {"recollections": (LONG, *some.MEMORIES)})
    summarized = rendered("evidence-decision", view)[1]
    assert f"[{LONG.handle}] " in summarized and "$48.25" not in summarized
    assert "A purchase after a fall of 3% paid." in summarized
    assert "$48.25" in rendered("evidence-decision", some.evidence_view(recollections=(LONG,)))[1]


def test_a_comment_is_asked_for_with_the_own_memories_by_name_and_a_shared_one_whole_once() -> None:
    own, first, second = (replace(LONG, owner=owner) for owner in ("bull", "bear", "wren"))
    view = some.comment_view(own=some.case("bull", own), others=(some.case("bear", first), some.case("wren", second)))
    user = rendered("debate-comment", view)[1]
    assert user.count("$48.25") == 1
    assert f"[{second.handle}] as [{first.handle}]" in user and f"[{own.handle}] " in user
    alone = rendered("debate-comment", some.comment_view(own=some.case("bull", own)))[1]
    assert "$48.25" not in alone and f"[{own.handle}] " in alone
    reconsidered = rendered("debate-decision", some.reconsider_view(LONG))[1]
    assert reconsidered.count("$48.25") == 1


def test_the_levels_are_told_with_what_each_trades() -> None:
    trades = TradeValues(9, 4, 2, 7)
    system, _ = rendered("immediate-reflection", some.immediate_view(scale="five", trades=trades))
    levels = system[system.index("five levels") :]
    assert re.findall(r"(\d+)%", levels)[:4] == ["9", "4", "2", "7"]


def test_the_record_tells_what_was_asked_and_what_the_limits_made_of_it() -> None:
    held = outcome(1, Action.HOLD)
    key = DecisionKey("run", held.decision_session, 1, "MSFT", "desk")
    cut = Cut("holding", Decimal(5), Decimal(0), "nothing is held to be sold")
    sale = Proposal(Action.SELL, 5, None, "It turned.")
    refused = Decision(key=key, action=Action.HOLD, size=Decimal(0), proposal=sale, cuts=(cut,))
    kept = replace(refused, proposal=replace(sale, action=Action.HOLD, size=0), cuts=())
    for decision, told_as in ((refused, "SELL 5 asked, nothing is held to be sold: HOLD"), (kept, "HOLD")):
        read = ReadOutcome.of(held, Decimal(180), Decimal(181), decision)
        _, user = rendered("performance-reflection", PerformanceView("MSFT", some.DAY, "desk", "short", (read,)))
        assert f": {told_as}, close 180.00" in user
