"""Views and answers of the agents with memory that their tests share."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from engine.agents.debate import Case, CommentView, ReconsiderView
from engine.agents.decision import EvidenceView, WholeView
from engine.agents.immediate import FiveLevelReflection, ImmediateView, LayeredEvidence, MarketFacts, ThreeWayReflection
from engine.agents.intelligence import IntelligenceItem, IntelligenceView, ItemJudgement, answer_with
from engine.agents.past import PastSummary, PastView
from engine.agents.reflections import (
    ExtendedReflection,
    ExtendedView,
    HighLevelReflection,
    HighLevelView,
    Judgement,
    LowLevelReflection,
    LowLevelView,
)
from engine.agents.tools import ToolSignal
from engine.domain.decision import HORIZON_TYPES, Action, Advice, Comment, Outcome, Recollection, Stance
from engine.domain.market import Bar, PriceHistory
from engine.market.chart_specs import indicator_table, kline_chart, trading_chart
from engine.market.figures import PriceMove, SessionMove
from tests.engine.agents.samples import DAY, FIGURES, decision_view, outcome


def recollection(name: str, text: str, layer: str = "shallow", kind: str = "news", **changes: Any) -> Recollection:
    """A memory of ten days before."""
    values: dict[str, Any] = {
        "id": name,
        "kind": kind,
        "layer": layer,
        "session": DAY - timedelta(days=10),
        "text": text,
        "recency": 0.5,
        "relevancy": 0.4,
        "importance": 50.0,
        "score": 1.4,
        "rank": 1,
    }
    return Recollection(**(values | changes))


MEMORIES = (
    recollection("n1", "Microsoft raised its guidance for the cloud business."),
    recollection("n2", "Microsoft faces a lawsuit over its licences.", rank=2),
    recollection("q1", "Revenue rose 15% to $35.0 billion. Costs fell.", "intermediate", "10-Q"),
    recollection("k1", "Annual revenue grew 14% to $143 billion.", "deep", "10-K"),
    recollection("r1", "A purchase after a fall of 3% paid.", "reflection", "low-level"),
)


def history(closes: list[float]) -> PriceHistory:
    """Bars up to DAY, one a day."""
    last = len(closes) - 1
    prices = [Decimal(str(close)) for close in closes]
    return PriceHistory.of(
        "MSFT",
        [
            Bar(session=DAY - timedelta(days=last - n), open=p, high=p, low=p, close=p, adj_close=None, volume=None)
            for n, p in enumerate(prices)
        ],
    )


RISING = history([150.0 + n for n in range(60)])
FALLING = history([210.0 - n for n in range(60)])
INTELLIGENCE = answer_with(HORIZON_TYPES)(
    items=[
        ItemJudgement(
            id="a", effect="positive", horizon="short", weight=7, concerns_company=True, summary="Guidance was raised."
        ),
        ItemJudgement(
            id="b", effect="neutral", horizon="long", weight=1, concerns_company=False, summary="A peer opened a shop."
        ),
    ],
    summary="Guidance was raised by 12.5%.",
    recent_market="bullish",
    queries={"short_term": "guidance", "medium_term": "cloud revenue", "long_term": "cloud market"},
)
PAST = PastSummary(summary="In May a rise in guidance was followed by +2.5%.", still_valid=["S1"], outdated=["S2"])
LOW_LEVEL = LowLevelReflection(
    short_term="The price rose on the news.",
    medium_term="It rose.",
    long_term="It rose.",
    lesson="A raised guidance in a rise was followed by +1.25%.",
    query="guidance rise",
)
HIGH_LEVEL = HighLevelReflection(
    judgements=[Judgement(session=DAY - timedelta(days=2), right=True, why="The price rose 1.75% after the purchase.")],
    improvements=["Buy more after a raised guidance."],
    lessons=["Purchases into strength paid."],
    query="strength purchase",
)
EXTENDED = ExtendedReflection(
    trading_trend="Bought 10% in two trades.",
    self_evaluation="It earned 2%.",
    repeat=["Buy dips."],
    avoid=[],
    query="dips",
)
IMMEDIATE = ThreeWayReflection(
    evidence=LayeredEvidence(shallow=["S1"], intermediate=[], deep=[], reflection=[]), reason="Momentum.", action="BUY"
)
TOOL = ToolSignal("macd", "buy", "MACD at 1.234 stands above its signal line at 0.987: buy.")


def intelligence_view(*texts: str, kind: Any = "news", **changes: Any) -> IntelligenceView:
    """News items a, b, c ... of the day."""
    items = tuple(IntelligenceItem(chr(97 + n), kind, DAY, text) for n, text in enumerate(texts))
    values: dict[str, Any] = {"prices": (SessionMove(DAY, 180.25, 0.0125),)}
    return IntelligenceView(symbol="MSFT", session=DAY, owner="desk", items=items, **(values | changes))


def past_view(*memories: Recollection) -> PastView:
    return PastView("MSFT", DAY, "desk", memories)


def low_level_view(**changes: Any) -> LowLevelView:
    """Sixty rising sessions and the moves that led up to now."""
    values: dict[str, Any] = {
        "symbol": "MSFT",
        "session": DAY,
        "owner": "desk",
        "intelligence": None,
        "past": None,
        "chart": kline_chart("MSFT", RISING, 60),
        "table": indicator_table(RISING),
        "moves": (PriceMove(1, 0.0125), PriceMove(7, 0.031), PriceMove(14, -0.02)),
    }
    return LowLevelView(**(values | changes))


def high_level_view(*outcomes: Outcome, bars: PriceHistory = RISING, **changes: Any) -> HighLevelView:
    """Past decisions over rising closes, none with a reason unless given."""
    chart = trading_chart(
        "MSFT",
        bars,
        60,
        [(o.decision_session, o.action) for o in outcomes],
        [(o.session, o.cumulative) for o in outcomes],
    )
    return HighLevelView(
        symbol="MSFT", session=DAY, owner="desk", outcomes=outcomes, **({"reasons": (), "chart": chart} | changes)
    )


def immediate_view(*memories: Recollection, **changes: Any) -> ImmediateView:
    """Something held, a rising momentum."""
    values: dict[str, Any] = {
        "facts": MarketFacts(Decimal("180.25"), 0.0321, "You are a risk-seeking investor."),
        "figures": FIGURES,
        "shares": Decimal(12),
        "profit": Decimal("0.0457"),
    }
    return ImmediateView(symbol="MSFT", session=DAY, owner="desk", recollections=memories, **(values | changes))


def extended_view(*outcomes: Outcome, memories: tuple[Recollection, ...] = ()) -> ExtendedView:
    return ExtendedView("MSFT", DAY, "desk", outcomes, memories)


def evidence_view(**changes: Any) -> EvidenceView:
    """A decision with nothing but the portfolio to go by, unless more is given."""
    plain = decision_view()
    return EvidenceView(**({name: getattr(plain, name) for name in plain.__dataclass_fields__} | changes))


def whole_view(**changes: Any) -> WholeView:
    """The same over all cash or all shares."""
    plain = decision_view()
    return WholeView(**({name: getattr(plain, name) for name in plain.__dataclass_fields__} | changes))


FOUND: dict[str, Any] = {
    "intelligence": INTELLIGENCE,
    "past": PAST,
    "low_level": LOW_LEVEL,
    "high_level": HIGH_LEVEL,
    "immediate": IMMEDIATE,
    "extended": EXTENDED,
    "tools": (TOOL,),
    "character": "You know the cloud.",
    "profile": "Software and cloud services.",
    "guidance": "Nothing before earnings.",
    "outcomes": (outcome(1),),
}
"""All that a decision over all cash or all shares may read."""
FULL = FOUND | {"recollections": MEMORIES}
"""All that a decision with evidence may read."""


def day(ago: int) -> date:
    """A date before DAY."""
    return DAY - timedelta(days=ago)


BUY, SELL, HOLD, ABSTAIN = Action.BUY, Action.SELL, Action.HOLD, Action.ABSTAIN


FIRST_ADVICE = FiveLevelReflection(
    evidence=LayeredEvidence(shallow=["S1"], intermediate=[], deep=[], reflection=[]),
    reason="The guidance was raised.",
    action=Advice.SLIGHTLY_INCREASE,
    confidence=0.6,
)


def case(owner: str, *memories: Recollection, **changes: Any) -> Case:
    """What an owner shows in a debate."""
    values: dict[str, Any] = {
        "character": "You are a risk-averse investor.",
        "advice": Advice.SLIGHTLY_INCREASE,
        "trade": 3,
        "confidence": Decimal("0.60"),
        "reason": "The guidance was raised.",
    }
    return Case(owner=owner, memories=memories, **(values | changes))


def comment_view(*memories: Recollection, **changes: Any) -> CommentView:
    """The case of one other owner, which shows some memories."""
    values: dict[str, Any] = {
        "immediate": FIRST_ADVICE,
        "own": case("bull"),
        "others": (case("bear", *memories, advice=Advice.HOLD, trade=0),),
    }
    return CommentView(symbol="MSFT", session=DAY, owner="bull", **(values | changes))


def reconsider_view(*memories: Recollection, **changes: Any) -> ReconsiderView:
    """An owner with some memories and one comment on them."""
    about = tuple(memory.id for memory in memories[:1])
    said = Comment(round=1, author="bear", receiver="bull", stance=Stance.WANTS_LESS, text="It fell.", about=about)
    values: dict[str, Any] = {
        "facts": immediate_view().facts,
        "figures": immediate_view().figures,
        "immediate": FIRST_ADVICE,
        "comments": None,
        "own": case("bull", *memories),
        "others": (case("bear", advice=Advice.HOLD, trade=0),),
        "received": (said,),
        "recollections": memories,
        "dissent": 0.25,
        "shares": Decimal(12),
    }
    return ReconsiderView(symbol="MSFT", session=DAY, owner="bull", **(values | changes))
