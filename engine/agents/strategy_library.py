"""The strategies that an agent has tried: the best and the worst of them, and the one that a decision followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol, TypeVar

_MARK = "\nStrategy in force: "


class Scored(Protocol):
    """A strategy with its score; None before it was used."""

    @property
    def score(self) -> float | None:
        """The score."""


S = TypeVar("S", bound=Scored)


def best_and_worst(library: Sequence[S], count: int = 5) -> tuple[Sequence[S], Sequence[S]]:
    """The strategies with the highest scores, the best first, and of the others those with the lowest, the worst first.

    Source: Agent Trading Arena §4.2 [R5].
    """
    tried = sorted((one for one in library if one.score is not None), key=lambda one: -(one.score or 0.0))
    best = tried[:count]
    return best, tuple(reversed(tried[len(best) :][-count:]))


@dataclass(frozen=True, slots=True)
class TriedStrategy:
    """A strategy for real prices. `score`: mean over its sessions of the portfolio's return less the mean return of the
    stocks, in percent; None before the first of them has closed."""

    since: date
    text: str
    score: float | None

    @property
    def line(self) -> str:
        """The strategy for a prompt."""
        return f"since {self.since}, score {0.0 if self.score is None else self.score:+.2f}: {self.text}"


def with_strategy(reason: str, strategy: str) -> str:
    """The reason of a decision with the strategy that it followed, so that the record of decisions is the library."""
    return f"{reason}{_MARK}{' '.join(strategy.split())}"


def without_strategy(reason: str) -> tuple[str, str]:
    """The reason and the strategy apart; the strategy is empty where none was followed."""
    before, mark, strategy = reason.rpartition(_MARK)
    return (before, strategy) if mark else (reason, "")
