"""The agent of the immediate reflection: what all layers of memory advise today; in training, why the move came."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from engine.agents.agent import (
    Agent,
    Answer,
    Part,
    Prose,
    Reads,
    Report,
    Sentence,
    View,
    by_layer,
    check_cited,
    cut_note,
)
from engine.agents.character import NO_TRAITS, Traits, character, risk_of
from engine.agents.intelligence import MarketIntelligence
from engine.agents.reflections import ExtendedReflection
from engine.domain.decision import LAYERS, Action, Advice, Outcome, Recollection, TradeValues
from engine.domain.market import FundTrade, PriceHistory
from engine.market.figures import MOMENTUM_SESSIONS, PriceFigures, momentum


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
    """The inputs of the reflection. Source: InvestorBench A.1, appendix D [I5, I7]; TradingGPT §4.1.2, §4.2 [G5, G8].

    facts: price, momentum and risk character.
    figures: changes of the close, RSI and ATR.
    intelligence: the day's, None where there is none.
    recollections: memories of every layer, the day's among them.
    shares, profit, weight: shares held, their unrealized gain as a fraction of cost, and their value as a fraction of
        the book's.
    unit: percent of the portfolio that a BUY or a SELL trades; 0 where it is all cash or all shares.
    profile: what is known of the asset and its sector.
    character: the owner's manner of trading.
    outcomes: results of the last decisions, oldest first.
    extended: review of the last period, None where there is none.
    scale, trades: number of levels of the advice, and what each of five trades.
    next_move: in training the change of the close that followed, as a fraction; it is explained.
    moment, reports: as in DecisionView.
    traits: of the owner's character, for rules without a model.
    fund: in training the last trade of the reference fund; None in the test and where there is none.
    """

    facts: MarketFacts
    figures: PriceFigures
    recollections: tuple[Recollection, ...]
    intelligence: MarketIntelligence | None = None
    shares: Decimal = Decimal(0)
    profit: Decimal = Decimal(0)
    weight: Decimal = Decimal(0)
    unit: int = 0
    profile: str = ""
    character: str = ""
    outcomes: tuple[Outcome, ...] = ()
    extended: ExtendedReflection | None = None
    scale: Literal["three", "five"] = "three"
    trades: TradeValues = field(default_factory=TradeValues)
    next_move: float | None = None
    moment: datetime | None = None
    reports: tuple[Report, ...] = ()
    traits: Traits = NO_TRAITS
    fund: FundTrade | None = None

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
        return f"memories: {layers or 'none'}{cut_note(self.recollections)}{seen}"


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


class LayerSignals(Part):
    """Preliminary signals, one per layer. Source: TradingGPT §4.2.1, figure 3 [G5]."""

    shallow: Sentence
    """The signal of the shallow memory."""
    intermediate: Sentence
    """The signal of the intermediate memory."""
    deep: Sentence
    """The signal of the deep memory."""
    reflection: Sentence
    """The signal of the memory of reflections."""


class Evaluation(Answer):
    """The evaluation that comes before a reflection. Source: TradingGPT §4.2.1, figure 3 [G5]."""

    signals: LayerSignals
    """Evaluate each layer by itself before prices are looked at: what its best memories together signal for an
    investment, for it or against it and how strongly, in one sentence; "none" for a layer without memories."""


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
    confidence: Annotated[float, Field(strict=True, ge=0, le=1)]
    """Your confidence that it will prove right, from 0 (a guess) to 1 (certain)."""

    @property
    def recommendation(self) -> str:
        return self.action.value

    @property
    def stated(self) -> Decimal:
        """The stated confidence, in hundredths."""
        return Decimal(f"{self.confidence:.2f}")

    def lines(self) -> tuple[str, ...]:
        """The reflection for a reader."""
        first, *others = super().lines()
        return first, f"Confidence: {self.stated}", *others


class EvaluatedReflection(FiveLevelReflection, Evaluation):
    """Advice that joins the layers' preliminary signals with prices: they come first in the schema, so that a model
    writes them before it reflects. Source: TradingGPT §4.1.2, §4.2.1 [G5]."""

    def lines(self) -> tuple[str, ...]:
        """The reflection for a reader, the signals last."""
        return (*super().lines(), *(f"Signal, {layer}: {text}" for layer, text in self.signals))


def answer_to(view: ImmediateView) -> type[ImmediateReflection]:
    """The class of the answer to a view: an explanation in training, advice on the view's scale in the test."""
    if view.training:
        return ImmediateReflection
    return EvaluatedReflection if view.scale == "five" else ThreeWayReflection


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
