"""The low-level reflection: links what was known to how the price moved, over three horizons, and draws a lesson."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from engine.agents.agent import PROMPTS, Agent, Reads
from engine.agents.market_intelligence import MarketIntelligence
from engine.agents.news_digest import NewsDigest
from engine.agents.past_intelligence import PastSummary
from engine.agents.text import Sentence
from engine.agents.view import Answer, ChartedView
from engine.domain.chart import IndicatorTable
from engine.domain.recollection import Recollection
from engine.market.moves import PriceMove


@dataclass(frozen=True, slots=True, kw_only=True)
class LowLevelView(ChartedView):
    """What was known up to the session, and the moves of the price: those that led up to it and, in training alone,
    those that followed (`hindsight`). `chart` is of kind `kline`, `table` stands in for it where the model does not
    see; `lessons` are the agent's own past ones. Source: FinAgent §4.3 [A4, A9]."""

    intelligence: MarketIntelligence | NewsDigest | None
    past: PastSummary | None
    table: IndicatorTable
    moves: tuple[PriceMove, ...]
    lessons: tuple[Recollection, ...] = ()

    @property
    def training(self) -> bool:
        """Whether the view shows what followed."""
        return any(move.hindsight for move in self.moves)

    def summary(self) -> str:
        """The view in a few words."""
        seen = ", moves that followed" if self.training else ""
        return f"a chart of {len(self.chart.sessions)} sessions, {len(self.moves)} moves{seen}"

    def figures(self) -> str:
        """What a model that does not see reads in place of the picture."""
        return self.table.text


class LowLevelReflection(Answer):
    """Why the price moved as it did, per horizon, and what to take from it. Source: FinAgent §4.3 [A4]."""

    short_term: Sentence = Field(
        description="How the short-term move (1 session) follows from what was known, or why it does not."
    )
    medium_term: Sentence = Field(
        description="How the medium-term move (7 sessions) follows from what was known, or why it does not."
    )
    long_term: Sentence = Field(
        description="How the long-term move (14 sessions) follows from what was known, or why it does not."
    )
    lesson: Sentence = Field(
        description="What to expect next time under like conditions: names the event, the state of the chart, the "
        "move and its size."
    )
    query: Sentence = Field(
        description="For the memory alone: search words by which this lesson is to be found again, events and states "
        "of the chart, no judgement."
    )

    def lines(self) -> tuple[str, ...]:
        """The reflection for a reader."""
        return (
            f"Short term: {self.short_term}",
            f"Medium term: {self.medium_term}",
            f"Long term: {self.long_term}",
            f"Lesson: {self.lesson}",
        )


LOW_LEVEL = Agent(
    name="low-level-reflection",
    step="low-level",
    view=LowLevelView,
    answer=LowLevelReflection,
    prompt=PROMPTS / "low-level-reflection.md",
    rule="engine.offline.moves:reflect",
    reads=frozenset({Reads.MARKET, Reads.MEMORY}),
    group="reflections",
)
