"""The reflections: on moves of the price, on past decisions, on performance, on signals, on a period of trading."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from engine.agents.agent import Agent, Answer, ChartedView, Part, Reads, Sentence, View, cut_note, plain, shortened
from engine.agents.intelligence import MarketIntelligence
from engine.agents.news import NewsDigest
from engine.agents.past import PastSummary
from engine.agents.rendering import money
from engine.domain.chart import IndicatorTable
from engine.domain.decision import Action, Outcome, Recollection
from engine.domain.text import counted
from engine.errors import InvariantBroken
from engine.market.figures import PriceMove


@dataclass(frozen=True, slots=True, kw_only=True)
class LowLevelView(ChartedView):
    """The information up to the session and the moves of the price, with a chart of kind `kline`.
    Source: FinAgent §4.3 [A4, A9].

    intelligence: today's intelligence, or the digest of the news.
    past: summary of the recalled memories.
    table: the chart's figures for models that do not see.
    moves: moves that led up to the session and, in training alone, those that followed (`hindsight`).
    lessons: the agent's own past lessons that fit today, a list for each of the short, medium and long horizon.
    """

    intelligence: MarketIntelligence | NewsDigest | None
    past: PastSummary | None
    table: IndicatorTable
    moves: tuple[PriceMove, ...]
    lessons: tuple[tuple[Recollection, ...], ...] = ()

    @property
    def training(self) -> bool:
        """True where moves that followed are shown."""
        return any(move.hindsight for move in self.moves)

    def summary(self) -> str:
        """The view in a few words."""
        seen = ", moves that followed" if self.training else ""
        cut = cut_note(lesson for lessons in self.lessons for lesson in lessons)
        return f"a chart of {len(self.chart.sessions)} sessions, {len(self.moves)} moves{seen}{cut}"

    def figures(self) -> str:
        """The table as text."""
        return self.table.text


class LowLevelReflection(Answer):
    """An explanation of the moves per horizon, and a lesson. Source: FinAgent §4.3 [A4]."""

    short_term: Sentence
    """The short-term move (1 session) explained by what was known, or why it cannot be."""
    medium_term: Sentence
    """The medium-term move (7 sessions) explained by what was known, or why it cannot be."""
    long_term: Sentence
    """The long-term move (14 sessions) explained by what was known, or why it cannot be."""
    lesson: Sentence = Field(
        description="What to expect next time under similar conditions: names the event, the state of the chart, the "
        "move and its size."
    )
    query: Sentence = Field(repr=False)
    """For memory only: search words that will find this lesson again, events and states of the chart, no judgement."""


LOW_LEVEL = Agent(
    name="low-level-reflection",
    step="low-level",
    view=LowLevelView,
    answer=LowLevelReflection,
    rule="engine.offline.moves:reflect",
    reads=frozenset({Reads.MARKET, Reads.MEMORY}),
    group="reflections",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HighLevelView(ChartedView):
    """Past decisions with a chart of kind `trading`. Raises InvariantBroken where reasons and outcomes do not align.
    Source: FinAgent §4.3 [A5].

    outcomes: results of the decisions, oldest first.
    reasons: the whole reason that each decision gave at the time, aligned with outcomes, or none at all.
    intelligence: today's intelligence, or the digest of the news.
    lessons: the agent's own past lessons.
    """

    outcomes: tuple[Outcome, ...]
    reasons: tuple[str, ...]
    intelligence: MarketIntelligence | NewsDigest | None = None
    lessons: tuple[Recollection, ...] = ()

    def __post_init__(self) -> None:
        if self.reasons and len(self.reasons) != len(self.outcomes):
            raise InvariantBroken(f"{len(self.reasons)} reasons for {len(self.outcomes)} outcomes of {self.symbol}")
        object.__setattr__(self, "reasons", tuple(map(plain, self.reasons)))

    def summary(self) -> str:
        """The view in a few words."""
        trades = counted(len(self.chart.markers), "trade")
        return f"{len(self.outcomes)} outcomes, {trades} on the chart{cut_note(self.lessons)}"

    @property
    def decided(self) -> frozenset[date]:
        """The sessions of the decisions that can be judged: an abstention is none."""
        return frozenset(o.decision_session for o in self.outcomes if o.action is not Action.ABSTAIN)

    def figures(self) -> str:
        """A line per session with its close, the cumulative return where it is known, and the trade."""
        closes = self.chart.lines[0].values if self.chart.lines else ()
        returns = self.chart.panels[0].lines[0].values if self.chart.panels else (None,) * len(closes)
        trades = {marker.index: marker.side for marker in self.chart.markers}
        return "\n".join(
            f"{session} {'?' if close is None else money(close)} {_percent(gained)} {trades.get(row, '')}".rstrip()
            for row, (session, close, gained) in enumerate(zip(self.chart.sessions, closes, returns, strict=True))
        )


def _percent(value: float | None) -> str:
    return "?" if value is None else f"{value:+.2f}%"


class Judgement(Part):
    """The judgement of one past decision."""

    session: date
    """The date of the decision, YYYY-MM-DD."""
    why: Sentence
    """The reason why it was right or wrong, in one sentence with the move that followed."""
    right: Annotated[bool, Field(strict=True)]
    """True if the move of the price after it shows that the decision was right."""


class HighLevelReflection(Answer):
    """Judgements, corrections and lessons. Source: FinAgent §4.3 [A5]."""

    judgements: Annotated[list[Judgement], Field(max_length=250)]
    """A judgement of every decision, each once, oldest first; abstentions are no decisions."""
    improvements: Annotated[list[Sentence], Field(max_length=12)]
    """For each mistake the better alternative, for each success its cause and how to gain more from it, with the date;
    empty when there is nothing to judge."""
    lessons: Annotated[list[Sentence], Field(min_length=1, max_length=6)]
    """Lessons that hold beyond the single decision, one sentence each."""
    query: Sentence
    """For memory only: search words that will find these lessons again, situations and kinds of decision, no
    judgement."""

    def check(self, view: HighLevelView) -> None:
        """Raise ValueError for a judgement of a session without a decision, and for a second one of the same."""
        strangers = sorted({judged.session for judged in self.judgements} - view.decided)
        if strangers:
            raise ValueError(f"judgements: there was no decision on {strangers[0]}")
        twice = [session for session, times in Counter(j.session for j in self.judgements).items() if times > 1]
        if twice:
            raise ValueError(f"judgements: {min(twice)} is judged more than once")

    def lines(self) -> tuple[str, ...]:
        """The reflection for a reader."""
        right = sum(judged.right for judged in self.judgements)
        return (
            f"{right} of {len(self.judgements)} decisions were right.",
            *(f"{'Right' if j.right else 'Wrong'} on {j.session}: {j.why}" for j in self.judgements[-3:]),
            *(f"Better: {point}" for point in self.improvements),
            *(f"Lesson: {lesson}" for lesson in self.lessons),
        )


HIGH_LEVEL = Agent(
    name="high-level-reflection",
    step="high-level",
    view=HighLevelView,
    answer=HighLevelReflection,
    rule="engine.offline.reflections:on_decisions",
    reads=frozenset(Reads),
    group="reflections",
)


@dataclass(frozen=True, slots=True)
class PerformanceView(View):
    """The outcomes of the last decisions for a symbol, oldest first. Source: FinVision §3.3 [V3].

    term: the short or the medium one; empty: both in one question, of which the short term has the last `recent`.
    """

    term: Literal["short", "medium", ""]
    outcomes: tuple[Outcome, ...]
    recent: int = 0

    @property
    def question(self) -> str:
        """The question about this term, or about both."""
        return f"{self.term}-term reflection" if self.term else BOTH_TERMS

    def summary(self) -> str:
        """The view in a few words."""
        return f"{len(self.outcomes)} outcomes, {f'{self.term} term' if self.term else 'both terms'}"


BOTH_TERMS = "performance reflection"
"""The one question about both terms."""


class PerformanceReflection(Answer):
    """A judgement of the outcomes. Its word limits are wishes. Source: FinVision table 4 [V3]."""

    effectiveness: Sentence
    """The effectiveness of the decisions, by their rewards; under 15 words."""
    key_factors: Sentence
    """The stated factors that mattered most for the results; under 15 words."""
    return_trend: Sentence
    """The trend of the cumulative return over this term; under 15 words."""

    def lines(self) -> tuple[str, ...]:
        """The judgement for a reader."""
        return tuple(shortened(line, 14) for line in Answer.lines(self))


class BothTerms(PerformanceReflection):
    """A judgement of the medium term, and one of the short term beside it: the answer to one question about both."""

    short_term: PerformanceReflection = Field(repr=False)
    """The same three judgements of the short term alone."""


PERFORMANCE = Agent(
    name="performance-reflection",
    view=PerformanceView,
    answer=PerformanceReflection,
    answer_to=lambda view: PerformanceReflection if view.term else BothTerms,
    rule="engine.offline.reflections:on_performance",
    reads=frozenset({Reads.HISTORY}),
    questions=("short-term reflection", "medium-term reflection"),
    group="reflections",
)


@dataclass(frozen=True, slots=True)
class SignalView(ChartedView):
    """The chart of kind `signals`: closes, markers at past buys and sells, none at holds; nobody decided before the
    session of the first decision (None: it is not known). Source: FinVision §3.3 [V4]."""

    first_decision: date | None = None

    def summary(self) -> str:
        """The view in a few words."""
        return f"{len(self.chart.sessions)} closes with {len(self.chart.markers)} signals"

    def figures(self) -> str:
        """A line per session with its close and the trade."""
        closes = self.chart.lines[0].values if self.chart.lines else ()
        marks = {marker.index: marker.side for marker in self.chart.markers}
        return "\n".join(
            f"{session} {'?' if close is None else money(close)} {marks.get(row, '')}".rstrip()
            for row, (session, close) in enumerate(zip(self.chart.sessions, closes, strict=True))
        )


class SignalReflection(Answer):
    """A judgement of the signals. Source: FinVision table 4 [V4]."""

    trend_against_signals: Sentence
    """The recent price trend, and the buys and sells compared with it."""
    effectiveness: Sentence
    """The effectiveness of the recent buys and sells, by the move of the price after each."""
    missed: Annotated[list[Sentence], Field(max_length=8)]
    """Missed opportunities and mistakes, each with its date; empty when there were none."""


SIGNALS = Agent(
    name="signal-reflection",
    view=SignalView,
    answer=SignalReflection,
    rule="engine.offline.reflections:on_signals",
    reads=frozenset({Reads.MARKET, Reads.HISTORY}),
    group="reflections",
)


@dataclass(frozen=True, slots=True)
class ExtendedView(View):
    """The outcomes of the period, oldest first, and the memories of the immediate reflections behind them.
    Source: TradingGPT §4.1.2 [G5]; InvestorBench A.1 [I5]."""

    outcomes: tuple[Outcome, ...]
    recollections: tuple[Recollection, ...] = ()

    @property
    def bought(self) -> Decimal:
        """All buys of the period, in percent of the portfolio."""
        return sum((o.size for o in self.outcomes if o.action is Action.BUY), Decimal(0))

    @property
    def sold(self) -> Decimal:
        """All sells of the period, in percent of the portfolio."""
        return sum((o.size for o in self.outcomes if o.action is Action.SELL), Decimal(0))

    def summary(self) -> str:
        """The view in a few words."""
        return f"{len(self.outcomes)} outcomes, {len(self.recollections)} reflections{cut_note(self.recollections)}"


class ExtendedReflection(Answer):
    """A review of the period, with what to repeat and what to avoid. Source: TradingGPT §4.1.2 [G5]."""

    trading_trend: Sentence
    """The trend of your trading over the period: more or less of the asset, in how many trades, with or against the
    price."""
    self_evaluation: Sentence
    """An honest judgement of it by the rewards, in one sentence."""
    repeat: Annotated[list[Sentence], Field(max_length=6)] = Field(
        description="What to do again, each with the date that supports it; empty when there is nothing."
    )
    avoid: Annotated[list[Sentence], Field(max_length=6)] = Field(
        description="What not to do again, each with the date that shows why; empty when there is nothing."
    )
    query: Sentence = Field(repr=False)
    """For memory only: search words that will find this review again, no judgement."""


EXTENDED = Agent(
    name="extended-reflection",
    step="extended",
    view=ExtendedView,
    answer=ExtendedReflection,
    rule="engine.offline.reflections:on_period",
    reads=frozenset({Reads.HISTORY, Reads.MEMORY}),
    group="reflections",
)
