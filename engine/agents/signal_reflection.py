"""The reflection on the signal chart: closes with past buys and sells marked, seen again with what came
after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from engine.agents.agent import PROMPTS, Agent, Reads
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
        """What a model that does not see reads in place of the picture: a line per session."""
        closes = self.chart.lines[0].values if self.chart.lines else ()
        marks = {marker.index: marker.side for marker in self.chart.markers}
        return "\n".join(
            f"{session} {'?' if close is None else format(close, '.2f')} {marks.get(row, '')}".rstrip()
            for row, (session, close) in enumerate(zip(self.chart.sessions, closes, strict=True))
        )


class SignalReflection(Answer):
    """What the signals were worth. Source: FinVision table 4 [V4]."""

    trend_against_signals: Sentence = Field(description="The recent price trend, and how the buys and sells lie in it.")
    effectiveness: Sentence = Field(
        description="How good the recent buys and sells were, by what the price did after each."
    )
    missed: Annotated[list[Sentence], Field(max_length=8)] = Field(
        description="Chances missed and mistakes made, each with its date; empty when there were none."
    )

    def lines(self) -> tuple[str, ...]:
        """The reflection for a reader."""
        return (
            self.trend_against_signals,
            self.effectiveness,
            *(f"Missed or mistaken: {point}" for point in self.missed),
        )


SIGNALS = Agent(
    name="signal-reflection",
    step="signal-reflection",
    view=SignalView,
    answer=SignalReflection,
    prompt=PROMPTS / "signal-reflection.md",
    rule="engine.offline.reflection:on_signals",
    reads=frozenset({Reads.MARKET, Reads.HISTORY}),
    group="reflections",
)
