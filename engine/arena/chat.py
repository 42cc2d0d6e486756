"""The chat pool and the strategy library: what agents tell each other, and what they tried."""

from __future__ import annotations

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
