"""The rules judge news and filings, sum up the past, link events to moves and review decisions."""

from __future__ import annotations

from typing import Any

import pytest

from engine.agents.intelligence import ItemJudgement, MarketIntelligence, answer_with
from engine.agents.past import PAST, PastView
from engine.agents.reflections import EXTENDED, HIGH_LEVEL, LOW_LEVEL
from engine.domain.decision import Outcome, Recollection
from engine.market.chart_specs import indicator_table, kline_chart
from engine.market.figures import PriceMove, SessionMove
from engine.offline import intelligence
from tests.engine.agents import evidence_samples as some
from tests.engine.agents.samples import DAY, outcome
from tests.engine.offline.test_offline_model import answer_twice

GOOD, BAD = "Microsoft raised its guidance.", "Microsoft cut its forecast."


def judged(*texts: str, kind: Any = "news", **view: Any) -> MarketIntelligence:
    asked = some.intelligence_view(*texts, kind=kind, **view)
    return answer_with(asked.types).model_validate(intelligence.judge(asked))


def test_items_are_judged_by_what_they_say_and_whom_they_concern() -> None:
    told = judged(
        "Microsoft beat estimates. Its cloud grew 27%.",
        "Microsoft faces a fraud probe over its licences.",
        "Acme cut its forecast after a fraud probe.",
        "Microsoft opened an office in Lyon.",
    )
    assert [item.effect for item in told.items] == ["positive", "negative", "neutral", "neutral"]
    assert [item.concerns_company for item in told.items] == [True, True, False, True]
    assert told.items[2].weight == 1 < told.items[1].weight
    assert told.items[1].summary == "Microsoft faces a fraud probe over its licences"
    assert "Microsoft beat estimates." in told.summary


def test_horizon_and_weight_follow_the_kind_of_item_and_its_words() -> None:
    text = "Revenue grew 14% to $143 billion."
    by_kind = {kind: judged(text, kind=kind).items[0] for kind in ("news", "10-Q", "10-K", "macro")}
    assert {kind: item.horizon for kind, item in by_kind.items()} == {
        "news": "short",
        "10-Q": "medium",
        "10-K": "long",
        "macro": "long",
    }
    assert by_kind["10-K"].weight > by_kind["10-Q"].weight > by_kind["news"].weight
    small, large = judged("Microsoft opened an office.", "Microsoft agreed to a merger with Contoso.").items
    assert (small.horizon, large.horizon) == ("short", "long") and large.weight > small.weight
    assert judged("Microsoft raised its guidance for the quarter.").items[0].horizon == "medium"


def test_repeats_weigh_nothing_more() -> None:
    first, second = judged(GOOD, GOOD).items
    assert first.weight > 1 == second.weight


@pytest.mark.parametrize(
    ("changes", "mood"),
    [
        ((0.01, 0.02, -0.001), "bullish"),
        ((-0.01, -0.02, 0.001), "bearish"),
        ((0.05, -0.01, -0.01, -0.01), "mixed"),
        ((0.001,), "mixed"),
        ((-0.05, 0.001, 0.001, 0.001), "bearish"),
        ((), "mixed"),
    ],
)
def test_the_recent_market_is_told_from_the_last_sessions(changes: tuple[float, ...], mood: str) -> None:
    prices = tuple(SessionMove(DAY, 100.0, change) for change in changes)
    told = judged(GOOD, prices=prices)
    assert told.recent_market == mood
    assert not changes or mood in told.summary


def test_queries_hold_the_words_of_their_horizon_and_no_summary() -> None:
    told = judged("Microsoft shares slid in Frankfurt.", "Microsoft agreed to a merger with Contoso over patents.")
    asked = told.queries.texts
    assert "Frankfurt" in asked["short term"] and "Contoso" not in asked["short term"]
    assert "Contoso" in asked["long term"] and "patents" in asked["long term"]
    assert {"quarterly", "earnings"} <= set(asked["medium term"].split())
    assert all("MSFT" in text for text in (asked["short term"], asked["long term"]))


async def summarized(*memories: Recollection) -> Any:
    return (await answer_twice(PAST, PastView("MSFT", DAY, "desk", memories))).answer


async def test_a_newer_report_overtakes_the_older_one_and_time_the_news() -> None:
    old = some.recollection("old", "Revenue rose 10%.", "intermediate", "10-Q", session=some.day(120))
    new = some.recollection("new", "Revenue rose 15%.", "intermediate", "10-Q", session=some.day(30), rank=2)
    stale = some.recollection("stale", GOOD, session=some.day(45))
    fresh = some.recollection("fresh", GOOD, session=some.day(3), rank=2)
    annual = some.recollection("annual", "Revenue grew 14%.", "deep", "10-K", session=some.day(300))
    told = await summarized(old, new, stale, fresh, annual)
    assert told.still_valid == ["I2", "S2", "D1"] and told.outdated == ["I1", "S1"]
    assert "Revenue rose 15%" in told.summary and "10%" not in told.summary
    assert all(part in told.summary for part in ("2022-08-05", "2023-05-29"))


async def test_nothing_remembered_is_said() -> None:
    assert "Memory holds nothing" in (await summarized()).summary


def known(effect: str, text: str, horizon: str = "short") -> MarketIntelligence:
    item = ItemJudgement.model_validate(
        {"id": "a", "effect": effect, "horizon": horizon, "weight": 7, "concerns_company": True, "summary": text}
    )
    return some.INTELLIGENCE.model_copy(update={"items": [item]})


async def reflected(**view: Any) -> Any:
    return (await answer_twice(LOW_LEVEL, some.low_level_view(**view))).answer


@pytest.mark.parametrize(
    ("effect", "change", "advice"),
    [
        ("positive", 0.03, "go with it"),
        ("positive", -0.03, "wait until the price confirms it"),
        ("negative", -0.03, "hold less of it at once"),
        ("negative", 0.03, "do not sell on it alone"),
        ("neutral", 0.03, "the price rises on news that takes no side, follow the chart"),
        ("neutral", -0.03, "falls on news that takes no side and against the chart, wait until the two agree"),
        ("positive", 0.0, "do nothing on this alone"),
    ],
)
async def test_a_lesson_names_event_chart_move_and_what_follows(effect: str, change: float, advice: str) -> None:
    told = await reflected(intelligence=known(effect, "Azure grew 59%"), moves=(PriceMove(1, change),))
    assert "Azure grew 59%" in told.lesson and " over 1 session" in told.lesson
    assert not change or f"{'rose' if change > 0 else 'fell'} {abs(change):.2%} over" in told.lesson
    assert "Strong uptrend" in told.lesson and advice in told.lesson.partition(": on 2023-06-01 MSFT had")[0].lower()
    assert {"MSFT", "azure", "strong", "uptrend"} <= set(told.query.split())


async def test_without_news_the_lesson_goes_by_the_chart_and_says_where_it_misled() -> None:
    chart = {"chart": kline_chart("MSFT", some.FALLING, 60), "table": indicator_table(some.FALLING)}
    went = await reflected(intelligence=None, moves=(PriceMove(1, -0.03),), **chart)
    assert "follow the chart" in went.lesson
    misled = await reflected(intelligence=None, moves=(PriceMove(1, 0.03),), **chart)
    assert "follow the chart" not in misled.lesson and "against the chart" in misled.lesson


async def test_of_events_of_a_weight_the_one_that_names_the_company_is_quoted() -> None:
    others, own = known("positive", "A scheduling firm grew 90%"), known("positive", "Microsoft grew 14%")
    both = others.model_copy(update={"items": [*others.items, own.items[0].model_copy(update={"id": "b"})]})
    told = await reflected(intelligence=both, moves=(PriceMove(1, 0.03),))
    assert "Microsoft grew 14%" in told.lesson and "scheduling" not in told.lesson


async def test_one_weighty_report_is_quoted_before_much_small_news() -> None:
    chatter, report = known("positive", "Microsoft ranked well"), known("positive", "Revenue rose 12%", "medium")
    items = [chatter.items[0].model_copy(update={"id": f"n{n}", "weight": 4}) for n in range(6)]
    both = chatter.model_copy(update={"items": [*items, report.items[0].model_copy(update={"id": "q"})]})
    told = await reflected(intelligence=both, moves=(PriceMove(1, 0.03),))
    assert "Revenue rose 12%" in told.lesson and "ranked" not in told.lesson


async def test_in_training_the_lesson_is_about_what_followed() -> None:
    moves = (PriceMove(1, 0.05), PriceMove(1, -0.04, hindsight=True), PriceMove(7, 0.01, hindsight=True))
    told = await reflected(intelligence=known("positive", GOOD), moves=moves)
    assert "fell 4.00%" in told.lesson and "5.00%" not in told.lesson
    before = await reflected(intelligence=known("positive", GOOD), moves=moves[:1])
    assert "then" not in before.lesson and "rose 5.00%" in before.lesson


async def test_a_lesson_quotes_todays_events_and_never_an_older_lesson() -> None:
    older = 'Wait: on 2023-05-01 MSFT had "a fraud probe"; the price fell.'
    past = some.PAST.model_copy(update={"summary": older})
    told = await reflected(past=past, lessons=((), (), (some.recollection("l", older, "reflection", "low-level"),)))
    assert "probe" not in told.lesson
    assert "probe" in told.long_term and "2023-05-22" in told.long_term
    quoting = await reflected(intelligence=known("positive", 'It was called "a triumph" by analysts'))
    assert "\"It was called 'a triumph' by analysts\"" in quoting.lesson


async def test_each_horizon_has_its_own_events() -> None:
    told = await reflected(intelligence=known("negative", "A probe was opened", "long"))
    assert "A probe was opened" in told.long_term
    assert "A probe" not in told.short_term and "rose 1.25%" in told.short_term
    assert "rose 3.10%" in told.medium_term and "fell 2.00%" in told.long_term


async def reviewed(*outcomes: Outcome, bars: Any = some.RISING, **view: Any) -> Any:
    return (await answer_twice(HIGH_LEVEL, some.high_level_view(*outcomes, bars=bars, **view))).answer


async def test_decisions_are_right_by_what_the_price_did_after_them() -> None:
    cases = (outcome(9, some.BUY), outcome(8, some.SELL), outcome(7, some.HOLD, "0"), outcome(6, some.ABSTAIN))
    up, down = await reviewed(*cases), await reviewed(*cases, bars=some.FALLING)
    assert [(j.session, j.right) for j in up.judgements] == [
        (some.day(9), True),
        (some.day(8), False),
        (some.day(7), True),
    ]
    assert [j.right for j in down.judgements] == [False, True, True]
    assert all(part in up.judgements[0].why for part in ("BUY 5%", "200.00", "2.50%"))
    assert any(str(some.day(8)) in point for point in up.improvements)
    assert any(str(some.day(9)) in point for point in down.improvements)


async def test_a_hold_answers_for_the_rise_it_missed_and_the_fall_it_bore() -> None:
    steep = some.history([100.0 + 2 * n for n in range(60)])
    missed = await reviewed(outcome(20, some.HOLD, "0"), bars=steep)
    assert not missed.judgements[0].right and missed.improvements
    kept = await reviewed(outcome(20, some.HOLD, "0.01"), bars=steep)
    assert kept.judgements[0].right
    crash = some.history([300.0 - 4 * n for n in range(60)])
    bore = await reviewed(outcome(20, some.HOLD, "-0.01"), bars=crash)
    assert not bore.judgements[0].right and bore.improvements


async def test_lessons_count_how_often_a_reason_was_right() -> None:
    told = await reviewed(*(outcome(n, some.BUY, "0.01", "strong uptrend: up") for n in (9, 8, 7)))
    assert all(part in told.lessons[0] for part in ("strong uptrend", "3 of 3"))
    assert "strong uptrend" in told.query
    assert (await reviewed(outcome(0))).judgements == []


async def test_a_period_is_evaluated_from_its_rewards() -> None:
    rows = (
        outcome(5, some.BUY, "-0.02", "dip: low"),
        outcome(4, some.BUY, "0.01", "trend: up"),
        outcome(3, some.HOLD, "0"),
    )
    told = (await answer_twice(EXTENDED, some.extended_view(*rows))).answer
    assert all(part in told.trading_trend for part in ("2 buys (10%", "0 sells (0%)"))
    assert "1 of 3" in told.self_evaluation and "-1.000%" in told.self_evaluation
    for (line,), day, earned in ((told.repeat, some.day(4), "1.000%"), (told.avoid, some.day(5), "2.000%")):
        assert str(day) in line and earned in line
