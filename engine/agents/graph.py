"""The graph of calls: which agents wait for which, and what each may be given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, get_args, get_type_hints

from engine.agents.agent import Agent, Reads
from engine.agents.inputs import Inputs
from engine.agents.view import Report


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
