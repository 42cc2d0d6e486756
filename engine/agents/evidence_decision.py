"""The decision with evidence: FinVision's decision with intelligence, lessons, tools and memories as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from engine.agents.agent import Agent, Reads
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
    """The inputs of a decision with evidence. Nothing in it may stem from after the session: the hindsight of a
    reflection in training reaches it as a memory of earlier days at most.
    Source: FinAgent §4.4 [A10]; InvestorBench A.1 [I5].

    intelligence, past, low_level, high_level, immediate, extended: other agents' answers, None where there is none.
    tools: signals of rule strategies, and experts' notes.
    recollections: memories recalled for the session.
    guidance: standing instruction of the desk's user.
    """

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
    """The steps before the action, in their order. Source: FinAgent §4.4 [A10]."""

    sentiment: Sentence = Field(
        description="Step 1: the direction in which the intelligence of today and of the past points, and why."
    )
    price_view: Sentence = Field(
        description="Step 2: bullish or bearish by the moves of the price, their horizons weighed against each other."
    )
    lessons: Sentence = Field(
        description="Step 3: the lessons of past decisions and past moves that apply today, and what follows from them."
    )
    indicators: Sentence = Field(
        description="Step 4: the signals of experts, tools and indicators, and whether they agree."
    )
    position: Sentence = Field(
        description="Step 5: what the present position allows and calls for: shares, cash, gain or loss."
    )
    evidence: Annotated[list[str], Field(max_length=50)] = Field(
        description="The ids, as given in brackets, of the memories that the decision rests on; empty when it rests on "
        "none. Their weight rises or falls with the outcome."
    )


class EvidencedTrade(TradeAnswer, ReasoningSteps):
    """A sized decision with its reasoning and its evidence. The reasoning comes first in the schema, so that a model
    writes it before it names an action. Source: FinAgent §4.4 [A10]."""

    def check(self, view: Any) -> None:
        """Raise ValueError as for any decision, and for evidence that was not given."""
        TradeAnswer.check(self, view)
        check_cited(self.evidence, (memory.handle for memory in view.recollections), "evidence")


EVIDENCE_DECISION = Agent(
    name="evidence-decision",
    step="decision",
    view=EvidenceView,
    answer=EvidencedTrade,
    rule="engine.offline.evidence:decide",
    reads=frozenset(Reads),
    questions=("decision",),
    decides=frozenset({"evidence"}),
)
