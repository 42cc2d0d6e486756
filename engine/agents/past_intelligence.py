"""Past intelligence: what memory brought back is summarized again, before a decision reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from engine.agents.agent import PROMPTS, Agent, Reads
from engine.agents.citing import check_cited
from engine.agents.text import Prose, plain
from engine.agents.view import Answer, View
from engine.domain.recollection import Recollection


@dataclass(frozen=True, slots=True)
class PastView(View):
    """What was retrieved, best first: up to M retrieval types times K. Source: FinAgent §4.1 [A2, A3]."""

    recollections: tuple[Recollection, ...]

    def summary(self) -> str:
        """The view in a few words."""
        return f"{len(self.recollections)} memories"


class PastSummary(Answer):
    """What the past has to say today. Source: FinAgent §4.1 [A3]."""

    summary: Prose = Field(
        description="What of the past bears on today: events with their dates and what came of them, patterns that "
        "repeat, what has changed since."
    )
    still_valid: Annotated[list[str], Field(max_length=200)] = Field(
        description="The ids of the memories that still hold, as they stand in the brackets."
    )
    outdated: Annotated[list[str], Field(max_length=200)] = Field(
        description="The ids of the memories that newer ones or the passing of time have overtaken."
    )

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
    prompt=PROMPTS / "past-intelligence.md",
    rule="engine.offline.past:summarize",
    reads=frozenset({Reads.MEMORY}),
    group="memory",
)
