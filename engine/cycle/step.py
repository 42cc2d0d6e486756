"""The context of the steps of one owner's analysis of one symbol, and the result of a step.

Every step is a function: it takes the context and the findings that it rests on, and returns a finding of its own. So
a step can be read, and tested, without the steps around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from engine.agents.ask import Asker, Reply
from engine.agents.inputs import Holding
from engine.agents.tools import Rule
from engine.agents.view import A
from engine.cycle.memory_items import MemoryScope
from engine.cycle.recall import TradingMemory
from engine.cycle.turn import Turn
from engine.domain.decision import Outcome
from engine.domain.market import NewsItem, PriceHistory, Symbol
from engine.domain.recollection import Recollection
from engine.execution.sizing import PositionContext
from engine.messages.events import Event, StepStarted
from engine.owner import Owner
from engine.preset import Preset
from memory.record import Item

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding(Generic[T]):
    """The result of one step. `absent` names the reason why there is none, empty where nobody has to know it; `lesson`
    is what memory keeps of it."""

    value: T | None = None
    absent: str = ""
    lesson: Item | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """The context of one owner's analysis of one symbol.

    turn: the cycle's input.
    symbol, owner: whose opinion on what.
    bars: visible bars, oldest first.
    position: the owner's position and cash, the desk's where it has one book.
    preset: the steps that run, and their numbers.
    asker: puts questions to models.
    strategies: rule strategies whose signals are tools.
    memory: None where the preset has none.
    publish: hears every event.
    """

    turn: Turn
    symbol: Symbol
    owner: str
    bars: PriceHistory
    position: PositionContext
    preset: Preset
    asker: Asker
    strategies: tuple[Rule, ...]
    memory: TradingMemory | None
    publish: Callable[[Event], None]

    @property
    def traits(self) -> Owner:
        """The owner's settings."""
        return self.preset.owner(self.owner)

    @property
    def scope(self) -> MemoryScope:
        """The owner's memory of the symbol, at this session."""
        return MemoryScope(self.symbol, self.owner, self.turn.session, self.turn.step)

    @property
    def news(self) -> Sequence[NewsItem]:
        """The news since the last decision."""
        return self.turn.market.news(self.symbol, self.turn.news_after)

    @property
    def holding(self) -> Holding:
        """The position and the cash as agents see them."""
        position = self.position
        return Holding(
            shares=position.quantity,
            price=position.price,
            average_cost=position.average_cost,
            value=position.value,
            cash=position.cash,
            cash_fraction=position.cash_fraction,
            unrealized=position.unrealized,
            unrealized_fraction=position.gain,
        )

    def outcomes(self, last: int) -> tuple[Outcome, ...]:
        """The owner's last outcomes in the symbol, at most `last`."""
        return self.turn.history.of(self.symbol, self.owner, last)

    def lessons(self, kind: str, queries: Mapping[str, str]) -> tuple[Recollection, ...]:
        """A reflection's own past lessons; none without memory."""
        if self.memory is None:
            return ()
        return self.memory.lessons(self.scope, kind, " ".join(queries.values()))

    def without(self, step: str, name: str | None = None) -> Finding[Any] | None:
        """The finding of a step that the preset leaves out, None where it runs. A step that an ablation has left out
        is said to be absent."""
        if step in self.preset.steps:
            return None
        return Finding(absent=f"{name or step}: switched off" if step in self.preset.expected else "")

    def begin(self, step: str) -> None:
        """Publish that a step has begun."""
        turn = self.turn
        self.publish(
            StepStarted(
                run=turn.run,
                time=turn.market.now,
                session=turn.session,
                symbol=self.symbol,
                owner=self.owner,
                step=step,
            )
        )


def finding_of(name: str, reply: Reply[A], lesson: Callable[[A], Item | None] = lambda answer: None) -> Finding[A]:
    """The finding of a step whose agent was asked; `lesson` makes what memory keeps of an answer."""
    if reply.answer is None:
        return Finding(absent=f"{name}: abstained, {reply.abstained_because}")
    return Finding(reply.answer, lesson=lesson(reply.answer))
