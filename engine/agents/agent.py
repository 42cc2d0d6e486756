"""The registration of an agent: what it may see, what it must answer, its prompt, its rule, and what it reads.

Everything that counts, orders or names agents is derived from these values (`engine.agents.registry`). A list of agents
elsewhere would be a second registration, and the two would differ some day.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar

from engine.agents.inputs import Inputs
from engine.agents.view import A, View
from engine.domain.model_call import Rule

PROMPTS = Path(__file__).parent / "prompts"
"""Folder of the prompts that ship with the package."""


class Reads(StrEnum):
    """A source of what an agent reads. Calls that read the market alone do not depend on earlier sessions."""

    MARKET = "market"
    HISTORY = "history"
    """Decisions and outcomes of earlier sessions, and the position that they led to."""
    MEMORY = "memory"


DECIDING = "decision"
"""Step of the agents whose answer is the decision; a preset's `decision` chooses among them."""
MARKET_ALONE = frozenset({Reads.MARKET})


V = TypeVar("V", bound=View)


@dataclass(frozen=True, kw_only=True)
class Agent(Generic[V, A]):
    """The registration of an agent.

    name: key of its model and settings, and its name in the journal.
    step: entry in a preset's steps that asks it, and that an ablation leaves out; its name where empty.
    view: class of what it may see.
    see: function from what the cycle has found out to the view, or to the reason why there is nothing to ask; None
    where the cycle has a step of its own for the agent.
    answer, answer_to: class of what it must answer; the second names a subclass where that depends on the view.
    prompt: its template, with a block for the system part and one for the user part; the package's of its name where
    none is given.
    rule: function of the view that answers without a model, as plain JSON.
    reads: sources of what it reads besides other agents' answers, which its view's fields name.
    questions: names of its questions in events and panes, in order; its own name where empty.
    group: name under which an ablation leaves it out together with others.
    decides: values of a preset's `decision` for which its answer is the decision.
    words_searches: True where memory is searched with its answer.
    """

    name: str
    step: str = ""
    view: type[V]
    answer: type[A]
    prompt: Path = Path()
    rule: Rule
    reads: frozenset[Reads]
    see: Callable[[Inputs], V | str] | None = None
    answer_to: Callable[[V], type[A]] | None = None
    questions: tuple[str, ...] = ()
    group: str = ""
    decides: frozenset[str] = frozenset()
    words_searches: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", self.step or self.name)
        object.__setattr__(self, "questions", self.questions or (self.name,))
        if self.prompt == Path():
            object.__setattr__(self, "prompt", PROMPTS / f"{self.name}.md")

    def is_active(self, steps: Container[str], decision: str) -> bool:
        """True where a preset with these steps, and decisions of this kind, asks it."""
        return self.step in steps or (self.step == DECIDING and decision in self.decides)

    def expects(self, view: V) -> type[A]:
        """The class of the answer to a view."""
        return self.answer if self.answer_to is None else self.answer_to(view)
