"""The registration of an agent: its view, its answer, its prompt, its rule, and what it reads.

Everything that counts, orders or names agents is derived from these values (`engine.agents.registry`). A list of agents
elsewhere would be a second registration, and the two would differ some day."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from engine.agents.text import plain
from engine.domain.chart import ChartSpec
from engine.domain.decision import Outcome
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem, PriceHistory, Symbol
from engine.domain.model_call import Rule
from engine.domain.portfolio import PositionContext
from engine.domain.recollection import Recollection


@dataclass(frozen=True, slots=True)
class View:
    """All that an agent may see, as a frozen value. Each agent's own View adds its fields."""

    symbol: Symbol
    session: date
    owner: str

    @property
    def question(self) -> str:
        """The name of the question in events, where an agent asks several; empty: the agent's own."""
        return ""

    @property
    def charts(self) -> tuple[ChartSpec, ...]:
        """Charts that a model that sees is shown as images."""
        return ()

    def summary(self) -> str:
        """A few words for the record."""
        return f"{self.symbol} after {self.session}"


@dataclass(frozen=True, slots=True)
class ChartedView(View):
    """A view with one chart; a model that does not see reads `figures` instead."""

    chart: ChartSpec

    @property
    def charts(self) -> tuple[ChartSpec, ...]:
        """The chart."""
        return (self.chart,)

    def figures(self) -> str:
        """The chart's figures as text, a line per session."""
        raise NotImplementedError


class Part(BaseModel):
    """A part of an answer: frozen, and closed to fields that nobody asked for. A field's docstring (or description) is
    the instruction to the model."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, use_attribute_docstrings=True)


class Answer(Part):
    """Base of an agent's answer. The fields' docstrings are instructions; class docstrings are for programmers."""

    def check(self, view: Any) -> None:
        """Raise ValueError for an answer that its view does not allow."""

    def missing(self, view: Any) -> str:
        """The complaint about what an answer leaves out: it goes back once, and is taken as it is then. Empty where it
        is whole."""
        return ""

    def leaning(self) -> int:
        """The side that the offline rules count for one of the user's own agents: 1 bullish, -1 bearish, 0 neither."""
        return 0

    def lines(self) -> tuple[str, ...]:
        """The answer for a reader, one line per value. Fields with `repr=False` are for memory and left out."""
        shown = ((name, value) for name, value in self if type(self).model_fields[name].repr)
        return tuple(
            f"{name.replace('_', ' ').capitalize()}: {item}"
            for name, value in shown
            for item in (value if isinstance(value, list) else [value])
        )

    def quoted(self) -> tuple[str, ...]:
        """The lines as the prompts of other agents quote them."""
        return tuple(f"- {plain(line)}" for line in self.lines())


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of a user's own agent as the decision reads it: `leaning` as in Answer."""

    agent: str
    lines: tuple[str, ...]
    leaning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The inputs of one agent. What its registration does not say that it reads is empty.

    now: moment of the cycle, UTC.
    bars: visible bars, oldest first.
    news, filings, macro: new since the last decision, in order of availability.
    outcomes: results of the last decisions, oldest first.
    holding: the position and the cash.
    recollections: memories, best first within a layer.
    answers: answers by agent, of those that the agent's View has a field for.
    """

    symbol: Symbol
    session: date
    owner: str
    now: datetime
    bars: PriceHistory
    news: tuple[NewsItem, ...] = ()
    filings: tuple[Filing, ...] = ()
    macro: tuple[MacroRelease, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    holding: PositionContext | None = None
    recollections: tuple[Recollection, ...] = ()
    answers: Mapping[str, Answer]

    def answer(self, kind: type[A]) -> A | None:
        """The answer of a class; None where its agent was not asked or abstained."""
        return next((answer for answer in self.answers.values() if isinstance(answer, kind)), None)


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
