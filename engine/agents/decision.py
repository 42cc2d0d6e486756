"""The agents that decide: a sized trade, the same with the memories behind it, and all or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.agents.agent import Agent, Answer, Prose, Reads, Report, Sentence, View, check_cited, cut_note, plain
from engine.agents.chart import ChartReading
from engine.agents.immediate import ImmediateReflection
from engine.agents.intelligence import MarketIntelligence
from engine.agents.news import NewsDigest
from engine.agents.past import PastSummary
from engine.agents.reflections import (
    ExtendedReflection,
    HighLevelReflection,
    LowLevelReflection,
    PerformanceReflection,
    SignalReflection,
)
from engine.agents.tools import ToolSignal
from engine.domain.decision import Outcome, Recollection, SizingRule
from engine.domain.order import PositionContext
from engine.domain.text import counted
from engine.market.figures import PriceFigures
from engine.settings.owners import Preference
from engine.settings.values import Sizing

HOLD_RULES = (SizingRule.UPTREND_GOES_ON, SizingRule.UNCERTAINTY)
"""The rules that a HOLD may rest on; the preset names those of BUY and SELL. Source: FinVision table 5 [V6]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView(View):
    """The inputs of the decision. Source: FinVision §3.4 [V5].

    holding: the position and the cash.
    figures: close, its changes, RSI and ATR.
    news, chart, short_term, medium_term, signals: other agents' answers, None where there is none.
    outcomes: results of the last decisions, oldest first.
    sizing: the preset's sizing rules.
    absent: agents that abstained or are switched off, each with the reason.
    moment: time within the session that follows, UTC; the price is that of the moment. None: after the close.
    reports: answers of the user's own agents.
    preference: the owner's trading preference [A8].
    character: the owner's character in words, empty where it has none [I6].
    profile: what is known of the asset and its sector, empty where nothing is [I6].
    """

    holding: PositionContext
    figures: PriceFigures
    news: NewsDigest | None
    chart: ChartReading | None
    short_term: PerformanceReflection | None
    medium_term: PerformanceReflection | None
    signals: SignalReflection | None
    outcomes: tuple[Outcome, ...]
    sizing: Sizing
    absent: tuple[str, ...] = ()
    moment: datetime | None = None
    reports: tuple[Report, ...] = ()
    preference: Preference = "moderate"
    character: str = ""
    profile: str = ""

    def summary(self) -> str:
        """The view in a few words."""
        parts = ("news", "chart", "short_term", "medium_term", "signals")
        given = [name.replace("_", " ") for name in parts if getattr(self, name) is not None]
        given += [report.agent for report in self.reports]
        return f"{', '.join(given) or 'no reports'}; {len(self.outcomes)} outcomes"


class ActionAnswer(Answer):
    """A decision on one symbol. As in every answer the reasons come first in the schema, so that a model writes them
    before it names an action. Source: FinVision table 5 [V5]; FinAgent §4.4 [A10]."""

    symbol: str
    """The ticker of the question."""
    explanation: Prose
    """The reasons of the decision, with the evidence for and against it from every report. Quote only figures that are
    in the input."""
    recommendation: Literal["BUY", "SELL", "HOLD"]
    """BUY, SELL or HOLD."""

    def check(self, view: View) -> None:
        """Raise ValueError for another symbol."""
        if self.symbol != view.symbol:
            raise ValueError(f"symbol is {plain(self.symbol, 20)!r}, the question is about {view.symbol}")


class TradeAnswer(ActionAnswer):
    """A sized decision with the rule that it rests on. Source: FinVision table 5 [V5, V6]."""

    position_size: Annotated[int, Field(strict=True, ge=0, le=10)]
    """Percent of the portfolio to trade: a whole number from 1 to 10, and 0 for HOLD."""
    rule: SizingRule
    """The name of the one rule that the decision rests on."""

    def check(self, view: Any) -> None:
        """Raise ValueError for another symbol, a size that does not fit the action, or a rule of another action."""
        if (self.recommendation == "HOLD") != (self.position_size == 0):
            raise ValueError("position_size is 0 for HOLD, and from 1 to 10 for BUY and SELL")
        ActionAnswer.check(self, view)
        allowed = rules_for(self.recommendation, view.sizing)
        if self.rule not in allowed:
            names = ", ".join(allowed)
            raise ValueError(f"{self.recommendation} cannot rest on the rule {self.rule.value!r}, only on: {names}")


def rules_for(recommendation: str, sizing: Sizing) -> tuple[SizingRule, ...]:
    """The rules that a recommendation may name under a preset."""
    if recommendation == "HOLD":
        return HOLD_RULES
    return tuple(sizing.buy if recommendation == "BUY" else sizing.sell)


DECISION = Agent(
    name="decision",
    view=DecisionView,
    answer=TradeAnswer,
    rule="engine.offline.decision:decide",
    reads=frozenset({Reads.MARKET, Reads.HISTORY}),
    decides=frozenset({"sized"}),
)


_PARTS = ("intelligence", "past", "low_level", "high_level", "immediate", "extended")


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsView(DecisionView):
    """The inputs of a decision on intelligence, its summary of the past, reflections and tools. Nothing in it may stem
    from after the session: the hindsight of a reflection in training reaches it as a memory of earlier days at most.
    Source: FinAgent §4.4 [A10].

    intelligence, past, low_level, high_level, immediate, extended: other agents' answers, None where there is none.
    tools: signals of rule strategies, and experts' notes.
    guidance: standing instruction of the desk's user.
    """

    intelligence: MarketIntelligence | None = None
    past: PastSummary | None = None
    low_level: LowLevelReflection | None = None
    high_level: HighLevelReflection | None = None
    immediate: ImmediateReflection | None = None
    extended: ExtendedReflection | None = None
    tools: tuple[ToolSignal, ...] = ()
    guidance: str = ""

    def summary(self) -> str:
        """The view in a few words."""
        given = [name.replace("_", " ") for name in _PARTS if getattr(self, name) is not None]
        return f"{DecisionView.summary(self)}; {', '.join(given) or 'no intelligence'}; {len(self.tools)} tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView(FindingsView):
    """The inputs of a decision with evidence: the `recollections` of the session as well.
    Source: InvestorBench A.1 [I5]."""

    recollections: tuple[Recollection, ...] = ()

    def summary(self) -> str:
        """The view in a few words."""
        recalled = counted(len(self.recollections), "memory", "memories")
        return f"{FindingsView.summary(self)}, {recalled}{cut_note(self.recollections)}"


class ReasoningSteps(Answer):
    """The steps before the action, in their order. Source: FinAgent §4.4 [A10]."""

    sentiment: Sentence
    """Step 1: the direction in which the intelligence since the last decision and that of the past point, and why."""
    price_view: Sentence
    """Step 2: bullish or bearish by the moves of the price, their horizons weighed against each other."""
    lessons: Sentence
    """Step 3: the lessons of past decisions and past moves that apply today, and what follows from them."""
    indicators: Sentence
    """Step 4: the signals of experts, tools and indicators, and whether they agree."""
    position: Sentence
    """Step 5: what the present position allows and calls for: shares, cash, gain or loss."""


class EvidencedSteps(ReasoningSteps):
    """The steps, and the memories that they rest on. Source: InvestorBench A.1 [I5]."""

    evidence: Annotated[list[str], Field(max_length=50)]
    """The ids, as given in brackets, of the memories that the decision rests on; empty when it rests on none. Their
    weight rises or falls with the outcome."""


class EvidencedTrade(TradeAnswer, EvidencedSteps):
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
    rule="engine.offline.reflections:decide",
    reads=frozenset(Reads),
    questions=("decision",),
    decides=frozenset({"evidence"}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeView(FindingsView):
    """The inputs of a decision over all cash or all shares, which knows no sizing rule and of the past the summary
    alone. Source: FinAgent §4.1, §4.4 [A3, A10]."""

    @property
    def spare(self) -> Decimal:
        """The cash that a BUY takes: all above the floor."""
        return self.holding.cash - self.sizing.cash_floor * self.holding.value


class WholeTrade(ActionAnswer, ReasoningSteps):
    """A decision without a size or a rule: BUY takes all cash, SELL all shares. Source: FinAgent §4.4 [A10]."""


WHOLE_DECISION = Agent(
    name="whole-decision",
    step="decision",
    view=WholeView,
    answer=WholeTrade,
    rule="engine.offline.model:decide",
    reads=frozenset(Reads),
    questions=("decision",),
    decides=frozenset({"whole"}),
)
