"""An analyst as one value: what it may see, what it must answer, its prompt, and the rule that answers without a model.

Everything that counts, orders or names agents is derived from these values (`engine.agents.registry`). A list of agents
elsewhere would be a second registration, and the two would differ some day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from engine.domain.chart import ChartSpec
from engine.domain.market import Symbol

PROMPTS = Path(__file__).parent / "prompts"
"""Folder of the prompts that ship with the package."""


class Reads(StrEnum):
    """A source of what an agent reads. Calls that read the market alone do not depend on earlier sessions."""

    MARKET = "market"
    HISTORY = "history"
    """Decisions and outcomes of earlier sessions, and the position that they led to."""
    MEMORY = "memory"


MARKET_ALONE = frozenset({Reads.MARKET})


@dataclass(frozen=True, slots=True)
class View:
    """All that an agent may see, as a frozen value; each agent's own View adds its fields."""

    symbol: Symbol
    session: date
    owner: str

    @property
    def question(self) -> str:
        """The name of the question in events, where an agent asks several; empty: the agent's own."""
        return ""

    @property
    def charts(self) -> tuple[ChartSpec, ...]:
        """Pictures for a model that sees."""
        return ()

    def summary(self) -> str:
        """A few words for the record."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ChartedView(View):
    """A view with one picture; a model that does not see reads `figures` instead."""

    chart: ChartSpec

    @property
    def charts(self) -> tuple[ChartSpec, ...]:
        """The picture."""
        return (self.chart,)

    def figures(self) -> str:
        """The picture's figures as text, a line per session."""
        raise NotImplementedError


class Part(BaseModel):
    """A part of an answer: frozen, and closed to fields that nobody asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(Part):
    """What an agent must answer. Field descriptions are its instructions; the class docstring is for programmers."""

    def check(self, view: Any) -> None:
        """Raise ValueError for an answer that its view does not allow."""

    def lines(self) -> tuple[str, ...]:
        """The answer for a reader, one line per field unless a class words it better."""
        return tuple(f"{name.replace('_', ' ').capitalize()}: {value}" for name, value in self)


V = TypeVar("V", bound=View)
A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, kw_only=True)
class Agent(Generic[V, A]):
    """The registration of an agent.

    `name`: key of its model and settings, and its name in the journal.
    `step`: entry in a preset's steps that asks it, and that an ablation leaves out.
    `view`: class of what it may see.
    `answer`: class of what it must answer; `answer_to` names a subclass where that depends on the view.
    `prompt`: its template, with one block for the system part and one for the user part.
    `rule`: function of the view that answers without a model, or `MODULE:FUNCTION` for one of engine.offline.
    `reads`: sources of what it reads besides other agents' answers, which its view's fields name.
    `questions`: names of its questions in events and panes, in order; its own name where empty.
    `group`: name under which an ablation leaves it out together with others.
    `decides`: values of a preset's `decision` for which its answer is the decision.
    `words_searches`: whether memory is searched with its answer.
    """

    name: str
    step: str
    view: type[V]
    answer: type[A]
    prompt: Path
    rule: Callable[[Any], Mapping[str, Any]] | str
    reads: frozenset[Reads]
    answer_to: Callable[[V], type[A]] | None = None
    questions: tuple[str, ...] = ()
    group: str = ""
    decides: frozenset[str] = frozenset()
    words_searches: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", self.questions or (self.name,))

    def expects(self, view: V) -> type[A]:
        """The class of the answer to a view."""
        return self.answer if self.answer_to is None else self.answer_to(view)
