"""Views and answers: the values that pass between agents and the cycle."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from engine.domain.chart import ChartSpec
from engine.domain.market import Symbol


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
    """A part of an answer: frozen, and closed to fields that nobody asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Answer(Part):
    """Base of an agent's answer. The fields' descriptions are instructions; class docstrings are for programmers."""

    def check(self, view: Any) -> None:
        """Raise ValueError for an answer that its view does not allow."""

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


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of a user's own agent as the decision reads it: `leaning` as in Answer."""

    agent: str
    lines: tuple[str, ...]
    leaning: int = 0
