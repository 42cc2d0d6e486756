"""The agents that decide: a sized trade, the same with the memories behind it, all or nothing, the immediate advice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.agents.agent import Agent, Answer, Part, Reads, Report, View
from engine.agents.character import character, risk_of
from engine.agents.evidence import by_layer, check_cited
from engine.agents.intelligence import ChartReading, MarketIntelligence, NewsDigest, PastSummary
from engine.agents.reflections import (
    ExtendedReflection,
    HighLevelReflection,
    LowLevelReflection,
    PerformanceReflection,
    SignalReflection,
)
from engine.agents.text import Prose, Sentence, plain
from engine.agents.tools import ToolSignal
from engine.domain.decision import Action, Outcome, SizingRule
from engine.domain.five_level import Advice
from engine.domain.market import PriceHistory
from engine.domain.portfolio import PositionContext
from engine.domain.recollection import LAYERS, Recollection
from engine.market.figures import PriceFigures
from engine.market.moves import MOMENTUM_SESSIONS, momentum
from engine.settings import Preference, Sizing


@dataclass(frozen=True, slots=True)
class MarketFacts:
    """The price in the quote currency, the cumulative log return of the last `sessions` (None where there are too
    few), the risk character as a text, and the adjusted closes that the return is taken of, each with its session.
    Source: InvestorBench A.1 [I5, I6]."""

    price: Decimal
    momentum: float | None
    risk: str
    sessions: int = MOMENTUM_SESSIONS
    closes: tuple[tuple[date, Decimal], ...] = ()

    @classmethod
    def of(cls, bars: PriceHistory, risk: str | None = None) -> MarketFacts:
        """The facts after the last of some bars on adjusted prices. Without a `risk` of its own the character follows
        momentum."""
        moved, closes = momentum(bars), tuple((bar.session, bar.close) for bar in bars)
        nature = character(risk_of(moved)).nature if risk is None else risk
        return cls(closes[-1][1], moved, nature, closes=closes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImmediateView(View):
    """The inputs of the reflection. Source: InvestorBench A.1, appendix D [I5, I7]; TradingGPT §4.1.2 [G5].

    facts: price, momentum and risk character.
    figures: changes of the close, RSI and ATR.
    recollections: memories of every layer.
    shares, profit, weight: shares held, their unrealized gain as a fraction of cost, and their value as a fraction of
        the book's.
    unit: percent of the portfolio that a BUY or a SELL trades; 0 where it is all cash or all shares.
    profile: what is known of the asset and its sector.
    character: the owner's manner of trading.
    outcomes: results of the last decisions, oldest first.
    extended: review of the last period, None where there is none.
    scale: number of levels of the advice.
    next_move: in training the change of the close that followed, as a fraction; it is explained.
    moment, reports: as in DecisionView.
    """

    facts: MarketFacts
    figures: PriceFigures
    recollections: tuple[Recollection, ...]
    shares: Decimal = Decimal(0)
    profit: Decimal = Decimal(0)
    weight: Decimal = Decimal(0)
    unit: int = 0
    profile: str = ""
    character: str = ""
    outcomes: tuple[Outcome, ...] = ()
    extended: ExtendedReflection | None = None
    scale: Literal["three", "five"] = "three"
    next_move: float | None = None
    moment: datetime | None = None
    reports: tuple[Report, ...] = ()

    @property
    def training(self) -> bool:
        """True where the move that followed is shown."""
        return self.next_move is not None

    @property
    def set_action(self) -> Action | None:
        """The action of the day in training; None where none is set, as by advice in five levels."""
        return None if self.next_move is None or self.scale == "five" else action_before(self.next_move)

    def summary(self) -> str:
        """The view in a few words."""
        layers = ", ".join(f"{len(rows)} {layer}" for layer, rows in by_layer(self.recollections).items())
        seen = ", the move that followed" if self.training else ""
        return f"memories: {layers or 'none'}{seen}"


def action_before(move: float) -> Action:
    """The action that training sets by the move that follows: a purchase before a rise, a sale before a fall.
    Source: InvestorBench A.1 [I7]."""
    return Action.BUY if move > 0 else Action.SELL if move < 0 else Action.HOLD


class LayeredEvidence(Part):
    """The ids of the memories that were used, by layer; each list may be empty. Source: InvestorBench A.1 [I5]."""

    shallow: Annotated[list[str], Field(max_length=50)]
    """Ids used from the shallow memory."""
    intermediate: Annotated[list[str], Field(max_length=50)]
    """Ids used from the intermediate memory."""
    deep: Annotated[list[str], Field(max_length=50)]
    """Ids used from the deep memory."""
    reflection: Annotated[list[str], Field(max_length=50)]
    """Ids used from the memory of reflections."""

    @property
    def handles(self) -> tuple[str, ...]:
        """All ids, layer by layer."""
        return (*self.shallow, *self.intermediate, *self.deep, *self.reflection)


class ImmediateReflection(Answer):
    """A reason with its evidence; in training there is no advice. Source: InvestorBench A.1 [I5, I7]."""

    evidence: LayeredEvidence
    """The ids, as given in brackets, of the memories that you used, each under its own layer."""
    reason: Prose
    """The reason in a few sentences: what the memories of each layer show, what the momentum shows, and which of them
    counts most."""

    def check(self, view: ImmediateView) -> None:
        """Raise ValueError for memories that were not given in their layer."""
        given = by_layer(view.recollections)
        for layer in LAYERS:
            known = (memory.handle for memory in given.get(layer, ()))
            check_cited(getattr(self.evidence, layer), known, f"evidence.{layer}")

    @property
    def recommendation(self) -> str:
        """The advice in the words of its scale; empty in training."""
        return ""

    def lines(self) -> tuple[str, ...]:
        """The reflection for a reader."""
        cited = f"Rests on: {', '.join(self.evidence.handles) or 'no memory'}"
        return (*([f"Recommends: {self.recommendation}"] if self.recommendation else []), self.reason, cited)


class ThreeWayReflection(ImmediateReflection):
    """A recommendation to buy, sell or hold. Source: InvestorBench A.1 [I5]."""

    action: Literal["BUY", "SELL", "HOLD"]
    """BUY or SELL; HOLD only if neither can be justified."""

    @property
    def recommendation(self) -> str:
        return self.action


class FiveLevelReflection(ImmediateReflection):
    """Advice in five levels. Source: TradingGPT §4.1.2 [G4, G5]."""

    action: Advice
    """The change of the position, as one of the five levels."""

    @property
    def recommendation(self) -> str:
        return self.action.value


def answer_to(view: ImmediateView) -> type[ImmediateReflection]:
    """The class of the answer to a view: an explanation in training, advice on the view's scale in the test."""
    if view.training:
        return ImmediateReflection
    return FiveLevelReflection if view.scale == "five" else ThreeWayReflection


IMMEDIATE = Agent(
    name="immediate-reflection",
    step="immediate",
    view=ImmediateView,
    answer=ImmediateReflection,
    answer_to=answer_to,
    rule="engine.offline.immediate:reflect",
    reads=frozenset(Reads),
    decides=frozenset({"three-way", "five-level"}),
)


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
        return f"{FindingsView.summary(self)}, {len(self.recollections)} memories"


class ReasoningSteps(Answer):
    """The steps before the action, in their order. Source: FinAgent §4.4 [A10]."""

    sentiment: Sentence
    """Step 1: the direction in which the intelligence of today and of the past points, and why."""
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
    rule="engine.offline.evidence:decide",
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
    rule="engine.offline.whole:decide",
    reads=frozenset(Reads),
    questions=("decision",),
    decides=frozenset({"whole"}),
)
