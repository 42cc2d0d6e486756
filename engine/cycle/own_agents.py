"""The step that asks the user's own agents. Their registrations say what they see: no step is written for them.

They are asked between observing and reflecting, one after the other in the order of the preset's `load`. Each may read
the answers of those before it.
"""

from __future__ import annotations

from typing import Any

from engine.agents.agent import Agent
from engine.agents.graph import cut
from engine.agents.inputs import Inputs
from engine.agents.view import Answer, Report
from engine.cycle.analysis import Observations
from engine.cycle.step import Finding, StepContext, finding_of
from engine.errors import ConfigError
from engine.user_code import failures_of


async def reports(context: StepContext, observed: Observations) -> tuple[Finding[Report], ...]:
    """The reports of the preset's own agents, for the decision."""
    findings: list[Finding[Report]] = []
    answers, agents = dict(observed.answers), context.preset.registered
    for agent in agents.values():
        if agent.see is None:
            continue
        finding = await _asked(context, agent, cut(_inputs(context, observed, answers), agent, agents))
        report = None
        if finding.value is not None:
            answers[agent.name] = finding.value
            report = Report(agent.name, finding.value.lines(), finding.value.leaning())
        findings.append(Finding(report, finding.absent))
    return tuple(findings)


async def _asked(context: StepContext, agent: Agent[Any, Any], inputs: Inputs) -> Finding[Answer]:
    """The finding of one agent. Raises ConfigError, naming file and line, where its code fails."""
    if (left_out := context.without(agent.step)) is not None:
        return left_out
    with failures_of(agent.view, ConfigError):
        view = agent.see(inputs) if agent.see is not None else ""
        if isinstance(view, str):
            return Finding(absent=f"{agent.name}: {view}")
        context.begin(agent.questions[0])
        return finding_of(agent.name, await context.asker.ask(agent, view))


def _inputs(context: StepContext, observed: Observations, answers: dict[str, Answer]) -> Inputs:
    return Inputs(
        symbol=context.symbol,
        session=context.turn.session,
        owner=context.owner,
        now=context.turn.market.now,
        bars=context.bars,
        news=tuple(context.news),
        filings=tuple(observed.filings),
        macro=tuple(observed.macro.value or ()),
        outcomes=context.outcomes(context.preset.windows.history),
        holding=context.holding,
        recollections=observed.recollections,
        answers=answers,
    )
