"""The reports of one analysis, held against what their agents were given."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from engine.agents.agent import A, View
from engine.agents.ask import Reply
from engine.agents.evidence import unresolved_figures, without_figures
from engine.domain.chart import chart_text


@dataclass(frozen=True, slots=True)
class Sources:
    """The figures that agents made up: they are no source for the agents that read their reports.

    lines: lines of reports that hold such figures, as prompts show them, each with the line without the figures.
    unresolved: the figures with the name of their agent.
    """

    lines: dict[str, str] = field(default_factory=dict)
    unresolved: list[str] = field(default_factory=list)

    def checked(self, reply: Reply[A]) -> Reply[A]:
        """The reply, its inputs without the figures that reports in them made up."""
        inputs = reply.inputs
        for line, sound in self.lines.items():
            inputs = inputs.replace(line, sound)
        return replace(reply, inputs=inputs)

    def add(self, agent: str, view: View, reply: Reply[A]) -> None:
        """Look up the figures of a checked reply in its inputs, and in the charts of the question."""
        lines = () if reply.answer is None else reply.answer.quoted()
        quoted, inputs = "\n".join(lines), reply.inputs
        found = unresolved_figures(quoted, inputs)
        if found and view.charts:
            found = unresolved_figures(quoted, " ".join((inputs, *map(chart_text, view.charts))))
        if not found:
            return
        self.unresolved.extend(f"{figure} ({agent})" for figure in found)
        self.lines.update({line: without_figures(line, found) for line in lines})
