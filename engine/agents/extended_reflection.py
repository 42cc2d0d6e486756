"""The extended reflection: a review of about a week of the owner's trading, for reference."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from engine.agents.agent import Agent, Reads
from engine.agents.text import Sentence
from engine.agents.view import Answer, View
from engine.domain.decision import Action, Outcome
from engine.domain.recollection import Recollection


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
        return f"{len(self.outcomes)} outcomes, {len(self.recollections)} reflections"


class ExtendedReflection(Answer):
    """A review of the period, with what to repeat and what to avoid. Source: TradingGPT §4.1.2 [G5]."""

    trading_trend: Sentence = Field(
        description="The trend of your trading over the period: more or less of the asset, in how many trades, with or "
        "against the price."
    )
    self_evaluation: Sentence = Field(description="An honest judgement of it by the rewards, in one sentence.")
    repeat: Annotated[list[Sentence], Field(max_length=6)] = Field(
        description="What to do again, each with the date that supports it; empty when there is nothing."
    )
    avoid: Annotated[list[Sentence], Field(max_length=6)] = Field(
        description="What not to do again, each with the date that shows why; empty when there is nothing."
    )
    query: Sentence = Field(
        repr=False, description="For memory only: search words that will find this review again, no judgement."
    )


EXTENDED = Agent(
    name="extended-reflection",
    step="extended",
    view=ExtendedView,
    answer=ExtendedReflection,
    rule="engine.offline.review:on_period",
    reads=frozenset({Reads.HISTORY, Reads.MEMORY}),
    group="reflections",
)
