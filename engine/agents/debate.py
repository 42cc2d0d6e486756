"""The agents of a debate: one comments on the others' advice, the other reconsiders the own advice.

Source: TradingGPT §4.1.3, §4.2.2 [G6, G8].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from engine.agents.agent import (
    Agent,
    Answer,
    Part,
    Prose,
    Reads,
    Sentence,
    View,
    by_layer,
    check_cited,
    cited_line,
    cut_note,
    recollection_line,
)
from engine.agents.character import NO_TRAITS, Traits
from engine.agents.immediate import FiveLevelReflection, MarketFacts
from engine.domain.decision import Advice, Comment, Outcome, Recollection, Stance
from engine.market.figures import PriceFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The case that an owner shows the others.

    owner: its name.
    character: its temperament and manner, as a text.
    advice, trade: its advice, and the trade that the preset ties to it, in percent of its portfolio.
    confidence: as stated, from 0 to 1.
    reason: its own.
    memories: the first that were recalled for it, of each layer.
    weight: the position's value as a fraction of its portfolio's.
    last: the outcome of its last decision; None where there is none.
    """

    owner: str
    character: str
    advice: Advice
    trade: int
    confidence: Decimal
    reason: str
    memories: tuple[Recollection, ...] = ()
    weight: Decimal = Decimal(0)
    last: Outcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentView(View):
    """The inputs of comments.

    immediate: the owner's own reflection of the day.
    own: the case that it shows.
    others: the cases that it comments on, in the order of the owners.
    received: comments on its own advice so far.
    round: from 1.
    decides: True where advice is reconsidered afterwards, False where the trade is decided.
    traits: of the owner's character, for rules without a model.
    """

    immediate: FiveLevelReflection
    own: Case
    others: tuple[Case, ...]
    received: tuple[Comment, ...] = ()
    round: int = 1
    decides: bool = True
    traits: Traits = NO_TRAITS

    def shown(self, memories: Iterable[Recollection]) -> Sequence[str]:
        """Memories of a case on a line each: the own ones, which the owner's reflection has read, by their first words;
        of the others' with the same text the first one whole."""
        own = {memory.handle for memory in self.own.memories}
        first = {m.text: m.handle for case in reversed(self.others) for m in reversed(case.memories)}
        return [
            cited_line(memory)
            if memory.handle in own
            else recollection_line(memory)
            if first[memory.text] == memory.handle
            else f"[{memory.handle}] as [{first[memory.text]}]"
            for memory in memories
        ]

    def summary(self) -> str:
        """The view in a few words."""
        shown = [memory for case in (self.own, *self.others) for memory in case.memories]
        return f"round {self.round}, the cases of {', '.join(case.owner for case in self.others)}{cut_note(shown)}"


class Remark(Part):
    """A comment on one other trader's advice."""

    to: Annotated[str, Field(max_length=40)]
    """The name of the trader whose advice it is about."""
    stance: Stance
    """Towards that advice: agrees, wants more (a larger increase or a smaller decrease), or wants less."""
    text: Sentence
    """The comment in one to three sentences: what that trader overlooks or weighs wrongly, or what confirms it."""
    about: Annotated[list[str], Field(max_length=20)]
    """The ids, as given in brackets, of that trader's memories that the comment is about; may be empty."""


class Comments(Answer):
    """A comment on the advice of every other trader. Source: TradingGPT §4.1.3 [G6]."""

    comments: Annotated[list[Remark], Field(max_length=50)]
    """One comment for each of the other traders."""

    def check(self, view: CommentView) -> None:
        """Raise ValueError where a trader has no comment or two, or for memories that it did not show."""
        check_cited((one.to for one in self.comments), (case.owner for case in view.others), "comments.to")
        missing = [case.owner for case in view.others if case.owner not in {one.to for one in self.comments}]
        if missing:
            raise ValueError(f"comments: none for {', '.join(missing)}")
        shown = {case.owner: [memory.handle for memory in case.memories] for case in view.others}
        for one in self.comments:
            check_cited(one.about, shown[one.to], f"comments.about of {one.to}")

    def lines(self) -> tuple[str, ...]:
        """The comments for a reader."""
        named = (f" ({', '.join(one.about)})" if one.about else "" for one in self.comments)
        return tuple(f"To {one.to}, {one.stance}: {one.text}{of}" for one, of in zip(self.comments, named, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconsiderView(View):
    """The inputs of an owner that reconsiders its advice.

    immediate: its reflection of the day, before anybody commented.
    comments: what it said of the others in this round; None where it had no valid comments.
    own: its case, with its advice as of the last round.
    others: the others' cases, with theirs.
    received: comments on its advice of all rounds so far.
    recollections: its own memories, which its new reason may cite.
    earlier: its reflections and the comments that it received in the sessions before, oldest first: reference alone.
    dissent: the mean distance of the others' advice to its own, from 0 (all agree) to 1.
    shares: that it holds.
    facts, figures: price, momentum and adjusted closes; changes of the close, RSI and ATR.
    round: from 1.
    traits: of its character, for rules without a model.
    """

    facts: MarketFacts
    figures: PriceFigures
    immediate: FiveLevelReflection
    comments: Comments | None
    own: Case
    others: tuple[Case, ...]
    received: tuple[Comment, ...]
    recollections: tuple[Recollection, ...] = ()
    earlier: tuple[Recollection, ...] = ()
    dissent: float = 0.0
    shares: Decimal = Decimal(0)
    round: int = 1
    traits: Traits = NO_TRAITS

    def summary(self) -> str:
        """The view in a few words."""
        layers = ", ".join(f"{len(rows)} {layer}" for layer, rows in by_layer(self.recollections).items())
        received = f"{len(self.received)} comments, {len(self.earlier)} earlier texts"
        cut = cut_note((*self.recollections, *self.earlier))
        return f"round {self.round}, {received}, memories: {layers or 'none'}{cut}"


class ReconsideredAdvice(FiveLevelReflection):
    """Advice after the comments of the others. Source: TradingGPT §4.2.2 [G6]."""

    reply: Prose
    """Your reply to the comments: which of them you take up, which you do not, and why."""

    def lines(self) -> tuple[str, ...]:
        """The advice for a reader."""
        return (*super().lines(), f"Reply: {self.reply}")


COMMENT = Agent(
    name="debate-comment",
    step="debate",
    view=CommentView,
    answer=Comments,
    rule="engine.offline.debate:comment",
    reads=frozenset(Reads),
)

RECONSIDER = Agent(
    name="debate-decision",
    step="debate",
    view=ReconsiderView,
    answer=ReconsideredAdvice,
    rule="engine.offline.debate:reconsider",
    reads=frozenset(Reads),
    decides=frozenset({"five-level"}),
)
