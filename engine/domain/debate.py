"""A debate of several owners on one symbol: their advice round by round, and what they said of each other's.

Source: TradingGPT §4.1.3 [G6].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from engine.domain.decision import Advice, DecisionKey


class Stance(StrEnum):
    """The attitude of a comment towards the advice that it is about."""

    AGREES = "agrees"
    WANTS_MORE = "wants more"
    WANTS_LESS = "wants less"


class DebateEnd(StrEnum):
    """The reason why a debate ended."""

    AGREEMENT = "agreement"
    NO_CHANGE = "no change"
    ROUNDS = "rounds"
    BUDGET = "budget"
    ALONE = "alone"
    """All others have abstained."""
    AFTER_TRADE = "after the trade"
    """In training the comments follow the trade, in one round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment of one owner on the advice of another.

    round: from 1.
    author, receiver: owners.
    stance: towards the receiver's advice.
    text: plain text.
    about: ids of the receiver's memories that it is about.
    """

    round: int
    author: str
    receiver: str
    stance: Stance
    text: str
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundAdvice:
    """One owner's advice at the end of a round.

    round: 0 for the immediate reflection, before anybody commented.
    advice: None where no valid answer came.
    trade: percent of the portfolio that the preset ties to the advice, 0 for a hold.
    confidence: as stated, from 0 to 1.
    reason: plain text.
    """

    round: int
    owner: str
    advice: Advice | None
    trade: int = 0
    confidence: Decimal | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Debate:
    """A debate as it was held.

    key: run, session, cycle and symbol; its owner is the default owner.
    decides: True where the advice of its last round was decided on, False where it followed the trade.
    ended: the reason why no further round began.
    advice: in the order of rounds, then owners.
    comments: in the order of rounds, then authors, then receivers.
    """

    key: DecisionKey
    decides: bool
    ended: DebateEnd
    advice: tuple[RoundAdvice, ...]
    comments: tuple[Comment, ...] = field(default=())

    @property
    def rounds(self) -> int:
        """The number of rounds in which anybody commented."""
        return max((comment.round for comment in self.comments), default=0)

    def of(self, owner: str) -> tuple[RoundAdvice, ...]:
        """An owner's advice, round by round."""
        return tuple(one for one in self.advice if one.owner == owner)

    def changed(self, owner: str) -> bool:
        """True where an owner's last advice is not its first."""
        own = [one.advice for one in self.of(owner) if one.advice is not None]
        return bool(own) and own[0] is not own[-1]
