"""All agents, and what follows from their registrations: steps of presets, names of ablations, the graph of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, get_args, get_type_hints

from engine.agents.agent import DECIDING, MARKET_ALONE, Agent, Inputs, Reads, Report
from engine.agents.chart import CHART
from engine.agents.debate import COMMENT, RECONSIDER
from engine.agents.decision import DECISION, EVIDENCE_DECISION, WHOLE_DECISION
from engine.agents.immediate import IMMEDIATE
from engine.agents.intelligence import FILING_SUMMARY, INTELLIGENCE
from engine.agents.news import NEWS
from engine.agents.past import PAST
from engine.agents.portfolio import PORTFOLIO_ANALYSIS, PORTFOLIO_DECISION, PORTFOLIO_REFLECTION
from engine.agents.reflections import EXTENDED, HIGH_LEVEL, LOW_LEVEL, PERFORMANCE, SIGNALS
from engine.errors import ConfigError
from engine.settings.user_code import Kind, code_version, load_name

Agents = Mapping[str, Agent[Any, Any]]
"""Agents by name, in the order of the cycle."""

_OBSERVING = (NEWS, FILING_SUMMARY, INTELLIGENCE, PAST, CHART)
_REFLECTING = (LOW_LEVEL, HIGH_LEVEL, PERFORMANCE, SIGNALS, EXTENDED, IMMEDIATE)
_DEBATING = (COMMENT, RECONSIDER)
_DECIDING = (DECISION, EVIDENCE_DECISION, WHOLE_DECISION)
_PORTFOLIO = (PORTFOLIO_REFLECTION, PORTFOLIO_ANALYSIS, PORTFOLIO_DECISION)

FEATURES = ("macro", "commentary", "memory", "diversified", "analyses", "vision", "tools")
"""Steps of presets that ask no agent: `macro` gives macro series and `commentary` what funds say to intelligence and to
memory, `memory` recalls and remembers, `diversified` searches memory once per retrieval type, `analyses` remembers what
intelligence said of every item and of the day, `vision` shows charts to models that see, `tools` asks rule strategies
and experts."""

_FEATURE_GROUPS = {"memory": ("memory", "diversified", "analyses")}


def registered(load: tuple[str, ...] = ()) -> Agents:
    """The agents that ship and those of `FILE.py:NAME` references or entry points, which are asked between observing
    and reflecting. Raises ConfigError for a reference that names no agent, and for a name or step that is taken."""
    return _registered(load, code_version() if load else 0)


@cache
def _registered(load: tuple[str, ...], version: int) -> Agents:
    own = [_loaded(reference) for reference in load]
    deciding = (*_DEBATING, *_DECIDING, *_PORTFOLIO)
    agents: tuple[Agent[Any, Any], ...] = (*_OBSERVING, *own, *_REFLECTING, *deciding)
    shipped = (agent.step for agent in (*_OBSERVING, *_REFLECTING, *deciding) if agent.step != DECIDING)
    steps = [*dict.fromkeys(shipped), *(agent.step for agent in own)]
    for kind, names in (("agent", [agent.name for agent in agents]), ("step", [*steps, *FEATURES])):
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise ConfigError(f"{', '.join(load)}: the {kind} {twice[0]} is already registered")
    return {agent.name: agent for agent in agents}


def _loaded(reference: str) -> Agent[Any, Any]:
    agent = load_name(reference, Kind.AGENT)
    if not isinstance(agent, Agent):
        raise ConfigError(f"{reference}: not an Agent")
    if agent.see is None or agent.step == DECIDING:
        raise ConfigError(f"{reference}: a custom agent needs its own step, and a `see` that returns its view")
    return agent


def steps_of(agents: Agents) -> tuple[str, ...]:
    """Everything that a preset's steps may name."""
    return (*(agent.step for agent in agents.values() if agent.step != DECIDING), *FEATURES)


def step_groups(agents: Agents) -> Mapping[str, tuple[str, ...]]:
    """Names under which an ablation leaves out several steps."""
    groups = dict(_FEATURE_GROUPS)
    for agent in agents.values():
        if agent.group:
            groups[agent.group] = (*groups.get(agent.group, ()), agent.step)
    return groups


def ablations(agents: Agents) -> tuple[str, ...]:
    """Everything that an ablation may leave out: steps, and groups of them."""
    return tuple(dict.fromkeys((*steps_of(agents), *step_groups(agents))))


def inputs_of(agents: Agents, steps: Sequence[str], decider: str) -> tuple[str, ...]:
    """The inputs that a decision by these steps can do without, in their order: a group of features counts as one, the
    agent that decides is none, and news that are read as intelligence can be withheld."""
    group_of = {step: group for group, members in _FEATURE_GROUPS.items() for step in members}
    withheld = ("news",) if INTELLIGENCE.step in steps and NEWS.step not in steps else ()
    deciding = agents[decider].step
    return tuple(dict.fromkeys((*withheld, *(group_of.get(step, step) for step in steps if step != deciding))))


def waits_for(agent: Agent[Any, Any], agents: Mapping[str, Agent[Any, Any]]) -> tuple[str, ...]:
    """The agents whose answers an agent reads: those that its View has a field for, and, where it reads memory, those
    whose answers word the searches."""
    kinds = _kinds(agent)
    return tuple(
        other.name
        for other in agents.values()
        if other is not agent
        and (
            any(issubclass(kind, other.answer) for kind in kinds)
            or (other.see is not None and Report in kinds)
            or (other.words_searches and Reads.MEMORY in agent.reads)
        )
    )


def market_alone(agents: Agents) -> Agents:
    """The agents that read nothing but the market, and answers of others that do: no earlier session changes what they
    are asked."""
    alone: dict[str, Agent[Any, Any]] = {}
    for name, agent in agents.items():
        if agent.reads <= MARKET_ALONE and all(other in alone for other in waits_for(agent, agents)):
            alone[name] = agent
    return alone


def cut(inputs: Inputs, agent: Agent[Any, Any], agents: Mapping[str, Agent[Any, Any]]) -> Inputs:
    """The inputs without what an agent does not say that it reads. An agent that is registered as reading the market
    alone can be asked for a whole window at once; it must not come to know more by accident."""
    waited = waits_for(agent, agents)
    history, memory = Reads.HISTORY in agent.reads, Reads.MEMORY in agent.reads
    return replace(
        inputs,
        outcomes=inputs.outcomes if history else (),
        holding=inputs.holding if history else None,
        recollections=inputs.recollections if memory else (),
        answers={name: answer for name, answer in inputs.answers.items() if name in waited},
    )


@cache
def _kinds(agent: Agent[Any, Any]) -> frozenset[type]:
    """The classes that the fields of an agent's View name."""
    return frozenset(kind for hint in get_type_hints(agent.view).values() for kind in _classes(hint))


def _classes(hint: Any) -> Iterator[type]:
    for part in get_args(hint) or (hint,):
        if get_args(part):
            yield from _classes(part)
        elif isinstance(part, type):
            yield part
