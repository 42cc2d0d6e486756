"""Every agent, and what follows from their registrations: steps, questions, ablations, who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.agents.agent import Agent
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

BUILT_IN: Mapping[str, Agent[Any, Any]] = {
    agent.name: agent
    for agent in (
        NEWS,
        INTELLIGENCE,
        PAST,
        CHART,
        LOW_LEVEL,
        HIGH_LEVEL,
        PERFORMANCE,
        SIGNALS,
        EXTENDED,
        IMMEDIATE,
        DECISION,
        EVIDENCE_DECISION,
    )
}
"""The agents that ship, by name, in the order of the cycle."""
