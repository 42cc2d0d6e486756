"""Past intelligence: what memory brought back is summarized again, before a decision reads it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from engine.agents.ask import Asker, Reply
from engine.agents.citing import check_cited
from engine.agents.text import Prose, plain
from engine.domain.lesson import Recollection
from engine.domain.market import Symbol


@dataclass(frozen=True, slots=True)
class PastView:
    """What was retrieved, best first: up to M retrieval types times K. Source: FinAgent §4.1 [A2, A3]."""

    symbol: Symbol
    session: date
    owner: str
    recollections: tuple[Recollection, ...]

    def summary(self) -> str:
        """The view in a few words."""
        return f"{len(self.recollections)} memories"


class PastSummary(BaseModel):
    """What the past has to say today. Source: FinAgent §4.1 [A3]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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

    @model_validator(mode="after")
    def _keeps_to_the_memories(self, info: ValidationInfo) -> PastSummary:
        view = info.context.get("view") if info.context else None
        if isinstance(view, PastView):
            known = frozenset(memory.handle for memory in view.recollections)
            check_cited(self.still_valid, known, "still_valid")
            check_cited(self.outdated, known, "outdated")
        both = set(self.still_valid) & set(self.outdated)
        if both:
            raise ValueError(f"a memory is still valid or outdated, not both: {plain(min(both), 40)}")
        return self

    def lines(self) -> tuple[str, ...]:
        """The summary for a reader."""
        return (
            *self.summary.splitlines(),
            f"{len(self.still_valid)} memories still hold, {len(self.outdated)} are outdated.",
        )


async def summarize_past(asker: Asker, view: PastView) -> Reply[PastSummary]:
    """Asks the past intelligence agent."""
    return await asker.ask("past-intelligence", view, PastSummary)
