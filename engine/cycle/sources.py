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
    """

    close: Decimal | None = None
    facts: list[Facts] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    unresolved: list[str] = field(default_factory=list)
    made_up: dict[str, Sequence[str]] = field(default_factory=dict)

    def add(self, agent: str, view: View, reply: Reply[A], *, by_rules: bool) -> None:
        """Take in what a question was made of, and look up the figures of its answer there, in the questions before it
        and in the charts. Rules compute what they say of what they see: their words are a source."""
        self.facts.append(Facts.of(reply.inputs, self.written))
        lines = () if reply.answer is None else reply.answer.quoted()
        quoted = "\n".join(lines)
        if by_rules:
            self.facts.append(Facts(quoted))
            return
        self.written.update(lines)
        found = unresolved_figures(quoted, self.facts)
        if found and view.charts:
            self.facts.append(Facts(" ".join(map(chart_text, view.charts))))
            found = unresolved_figures(quoted, self.facts)
        self.made_up[agent] = found
        self.unresolved.extend(f"{figure} ({agent})" for figure in found)

    def decided(self, text: str, inputs: str, action: Action) -> tuple[str, ...]:
        """The figures that a decision made up."""
        return unresolved_figures(text, (*self.facts, Facts.of(inputs, self.written)), action, self.close)

    def struck(self, agent: str, text: str) -> str:
        """The words of an agent with the figures that it made up struck out."""
        return struck(text, self.made_up.get(agent, ()))
