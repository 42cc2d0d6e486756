"""What passes between an agent and those around it: the View that it sees, the Answer that it gives."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from engine.domain.chart import ChartSpec
from engine.domain.market import Symbol


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
        return f"{self.symbol} after {self.session}"


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

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Answer(Part):
    """What an agent must answer. Field descriptions are its instructions; the class docstring is for programmers."""

    def check(self, view: Any) -> None:
        """Raise ValueError for an answer that its view does not allow."""

    def leaning(self) -> int:
        """1 for the share, -1 against it, 0 for neither: what the offline rules make of an own agent's answer."""
        return 0

    def lines(self) -> tuple[str, ...]:
        """The answer for a reader, one line per field unless a class words it better."""
        return tuple(f"{name.replace('_', ' ').capitalize()}: {value}" for name, value in self)


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of a user's own agent as the decision reads it: `leaning` as in Answer."""

    agent: str
    lines: tuple[str, ...]
    leaning: int = 0
