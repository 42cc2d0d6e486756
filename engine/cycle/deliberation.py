"""One owner's deliberation on one symbol, and the memories that it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.cycle import reflect
from engine.cycle.debate import HeldDebate
from engine.cycle.step import Analysis
from engine.cycle.turn import CycleResult, Turn
from engine.domain.decision import DESK, Opinion, Recollection
from engine.domain.order import PositionContext
from memory.record import Item


@dataclass(frozen=True, slots=True)
class Deliberation:
    """One owner's opinion on one symbol.

    opinion: with the key of run, session, cycle, symbol and owner
    position: what the opinion is sized against
    analysis: what it rests on; None where it abstained before anybody was asked
    debate: the one that fed it, where there was any
    """

    opinion: Opinion
    position: PositionContext
    analysis: Analysis | None = None
    debate: HeldDebate | None = None

    @property
    def recollections(self) -> tuple[Recollection, ...]:
        """The memories that the owner was given."""
        return () if self.analysis is None else self.analysis.observed.recollections

    def memories(self, turn: Turn, result: CycleResult) -> Iterator[Item]:
        """The reflections that it leaves, the immediate one with what was decided, traded and earned."""
        if self.analysis is None or self.analysis.context.memory is None:
            return
        key = self.opinion.key
        decision = next(made for made in result.decisions if made.key in (key, replace(key, owner=DESK)))
        order = next((one for one in result.orders if (one.symbol, one.book) == (key.symbol, decision.book)), None)
        before = next(iter(turn.history.of(key.symbol, key.owner, 1)), None)
        for item in self.analysis.reflections.lessons:
            yield reflect.with_trade(item, decision, order, before, training=turn.training)
