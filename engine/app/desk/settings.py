"""The effective settings of a desk's run, kept in its journal as a backtest keeps its own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from engine.agents.agent import Agent, Answer
from engine.agents.rendering import prompt_version
from engine.app.desk.context import DeskContext
from engine.app.research.run_spec import settled
from engine.domain.run import Briefing, RunSpec
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market, data_fingerprint
from engine.market.trading_hours import decision_time
from engine.preset import Preset
from engine.reports.documents.row_json import Row
from engine.reports.documents.settings import KIND, spec_settings

SIMULATED = ("cash", "fills", "commission", "slippage_bp", "commission_per_order", "commission_per_share", "volume_cap")
"""Settings of the simulated market; an account at a broker has its own."""


def desk_spec(context: DeskContext) -> RunSpec:
    """The description of a desk's session, as a backtest of that session would have it."""
    config, session = context.services.config, context.session
    return RunSpec(
        symbols=context.symbols,
        first=session,
        last=session,
        preset=config.desk.preset,
        data=context.services.data,
        seed=config.desk.seed,
    )


def keep_settings(journal: JournalWriter, run: str, settings: Row) -> None:
    """Keep the settings of a desk's run; one that goes on with changed settings keeps both."""
    journal.keep_version(run, KIND, json.dumps(settings, allow_nan=False))


def effective_settings(context: DeskContext, briefing: Briefing, preset: Preset, market: Market) -> Row:
    """Every effective setting of a desk's run, as a backtest tells its own; `prompts` are the versions of the prompts
    of the preset's agents."""
    services = context.services
    fingerprint = data_fingerprint(market, decision_time(context.calendar, context.session))
    spec = settled(services, replace(desk_spec(context), briefing=briefing, data_fingerprint=fingerprint))
    exchange = services.config.exchanges.of_portfolio(context.symbols)
    found = {
        "symbols": list(context.symbols),
        "preset": preset.name,
        "broker": services.config.broker.kind,
        "mode": services.config.broker.mode.value,
        "calendar": exchange.calendar,
        "currency": exchange.currency,
        **spec_settings(spec),
        "prompts": prompt_versions(preset),
    }
    return found if context.account is None else {**found, **dict.fromkeys(SIMULATED)}


def prompt_versions(preset: Preset) -> dict[str, str]:
    """The version of each active agent's prompt, by agent."""
    return {agent.name: _version(agent) for agent in preset.active_agents}


def _version(agent: Agent[Any, Any]) -> str:
    answer: type[Answer] = agent.answer
    return prompt_version(agent.prompt, answer)
