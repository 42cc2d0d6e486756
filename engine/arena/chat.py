"""The chat pool and the strategy library: what agents tell each other, and what they tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """A message of the chat pool.

    id: DAY-AGENT, by which a run can be repeated without it.
    to: the agents that read it.
    truth: what its author knows of it: True, False for an invention, None where it does not say. For whoever runs the
      arena; no agent is told.
    """

    id: str
    day: int
    agent: str
    to: tuple[str, ...]
    text: str
    truth: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A strategy of an agent and what came of it.

    day: the day after which it was written, 0 for the one of the beginning.
    parent: day of the strategy that it was written from; None at the beginning.
    score: mean over its days of the agent's return less the mean return of all agents, in percent; None before it was
      used.
    """

    day: int
    text: str
    parent: int | None = None
    score: float | None = None


def best_and_worst(library: Sequence[Strategy], count: int = 5) -> tuple[Sequence[Strategy], Sequence[Strategy]]:
    """The strategies with the highest scores, the best first, and of the others those with the lowest, the worst first.

    Source: Agent Trading Arena §4.2 [R5].
    """
    tried = sorted((one for one in library if one.score is not None), key=lambda one: -(one.score or 0.0))
    best = tried[:count]
    return best, tuple(reversed(tried[len(best) :][-count:]))
