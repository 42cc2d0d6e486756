"""The reflection on the signal chart: past buys and sells judged by the closes that followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from engine.agents.agent import Agent, Reads
from engine.agents.text import Sentence
from engine.agents.view import Answer, ChartedView


@dataclass(frozen=True, slots=True)
class SignalView(ChartedView):
    """The chart of kind `signals`: closes, markers at past buys and sells, none at holds.
    Source: FinVision §3.3 [V4]."""

    def summary(self) -> str:
        """The view in a few words."""
        return f"{len(self.chart.sessions)} closes with {len(self.chart.markers)} signals"

    def figures(self) -> str:
        """A line per session with its close and the trade."""
        closes = self.chart.lines[0].values if self.chart.lines else ()
        marks = {marker.index: marker.side for marker in self.chart.markers}
        return "\n".join(
            f"{session} {'?' if close is None else format(close, '.2f')} {marks.get(row, '')}".rstrip()
            for row, (session, close) in enumerate(zip(self.chart.sessions, closes, strict=True))
        )


class SignalReflection(Answer):
    """A judgement of the signals. Source: FinVision table 4 [V4]."""

    trend_against_signals: Sentence = Field(
        description="The recent price trend, and the buys and sells compared with it."
    )
    effectiveness: Sentence = Field(
        description="The effectiveness of the recent buys and sells, by the move of the price after each."
    )
    missed: Annotated[list[Sentence], Field(max_length=8)] = Field(
        description="Missed opportunities and mistakes, each with its date; empty when there were none."
    )


SIGNALS = Agent(
    name="signal-reflection",
    view=SignalView,
    answer=SignalReflection,
    rule="engine.offline.reflection:on_signals",
    reads=frozenset({Reads.MARKET, Reads.HISTORY}),
    group="reflections",
)
