"""The decision with evidence: all that FinVision's decision reads, and intelligence, lessons, tools and memories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from engine.agents.agent import PROMPTS, Agent, Reads
from engine.agents.citing import check_cited
from engine.agents.decision import DecisionView, TradeAnswer
from engine.agents.extended_reflection import ExtendedReflection
from engine.agents.high_level_reflection import HighLevelReflection
from engine.agents.immediate_reflection import ImmediateReflection
from engine.agents.low_level_reflection import LowLevelReflection
from engine.agents.market_intelligence import MarketIntelligence
from engine.agents.past_intelligence import PastSummary
from engine.agents.text import Sentence
from engine.agents.tools import ToolSignal
from engine.agents.view import Answer
from engine.domain.recollection import Recollection

_PARTS = ("intelligence", "past", "low_level", "high_level", "immediate", "extended")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView(DecisionView):
    """A decision's view with everything that the presets `finagent`, `finmem` and `desk` add to it; what is None or
    empty was not there. `guidance` are standing instructions of the desk's user. Nothing in it may stem from after
    the session: what training showed to a reflection reaches it as a memory of earlier days at most.
    Source: FinAgent §4.4 [A10]; InvestorBench A.1 [I5]."""

    intelligence: MarketIntelligence | None = None
    past: PastSummary | None = None
    low_level: LowLevelReflection | None = None
    high_level: HighLevelReflection | None = None
    immediate: ImmediateReflection | None = None
    extended: ExtendedReflection | None = None
    tools: tuple[ToolSignal, ...] = ()
    recollections: tuple[Recollection, ...] = ()
    guidance: str = ""

    def summary(self) -> str:
        """The view in a few words."""
        given = [name.replace("_", " ") for name in _PARTS if getattr(self, name) is not None]
        counted = f"{len(self.tools)} tools, {len(self.recollections)} memories"
        return f"{DecisionView.summary(self)}; {', '.join(given) or 'no intelligence'}; {counted}"


class ReasoningSteps(Answer):
    """The steps that come before the action, in their order. Source: FinAgent §4.4 [A10]."""

    sentiment: Sentence = Field(description="Step 1: where the intelligence of today and of the past points, and why.")
    price_view: Sentence = Field(
        description="Step 2: bullish or bearish by the moves of the price, their horizons weighed against each other."
    )
    lessons: Sentence = Field(
        description="Step 3: which lessons of past decisions and past moves apply today, and what they ask for."
    )
    indicators: Sentence = Field(
        description="Step 4: what expert guidance, the tools and the indicators say, and whether they agree."
    )
    position: Sentence = Field(
        description="Step 5: what the present position allows and asks for: shares, cash, gain or loss."
    )
    evidence: Annotated[list[str], Field(max_length=50)] = Field(
        description="The ids of the memories that the decision rests on, as they stand in the brackets; empty when it "
        "rests on none. They are rewarded or blamed for what comes of it."
    )


class EvidencedTrade(TradeAnswer, ReasoningSteps):
    """A sized decision with its reasoning and its evidence; the reasoning comes first, so that a model thinks before
    it acts. Source: FinAgent §4.4 [A10]."""

    def check(self, view: Any) -> None:
        """Raise ValueError for what no decision may say, and for evidence that was not given."""
        TradeAnswer.check(self, view)
        check_cited(self.evidence, (memory.handle for memory in view.recollections), "evidence")

    def lines(self) -> tuple[str, ...]:
        """The decision for a reader."""
        return (
            *TradeAnswer.lines(self),
            f"Sentiment: {self.sentiment}",
            f"Price: {self.price_view}",
            f"Lessons: {self.lessons}",
            f"Indicators: {self.indicators}",
            f"Position: {self.position}",
            f"Rests on: {', '.join(self.evidence) or 'no memory'}",
        )


EVIDENCE_DECISION = Agent(
    name="evidence-decision",
    step="decision",
    view=EvidenceView,
    answer=EvidencedTrade,
    prompt=PROMPTS / "evidence-decision.md",
    rule="engine.offline.evidence:decide",
    reads=frozenset(Reads),
    questions=("decision",),
    decides=frozenset({"evidence"}),
)
