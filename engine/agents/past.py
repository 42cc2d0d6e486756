"""The agent that summarizes what memory recalled of the past. Source: FinAgent §4.1 [A3]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from engine.agents.agent import Agent, Answer, Prose, Reads, View, check_cited, cut_note, plain
from engine.domain.decision import Recollection
from engine.domain.text import counted


@dataclass(frozen=True, slots=True)
class PastView(View):
    """The recalled memories, best first: up to M retrieval types times K. Source: FinAgent §4.1 [A2, A3]."""

    recollections: tuple[Recollection, ...]

    def summary(self) -> str:
        """The view in a few words."""
        return f"{counted(len(self.recollections), 'memory', 'memories')}{cut_note(self.recollections)}"


class PastSummary(Answer):
    """A summary of the past for today. Source: FinAgent §4.1 [A3]."""

    summary: Prose = Field(
        description="What of the past matters today: events with their dates and outcomes, patterns that repeat, what "
        "has changed since."
    )
    still_valid: Annotated[list[str], Field(max_length=200)]
    """The ids, as given in brackets, of the memories that are still valid."""
    outdated: Annotated[list[str], Field(max_length=200)]
    """The ids of the memories that are outdated by newer ones or by time."""

    def check(self, view: PastView) -> None:
        """Raise ValueError for memories that were not given, or that are named in both lists."""
        known = frozenset(memory.handle for memory in view.recollections)
        check_cited(self.still_valid, known, "still_valid")
        check_cited(self.outdated, known, "outdated")
        both = set(self.still_valid) & set(self.outdated)
        if both:
            raise ValueError(f"a memory is still valid or outdated, not both: {plain(min(both), 40)}")

    def lines(self) -> tuple[str, ...]:
        """The summary for a reader."""
        return (
            *self.summary.splitlines(),
            f"{len(self.still_valid)} memories still hold, {len(self.outdated)} are outdated.",
        )


PAST = Agent(
    name="past-intelligence",
    step="past",
    view=PastView,
    answer=PastSummary,
    rule="engine.offline.memories:summarize",
    reads=frozenset({Reads.MEMORY}),
    group="memory",
)
