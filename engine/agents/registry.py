"""All agents, and what follows from their registrations: steps of presets, names of ablations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from engine.agents.agent import DECIDING, Agent
from engine.agents.chart_reading import CHART
from engine.agents.decision import DECISION
from engine.agents.evidence_decision import EVIDENCE_DECISION
from engine.agents.extended_reflection import EXTENDED
from engine.agents.high_level_reflection import HIGH_LEVEL
from engine.agents.immediate_reflection import IMMEDIATE
from engine.agents.low_level_reflection import LOW_LEVEL
from engine.agents.market_intelligence import INTELLIGENCE
from engine.agents.news_digest import NEWS
from engine.agents.past_intelligence import PAST
from engine.agents.performance_reflection import PERFORMANCE
from engine.agents.signal_reflection import SIGNALS
from engine.errors import ConfigError
from engine.user_code import load_name

Agents = Mapping[str, Agent[Any, Any]]
"""Agents by name, in the order of the cycle."""

_OBSERVING = (NEWS, INTELLIGENCE, PAST, CHART)
_REFLECTING = (LOW_LEVEL, HIGH_LEVEL, PERFORMANCE, SIGNALS, EXTENDED, IMMEDIATE)
_DECIDING = (DECISION, EVIDENCE_DECISION)

FEATURES = ("macro", "memory", "diversified", "vision", "tools")
"""Steps of presets that ask no agent: `macro` gives macro series to intelligence and to memory, `memory` recalls and
remembers, `diversified` searches memory once per retrieval type, `vision` shows charts to models that see, `tools`
asks rule strategies and experts."""

_FEATURE_GROUPS = {"memory": ("memory", "diversified")}


@cache
def registered(load: tuple[str, ...] = ()) -> Agents:
    """The agents that ship and those of `FILE.py:NAME` references, which are asked between observing and reflecting.
    Raises ConfigError for a reference that names no agent, and for a name or step that is taken."""
    agents: tuple[Agent[Any, Any], ...] = (*_OBSERVING, *map(_loaded, load), *_REFLECTING, *_DECIDING)
    steps = [agent.step for agent in agents if agent.step != DECIDING]
    for kind, names in (("agent", [agent.name for agent in agents]), ("step", [*steps, *FEATURES])):
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise ConfigError(f"{', '.join(load)}: the {kind} {twice[0]} is taken")
    return {agent.name: agent for agent in agents}


def _loaded(reference: str) -> Agent[Any, Any]:
    agent = load_name(reference)
    if not isinstance(agent, Agent):
        raise ConfigError(f"{reference}: not an Agent")
    if agent.see is None or agent.step == DECIDING:
        raise ConfigError(f"{reference}: an agent of one's own has a step of its own, and says by `see` what it sees")
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
