"""Check of the configured models: which service each belongs to, whether its key is there, what it can do."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.agents.agent import Reads
from engine.agents.graph import waits_for
from engine.app.models import chosen_models
from engine.domain.model_call import Capabilities
from engine.domain.model_price import ModelPrice, PriceTable
from engine.domain.model_spec import ModelKind, ModelSpec, parse_model_spec
from engine.errors import PaperdeskError
from engine.preset import load_preset
from engine.services import Services
from engine.settings import AgentSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentModel:
    """The model that answers an agent.

    agent: the agent's name.
    spec: the model.
    settings: how it is asked.
    key_variable: environment variable of its service's key, empty where none is needed.
    sees: whether it is shown pictures.
    price: None where it is not known; the rules cost nothing.
    active: True where the desk's preset asks the agent.
    reads: sources of what it reads.
    waits_for: the other active agents whose answers it reads.
    """

    agent: str
    spec: ModelSpec
    settings: AgentSettings
    key_variable: str
    sees: bool
    price: ModelPrice | None
    active: bool
    reads: tuple[str, ...]
    waits_for: tuple[str, ...]

    @property
    def key_missing(self) -> bool:
        """Whether its service needs a key that is not there."""
        return bool(self.key_variable) and not os.environ.get(self.key_variable)


def agent_models(services: Services, prices: PriceTable) -> tuple[AgentModel, ...]:
    """Every agent's model. Raises UsageError or ConfigError for a preset or spec that means nothing."""
    config = services.config
    preset = load_preset(config.desk.preset)
    settings, specs = chosen_models(preset, config)
    active = {agent.name: agent for agent in preset.active_agents}
    found = []
    for agent, text in specs.items():
        spec, registration = parse_model_spec(text, config.endpoints), preset.registered[agent]
        found.append(
            AgentModel(
                agent=agent,
                spec=spec,
                settings=settings[agent],
                key_variable=services.models.key_variable(spec),
                sees=services.models.sees(spec),
                price=prices.find(spec.provider, spec.model),
                active=agent in active,
                reads=tuple(source for source in Reads if source in registration.reads),
                waits_for=waits_for(registration, active),
            )
        )
    return tuple(found)


async def probe_models(
    services: Services, specs: Sequence[ModelSpec]
) -> Mapping[ModelSpec, Capabilities | PaperdeskError]:
    """Ask each model two small questions; what was refused or cannot be asked is the error. The offline rules belong
    to no service and are left out."""
    found: dict[ModelSpec, Capabilities | PaperdeskError] = {}
    for spec in dict.fromkeys(specs):
        if spec.kind in (ModelKind.OFFLINE, ModelKind.REPLAY):
            continue
        try:
            found[spec] = await services.models.probe(spec)
        except PaperdeskError as error:
            found[spec] = error
    return found
