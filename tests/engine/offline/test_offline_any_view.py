"""Whatever an agent with memory is given, the rules answer validly, always the same, and quote only what was given."""

from __future__ import annotations

import string
from datetime import timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.agents.character import Traits
from engine.agents.debate import COMMENT, RECONSIDER
from engine.agents.decision import EVIDENCE_DECISION
from engine.agents.figures import Facts, unresolved_figures
from engine.agents.immediate import IMMEDIATE, MarketFacts
from engine.agents.intelligence import INTELLIGENCE, IntelligenceItem, IntelligenceView
from engine.agents.past import PAST, PastView
from engine.agents.reflections import EXTENDED, HIGH_LEVEL, LOW_LEVEL
from engine.agents.tools import ToolSignal
from engine.domain.decision import LAYERS, Action, Advice, Comment, Outcome, Recollection, Stance
from engine.market.chart_specs import indicator_table, kline_chart
from engine.market.figures import PriceMove, SessionMove
from tests.engine.agents import evidence_samples as some
from tests.engine.agents.samples import DAY, outcome
from tests.engine.offline.test_offline_model import DOWN, HOLDINGS, OUTCOMES, PRICES, SIZING, UP, answer_twice
from tests.examples import examples

GOOD, BAD = "Microsoft raised its guidance.", "Microsoft cut its forecast."
SAID = st.one_of(
    st.text(string.ascii_letters + " .,-%0123456789<>&\n'*[]", max_size=80),
    st.sampled_from(
        [GOOD, BAD, "Sales grew 12.5% to $3.75 billion. Costs rose.", "", "1. **Growth**: Revenue rose 7%."]
    ),
)
FRACTIONS = st.floats(-0.3, 0.3)
DAYS = st.integers(0, 900).map(lambda ago: DAY - timedelta(days=ago))
MEMORIES = st.lists(
    st.builds(
        Recollection,
        id=st.sampled_from([f"m{n}" for n in range(9)]),
        kind=st.sampled_from(["news", "10-Q", "10-K", "macro", "low-level"]),
        layer=st.sampled_from(LAYERS),
        session=DAYS,
        text=SAID,
        recency=st.floats(0, 1),
        relevancy=st.floats(-1, 1),
        importance=st.floats(0, 100),
        score=st.floats(0, 3),
        rank=st.integers(1, 15),
    ),
    max_size=8,
    unique_by=(lambda memory: memory.id, lambda memory: memory.handle),
).map(tuple)
ITEMS = st.lists(
    st.builds(
        IntelligenceItem,
        st.sampled_from([f"i{n}" for n in range(6)]),
        st.sampled_from(["news", "10-Q", "10-K", "report", "macro"]),
        st.just(DAY),
        SAID,
    ),
    max_size=6,
).map(tuple)
SESSIONS = st.lists(st.builds(SessionMove, DAYS, st.floats(0.01, 5000), FRACTIONS), max_size=6).map(tuple)
MOVES = st.lists(st.builds(PriceMove, st.sampled_from([1, 7, 14]), FRACTIONS, st.booleans()), max_size=6).map(tuple)
TOOLS = st.lists(
    st.builds(ToolSignal, SAID, st.sampled_from(["buy", "sell", "none", "guidance"]), SAID), max_size=4
).map(tuple)


@given(ITEMS, SESSIONS)
async def test_any_items_get_valid_intelligence(items: Any, prices: Any) -> None:
    view = IntelligenceView(symbol="MSFT", session=DAY, owner="desk", items=items, prices=prices)
    answer = (await answer_twice(INTELLIGENCE, view)).answer
    assert {judged.id for judged in answer.items} == {item.number for item in view.items}


@given(MEMORIES)
async def test_any_memories_get_a_valid_summary(memories: tuple[Recollection, ...]) -> None:
    answer = (await answer_twice(PAST, PastView("MSFT", DAY, "desk", memories))).answer
    assert {*answer.still_valid, *answer.outdated} == {memory.handle for memory in memories}


@given(PRICES, MOVES, MEMORIES, st.booleans(), st.booleans())
async def test_any_moves_get_a_valid_reflection(
    closes: list[float], moves: Any, lessons: Any, informed: bool, past: bool
) -> None:
    bars = some.history(closes)
    view = some.low_level_view(
        chart=kline_chart("MSFT", bars, 60),
        table=indicator_table(bars),
        moves=moves,
        lessons=(lessons, (), lessons),
        intelligence=some.INTELLIGENCE if informed else None,
        past=some.PAST if past else None,
    )
    await answer_twice(LOW_LEVEL, view)


PAST_DECISIONS = st.lists(
    st.builds(
        outcome,
        st.integers(0, 70),
        st.sampled_from(list(Action)),
        st.decimals("-0.2", "0.2", places=6).map(str),
        st.sampled_from(["dip: low", "strong uptrend: BUY", "", ":"]),
    ),
    max_size=9,
)


@given(PRICES, PAST_DECISIONS)
async def test_any_decisions_get_a_valid_review(closes: list[float], outcomes: list[Outcome]) -> None:
    await answer_twice(HIGH_LEVEL, some.high_level_view(*outcomes, bars=some.history(closes)))
    await answer_twice(EXTENDED, some.extended_view(*outcomes))


@given(OUTCOMES)
async def test_any_period_gets_a_valid_review(outcomes: tuple[Outcome, ...]) -> None:
    await answer_twice(EXTENDED, some.extended_view(*outcomes))


@given(
    MEMORIES,
    st.none() | FRACTIONS,
    st.none() | FRACTIONS,
    st.sampled_from(["three", "five"]),
    st.sampled_from([Decimal(0), Decimal("2.5")]),
    st.sampled_from(["risk-seeking", "risk-averse", "risk-neutral", ""]),
)
async def test_any_facts_and_memories_get_a_valid_recommendation(
    memories: Any, momentum: Any, next_move: Any, scale: Any, shares: Decimal, risk: str
) -> None:
    view = some.immediate_view(
        *memories, facts=MarketFacts(Decimal("180.25"), momentum, risk), next_move=next_move, scale=scale, shares=shares
    )
    reply = await answer_twice(IMMEDIATE, view)
    assert unresolved_figures(reply.answer.reason, [Facts(reply.inputs)]) == ()
    if not shares:
        assert "decrease" not in reply.answer.recommendation and reply.answer.recommendation != "SELL"


@examples(100)
@given(
    st.fixed_dictionaries(
        {
            "holding": HOLDINGS,
            "outcomes": OUTCOMES,
            "chart": st.sampled_from([None, UP, DOWN]),
            "intelligence": st.sampled_from([None, some.INTELLIGENCE]),
            "past": st.sampled_from([None, some.PAST]),
            "low_level": st.sampled_from([None, some.LOW_LEVEL]),
            "high_level": st.sampled_from([None, some.HIGH_LEVEL]),
            "immediate": st.sampled_from([None, some.IMMEDIATE]),
            "extended": st.sampled_from([None, some.EXTENDED]),
            "tools": TOOLS,
            "recollections": MEMORIES,
            "preference": st.sampled_from(["aggressive", "moderate", "conservative"]),
        }
    )
)
async def test_any_view_gets_a_decision_inside_the_rules_that_quotes_only_what_was_given(parts: dict[str, Any]) -> None:
    view = some.evidence_view(**parts)
    reply = await answer_twice(EVIDENCE_DECISION, view)
    answer, cash = reply.answer, view.holding.cash_fraction
    if answer.recommendation == "BUY":
        band = SIZING.buy[answer.rule]
        assert band.cash_above is not None and cash > band.cash_above
        assert cash - Decimal(answer.position_size) / 100 >= SIZING.cash_floor
    if answer.recommendation == "SELL":
        band = SIZING.sell[answer.rule]
        assert view.holding.shares > 0 and band.smallest <= answer.position_size <= band.largest
    told = "\n".join((answer.explanation, answer.sentiment, answer.price_view, answer.lessons, answer.position))
    assert unresolved_figures(f"{told}\n{answer.indicators}", [Facts(reply.inputs)]) == ()
    assert set(answer.evidence) <= {memory.handle for memory in view.recollections}


TRAITS = st.builds(
    Traits,
    risk=st.sampled_from([None, "risk-seeking", "risk-averse", "risk-neutral"]),
    horizon=st.none() | st.integers(1, 60),
    evidence=st.dictionaries(st.sampled_from(["prices", "news", "filings", "macro"]), st.floats(-3, 3)).map(
        lambda weights: tuple(weights.items())
    ),
)
LEVELS = st.sampled_from(list(Advice))


@given(MEMORIES, TRAITS, LEVELS, LEVELS, SAID)
async def test_any_case_gets_a_valid_comment(memories: Any, traits: Traits, own: Any, other: Any, reason: str) -> None:
    view = some.comment_view(
        own=some.case("bull", advice=own),
        others=(some.case("bear", *memories, advice=other, reason=reason), some.case("calm")),
        traits=traits,
    )
    answer = (await answer_twice(COMMENT, view)).answer
    assert [one.to for one in answer.comments] == ["bear", "calm"]


@given(
    MEMORIES, TRAITS, LEVELS, st.lists(st.sampled_from(Stance), max_size=4), st.sampled_from([Decimal(0), Decimal(9)])
)
async def test_any_comments_get_valid_advice_one_level_away_at_most(
    memories: Any, traits: Traits, own: Advice, stances: list[Stance], shares: Decimal
) -> None:
    about = tuple(memory.id for memory in memories[:2])
    received = tuple(
        Comment(round=1, author=f"o{n}", receiver="bull", stance=stance, text="So.", about=about if n % 2 else ())
        for n, stance in enumerate(stances)
    )
    view = some.reconsider_view(
        *memories, own=some.case("bull", *memories, advice=own), received=received, shares=shares, traits=traits
    )
    reply = await answer_twice(RECONSIDER, view)
    assert unresolved_figures(reply.answer.reason, [Facts(reply.inputs)]) == ()
    level = reply.answer.action.level
    assert abs(level - own.level) <= 1 or (not shares and own.level < 0 == level)
    assert shares or level >= 0
    if not any(stance is not Stance.AGREES for stance in stances):
        assert level == own.level or not shares
