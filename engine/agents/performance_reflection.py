"""The reflection on performance: results of recent decisions over a short and a medium term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from engine.agents.agent import Agent, Reads
from engine.agents.text import FourteenWords
from engine.agents.view import Answer, View
from engine.domain.decision import Outcome


@dataclass(frozen=True, slots=True)
class PerformanceView(View):
    """The outcomes of the last decisions for a symbol, oldest first. Source: FinVision §3.3 [V3]."""

    term: Literal["short", "medium"]
    outcomes: tuple[Outcome, ...]

    @property
    def question(self) -> str:
        """The question about this term."""
        return f"{self.term}-term reflection"

    def summary(self) -> str:
        """The view in a few words."""
        return f"{len(self.outcomes)} outcomes, {self.term} term"


class PerformanceReflection(Answer):
    """A judgement of the outcomes. Source: FinVision table 4 [V3]."""

    effectiveness: FourteenWords = Field(
        description="The effectiveness of the decisions, by their rewards; under 15 words."
    )
    key_factors: FourteenWords = Field(
        description="The stated factors that mattered most for the results; under 15 words."
    )
    return_trend: FourteenWords = Field(
        description="The trend of the cumulative return over this term; under 15 words."
    )


PERFORMANCE = Agent(
    name="performance-reflection",
    view=PerformanceView,
    answer=PerformanceReflection,
    rule="engine.offline.reflection:on_performance",
    reads=frozenset({Reads.HISTORY}),
    questions=("short-term reflection", "medium-term reflection"),
    group="reflections",
)
