"""The high-level reflection: a judgement of each past decision by its outcome, corrections, and lessons."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import Annotated

from pydantic import Field

from engine.agents.agent import Agent, Reads
from engine.agents.market_intelligence import MarketIntelligence
from engine.agents.news_digest import NewsDigest
from engine.agents.text import Sentence, plain
from engine.agents.view import Answer, ChartedView, Part
from engine.domain.decision import Action, Outcome
from engine.domain.recollection import Recollection
from engine.errors import InvariantBroken

REASON_LIMIT = 600
"""Characters of a past decision's reason that the agent sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HighLevelView(ChartedView):
    """Past decisions with a chart of kind `trading`. Raises InvariantBroken where reasons and outcomes do not align.
    Source: FinAgent §4.3 [A5].

    outcomes: results of the decisions, oldest first.
    reasons: reason that each decision gave at the time, aligned with outcomes, or none at all.
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
        object.__setattr__(self, "reasons", tuple(plain(reason, REASON_LIMIT) for reason in self.reasons))

    def summary(self) -> str:
        """The view in a few words."""
        return f"{len(self.outcomes)} outcomes, {len(self.chart.markers)} trades on the chart"

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
            f"{session} {_number(close)} {_number(gained, '+', '%')} {trades.get(row, '')}".rstrip()
            for row, (session, close, gained) in enumerate(zip(self.chart.sessions, closes, returns, strict=True))
        )


def _number(value: float | None, sign: str = "", unit: str = "") -> str:
    return "?" if value is None else f"{value:{sign}.2f}{unit}"


class Judgement(Part):
    """The judgement of one past decision."""

    session: date = Field(description="The date of the decision, YYYY-MM-DD.")
    right: Annotated[bool, Field(strict=True)] = Field(
        description="True if the move of the price after it shows that the decision was right."
    )
    why: Sentence = Field(
        description="The reason why it was right or wrong, in one sentence with the move that followed."
    )


class HighLevelReflection(Answer):
    """Judgements, corrections and lessons. Source: FinAgent §4.3 [A5]."""

    judgements: Annotated[list[Judgement], Field(max_length=250)] = Field(
        description="A judgement of every decision, each once, oldest first; abstentions are no decisions."
    )
    improvements: Annotated[list[Sentence], Field(max_length=12)] = Field(
        description="For each mistake the better alternative, for each success its cause and how to gain more from it, "
        "with the date; empty when there is nothing to judge."
    )
    lessons: Annotated[list[Sentence], Field(min_length=1, max_length=6)] = Field(
        description="Lessons that hold beyond the single decision, one sentence each."
    )
    query: Sentence = Field(
        description="For memory only: search words that will find these lessons again, situations and kinds of "
        "decision, no judgement."
    )

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
    rule="engine.offline.review:on_decisions",
    reads=frozenset(Reads),
    group="reflections",
)
