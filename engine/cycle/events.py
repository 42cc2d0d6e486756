"""Events of a cycle's results."""

from __future__ import annotations

from engine.cycle.turn import Turn
from engine.domain.decision import Decision, Opinion
from engine.messages.events import DecisionMade, OpinionFormed


def opinion_formed(turn: Turn, opinion: Opinion) -> OpinionFormed:
    """The event of an opinion that was combined with others."""
    key = opinion.key
    return OpinionFormed(
        run=turn.run,
        time=turn.market.now,
        session=key.session,
        symbol=key.symbol,
        owner=key.owner,
        action=opinion.action.value,
        size=opinion.size,
        reason=opinion.reason,
    )


def decision_made(turn: Turn, decision: Decision) -> DecisionMade:
    """The event of a decision."""
    key = decision.key
    return DecisionMade(
        run=turn.run,
        time=turn.market.now,
        session=key.session,
        symbol=key.symbol,
        owner=key.owner,
        action=decision.action.value,
        size=decision.size,
        reason=decision.reason,
        cut=decision.cut,
    )
