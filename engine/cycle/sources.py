"""The figures of one analysis, held against what its agents were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from engine.agents.agent import A, View
from engine.agents.ask import Reply
from engine.agents.figures import Facts, struck, unresolved_figures
from engine.domain.chart import chart_text
from engine.domain.decision import Action


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of figures, and the figures that agents made up.

    close: the last one, in the quote currency.
    facts: the closes that the analysis has seen, and the sources of every question so far.
    written: lines of the agents' answers, as prompts show them.
    unresolved: figures that stand in no source, each with the name of its agent.
    made_up: those of each agent's last answer.
    read: sources of what these questions rest on.
    """

    close: Decimal | None = None
    facts: list[Facts] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    unresolved: list[str] = field(default_factory=list)
    made_up: dict[str, Sequence[str]] = field(default_factory=dict)
    read: Sequence[Sources] = ()

    def branch(self, read: Sequence[Sources] = ()) -> Sources:
        """The sources of a step that rests on these and on those of other steps."""
        return Sources(close=self.close, read=(self, *read))

    def absorb(self, other: Sources) -> None:
        """Take in what the questions of a step brought."""
        self.facts.extend(other.facts)
        self.written.update(other.written)
        self.unresolved.extend(other.unresolved)
        self.made_up.update(other.made_up)

    def add(self, agent: str, view: View, reply: Reply[A], *, by_rules: bool) -> None:
        """Take in what a question was made of, and look up the figures of its answer there, in the questions that it
        rests on and in the charts. Rules compute what they say of what they see: their words are a source."""
        self.facts.append(Facts.of(reply.inputs, self._written()))
        lines = () if reply.answer is None else reply.answer.quoted()
        quoted = "\n".join(lines)
        if by_rules:
            self.facts.append(Facts(quoted))
            return
        self.written.update(lines)
        found = unresolved_figures(quoted, self._facts())
        if found and view.charts:
            self.facts.append(Facts(" ".join(map(chart_text, view.charts))))
            found = unresolved_figures(quoted, self._facts())
        self.made_up[agent] = found
        self.unresolved.extend(f"{figure} ({agent})" for figure in found)

    def decided(self, text: str, inputs: str, action: Action) -> tuple[str, ...]:
        """The figures that a decision made up."""
        return unresolved_figures(text, (*self._facts(), Facts.of(inputs, self._written())), action, self.close)

    def struck(self, agent: str, text: str) -> str:
        """The words of an agent with the figures that it made up struck out."""
        return struck(text, self.made_up.get(agent, ()))

    def all(self) -> Sequence[Sources]:
        """These sources and all that they rest on, each once."""
        found = {id(self): self}
        for one in self.read:
            found |= {id(other): other for other in one.all()}
        return tuple(found.values())

    def _facts(self) -> Sequence[Facts]:
        return [facts for one in self.all() for facts in one.facts]

    def _written(self) -> set[str]:
        return set().union(*(one.written for one in self.all()))
