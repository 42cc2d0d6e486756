"""The low-level reflection: the moves of the price over three horizons, linked to what was known, and a lesson."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from engine.agents.agent import Agent, Reads
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
    """The information up to the session and the moves of the price, with a chart of kind `kline`.
    Source: FinAgent §4.3 [A4, A9].

    intelligence: today's intelligence, or the digest of the news.
    past: summary of the recalled memories.
    table: the chart's figures for models that do not see.
    moves: moves that led up to the session and, in training alone, those that followed (`hindsight`).
    lessons: the agent's own past lessons.
    """

    intelligence: MarketIntelligence | NewsDigest | None
    past: PastSummary | None
    table: IndicatorTable
    moves: tuple[PriceMove, ...]
    lessons: tuple[Recollection, ...] = ()

    @property
    def training(self) -> bool:
        """True where moves that followed are shown."""
        return any(move.hindsight for move in self.moves)

    def summary(self) -> str:
        """The view in a few words."""
        seen = ", moves that followed" if self.training else ""
        return f"a chart of {len(self.chart.sessions)} sessions, {len(self.moves)} moves{seen}"

    def figures(self) -> str:
        """The table as text."""
        return self.table.text


class LowLevelReflection(Answer):
    """An explanation of the moves per horizon, and a lesson. Source: FinAgent §4.3 [A4]."""

    short_term: Sentence = Field(
        description="The short-term move (1 session) explained by what was known, or why it cannot be."
    )
    medium_term: Sentence = Field(
        description="The medium-term move (7 sessions) explained by what was known, or why it cannot be."
    )
    long_term: Sentence = Field(
        description="The long-term move (14 sessions) explained by what was known, or why it cannot be."
    )
    lesson: Sentence = Field(
        description="What to expect next time under similar conditions: names the event, the state of the chart, the "
        "move and its size."
    )
    query: Sentence = Field(
        repr=False,
        description="For memory only: search words that will find this lesson again, events and states of the chart, "
        "no judgement.",
    )


LOW_LEVEL = Agent(
    name="low-level-reflection",
    step="low-level",
    view=LowLevelView,
    answer=LowLevelReflection,
    rule="engine.offline.moves:reflect",
    reads=frozenset({Reads.MARKET, Reads.MEMORY}),
    group="reflections",
)
