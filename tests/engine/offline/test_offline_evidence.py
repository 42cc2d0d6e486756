"""The rules recommend and decide from memories, and cite those that bear it out."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from engine.agents.agent import Report
from engine.agents.decision import EVIDENCE_DECISION
from engine.agents.immediate import IMMEDIATE, MarketFacts
from engine.agents.reflections import LOW_LEVEL
from engine.agents.tools import ToolSignal
from engine.domain.decision import Action, Advice, Recollection, SizingRule
from engine.market.chart_specs import indicator_table, kline_chart
from tests.engine.agents import evidence_samples as some
from tests.engine.agents.samples import holding, outcome
from tests.engine.offline.test_offline_model import DOWN, UP, answer_twice

FOR = some.recollection(
    "for", "Revenue rose strongly. It beat estimates and raised guidance. Margins rose.", "intermediate", "10-Q"
)
AGAINST = some.recollection("against", "A fraud investigation was opened. Losses widened.", "deep", "10-K", rank=2)


async def advised(*memories: Recollection, **view: Any) -> Any:
    return (await answer_twice(IMMEDIATE, some.immediate_view(*memories, **view))).answer


def facts(momentum: float, risk: str) -> MarketFacts:
    return MarketFacts(Decimal(180), momentum, f"You are a {risk} investor.")


async def test_memories_and_momentum_make_the_recommendation_and_are_cited_under_their_layer() -> None:
    buy = await advised(FOR, facts=facts(0.03, "risk-seeking"))
    assert buy.action == "BUY" and buy.evidence.intermediate == ["I1"] and buy.evidence.deep == []
    sell = await advised(AGAINST, facts=facts(-0.03, "risk-averse"))
    assert sell.action == "SELL" and sell.evidence.deep == ["D2"]
    assert (await advised(facts=facts(0.0, "risk-neutral"))).action == "HOLD"
    nothing_held = await advised(AGAINST, facts=facts(-0.03, "risk-averse"), shares=Decimal(0))
    assert nothing_held.action == "HOLD"


async def test_reports_of_own_agents_tip_the_recommendation() -> None:
    flat = facts(0.0, "risk-seeking")
    told = [Report("volume", ("Pressure: buying.",), side) for side in (0, 1)]
    assert (await advised(facts=flat, reports=(told[0],))).action == "HOLD"
    tipped = await advised(facts=flat, reports=(told[1],))
    assert tipped.action == "BUY" and "Pressure" in tipped.reason


async def test_kind_words_say_little_where_all_company_texts_are_kind() -> None:
    kind = [some.recollection(f"k{n}", "Sales grew.", "shallow", rank=n + 1) for n in range(5)]
    bold = facts(0.005, "risk-seeking")
    assert (await advised(*kind, facts=bold)).action == (await advised(facts=bold)).action == "HOLD"
    assert (await advised(*kind, facts=facts(-0.03, "risk-averse"))).action == "SELL"


async def test_a_lesson_speaks_for_itself_and_not_by_the_news_that_it_quotes() -> None:
    text = 'Wait until the price confirms it: MSFT had "Record profit, robust growth, guidance raised"; the price fell.'
    lesson = some.recollection("lesson", text, "reflection", "low-level")
    told = await advised(lesson, facts=facts(-0.02, "risk-averse"))
    assert told.action == "SELL" and told.evidence.reflection == ["R1"]
    as_news = some.recollection("lesson", text)
    assert (await advised(as_news, facts=facts(0.02, "risk-seeking"))).evidence.shallow == ["S1"]


async def test_the_risk_character_sets_how_much_is_asked_for() -> None:
    bold = await advised(facts=facts(0.012, "risk-seeking"))
    careful = await advised(facts=facts(0.012, "risk-averse"))
    assert (bold.action, careful.action) == ("BUY", "HOLD")


async def test_advice_in_five_levels_grows_with_the_evidence() -> None:
    levels = [
        (await advised(*memories, facts=facts(moved, "risk-neutral"), scale="five")).action
        for memories, moved in (((FOR,), 0.012), ((), 0.012), ((), 0.0), ((), -0.012), ((AGAINST,), -0.012))
    ]
    assert levels == [
        Advice.SIGNIFICANTLY_INCREASE,
        Advice.SLIGHTLY_INCREASE,
        Advice.HOLD,
        Advice.SLIGHTLY_DECREASE,
        Advice.SIGNIFICANTLY_DECREASE,
    ]


async def test_what_says_nothing_speaks_against_nothing_whatever_its_layer() -> None:
    even = facts(0.02, "risk-neutral")
    alone = await advised(facts=even)
    figure = some.recollection("m", "X (ICSA): 210 for 2023-05-20, +0.10% against 209 before.", "deep", "macro")
    lesson = some.recollection("r", "The session was quiet.", "shallow", "reflection")
    report = some.recollection("k", "The session was quiet.", "deep", "10-K")
    assert (await advised(figure, lesson, report, facts=even)).action == alone.action == "BUY"


async def test_events_count_by_their_score() -> None:
    even = facts(0.012, "risk-neutral")
    events = {"good": FOR, "bad": AGAINST}
    fresh = {
        name: [replace(one, score=2.0 if side == name else 0.2) for side, one in events.items()] for name in events
    }
    assert (await advised(*fresh["good"], facts=even)).action == "BUY"
    assert (await advised(*fresh["bad"], facts=even)).action != "BUY"


async def test_the_more_is_held_the_more_it_takes_to_buy_and_the_less_to_sell() -> None:
    up, down = facts(0.02, "risk-neutral"), facts(-0.004, "risk-neutral")
    held = [Decimal(0), Decimal("0.3"), Decimal(1)]
    assert [(await advised(facts=up, weight=weight)).action for weight in held] == ["BUY", "HOLD", "HOLD"]
    assert [(await advised(facts=down, weight=weight)).action for weight in held] == ["HOLD", "HOLD", "SELL"]


async def test_figures_of_the_economy_are_read_by_what_their_series_means() -> None:
    even = facts(0.02, "risk-neutral")
    told = "(ICSA): 240 for 2023-05-20, {} against 220 before."
    worse = some.recollection("m", f"Claims {told.format('+9.09%')}", "deep", "macro")
    better = some.recollection("m", f"Claims {told.format('-9.09%')}", "deep", "macro")
    against, spoken_for = await advised(worse, facts=even), await advised(better, facts=even)
    assert (against.action, spoken_for.action) == ("HOLD", "BUY")
    assert spoken_for.evidence.deep == ["D1"]


@pytest.mark.parametrize(("move", "cited", "other"), [(0.02, "I1", "D2"), (-0.02, "D2", "I1")])
async def test_in_training_the_move_is_explained_with_the_memories_that_foretold_it(
    move: float, cited: str, other: str
) -> None:
    told = await advised(FOR, AGAINST, next_move=move)
    assert told.evidence.handles == (cited,) and other not in told.evidence.handles
    assert f"{'rose' if move > 0 else 'fell'} {abs(move):.2%}" in told.reason and told.recommendation == ""
    assert (await advised(next_move=move)).evidence.handles == ()


async def decided(**view: Any) -> Any:
    return (await answer_twice(EVIDENCE_DECISION, some.evidence_view(**view))).answer


async def test_memories_that_bear_the_action_out_are_cited_of_every_layer() -> None:
    bought = await decided(chart=UP, recollections=(*some.MEMORIES, AGAINST))
    assert (bought.recommendation, bought.rule) == ("BUY", SizingRule.STRONG_UPTREND)
    assert {"S1", "I1", "D1"} <= set(bought.evidence) and not {"S2", "D2"} & set(bought.evidence)
    assert "Revenue rose 15% to $35.0 billion." in bought.explanation
    sold = await decided(chart=DOWN, recollections=(*some.MEMORIES, AGAINST))
    assert sold.recommendation == "SELL" and "D2" in sold.evidence and "I1" not in sold.evidence
    held = await decided(recollections=some.MEMORIES)
    assert held.recommendation == "HOLD" and len(held.evidence) >= 3


async def test_memory_intelligence_and_tools_change_what_is_decided() -> None:
    alone, borne_out = await decided(chart=UP), await decided(chart=UP, recollections=(FOR,))
    assert borne_out.position_size > alone.position_size
    with_news = await decided(chart=UP, intelligence=some.INTELLIGENCE)
    assert with_news.position_size > alone.position_size
    assert "Guidance was raised." in with_news.sentiment and "bullish" in with_news.sentiment
    sale = ToolSignal("macd", "sell", "MACD fell below its signal line.")
    assert (await decided(chart=UP, tools=(sale, sale))).position_size < alone.position_size


async def test_an_experts_words_count_by_what_they_say() -> None:
    expert = ToolSignal("expert", "guidance", "I downgrade the shares; fraud is likely and losses widened.")
    alone, warned = await decided(chart=UP), await decided(chart=UP, tools=(expert,))
    assert warned.position_size < alone.position_size and "downgrade" in warned.indicators


async def test_preference_and_poor_judgements_size_the_trade() -> None:
    sizes = [(await decided(chart=UP, preference=p)).position_size for p in ("aggressive", "moderate", "conservative")]
    assert sizes[0] > sizes[1] > sizes[2]
    wrong = [j.model_copy(update={"right": False}) for j in some.HIGH_LEVEL.judgements]
    poor = some.HIGH_LEVEL.model_copy(update={"judgements": wrong, "improvements": ["Bought too early on 2023-05-02."]})
    good_size = (await decided(chart=UP, high_level=some.HIGH_LEVEL)).position_size
    assert good_size > (await decided(chart=UP, high_level=poor, intelligence=some.INTELLIGENCE)).position_size


async def test_without_a_chart_agent_the_reflections_carry_the_trend() -> None:
    rising = (await answer_twice(LOW_LEVEL, some.low_level_view())).answer
    falling = (
        await answer_twice(
            LOW_LEVEL,
            some.low_level_view(chart=kline_chart("MSFT", some.FALLING, 60), table=indicator_table(some.FALLING)),
        )
    ).answer
    tool = ToolSignal("macd", "buy", "It crossed.")
    bought = await decided(low_level=rising, intelligence=some.INTELLIGENCE, tools=(tool,))
    assert bought.recommendation == "BUY" and bought.price_view.startswith("The trend is up")
    sold = await decided(low_level=falling, tools=(ToolSignal("macd", "sell", "It crossed."),))
    assert sold.recommendation == "SELL" and sold.price_view.startswith("The trend is down")
    assert (await decided(immediate=some.IMMEDIATE)).recommendation == "BUY"
    nobody = await decided(holding=holding(shares="0"))
    assert nobody.recommendation == "HOLD" and nobody.evidence == []


async def test_a_hold_that_was_right_is_no_trade_to_do_larger() -> None:
    right = some.HIGH_LEVEL.judgements[0]
    held = right.model_copy(update={"why": "HOLD at 180.00 on uptrend goes on; the price then rose 1.75%."})
    kept = some.HIGH_LEVEL.model_copy(update={"judgements": [held], "improvements": []})
    traded = kept.model_copy(update={"judgements": [held, right]})
    size = (await decided(chart=UP, high_level=kept)).position_size
    assert (await decided(chart=UP, high_level=traded)).position_size > size
    # By the record, whatever the reason says.
    record = (outcome(2, Action.HOLD),)
    assert record[0].decision_session == right.session
    by_record = kept.model_copy(update={"judgements": [right]})
    assert (await decided(chart=UP, high_level=by_record, outcomes=record)).position_size == size
