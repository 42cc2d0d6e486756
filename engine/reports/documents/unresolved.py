"""Figures that stand in no source, counted by the agent that quoted them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from engine.domain.decision import Decision
from engine.domain.run import ModelUse

_OF_AGENT = re.compile(r".+ \((?P<agent>[^()]+)\)")


def unresolved_by_agent(decisions: Iterable[Decision], use: ModelUse | None) -> Mapping[str, int]:
    """The number of unresolved figures of each agent, as far as decisions rest on them. A decision's own are of the
    agent that decides: of those that the run has asked the last one."""
    figures = [figure for made in decisions for figure in made.unresolved_figures]
    if not figures:
        return {}
    from engine.agents.registry import registered

    asked = {} if use is None else use.agents
    deciding = [agent.name for agent in registered().values() if agent.decides and agent.name in asked]
    named = (_OF_AGENT.fullmatch(figure) for figure in figures)
    return dict(Counter(one["agent"] if one else deciding[-1] if deciding else "decision" for one in named))
