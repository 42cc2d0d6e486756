"""Check of the configured models: which service each belongs to, whether its key is there, what it can do."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    """

    agent: str
    spec: ModelSpec
    settings: AgentSettings
    key_variable: str
    sees: bool
    price: ModelPrice | None

    @property
    def key_missing(self) -> bool:
        """Whether its service needs a key that is not there."""
        return bool(self.key_variable) and not os.environ.get(self.key_variable)


def agent_models(services: Services, prices: PriceTable) -> tuple[AgentModel, ...]:
    """Every agent's model. Raises UsageError or ConfigError for a preset or spec that means nothing."""
    config = services.config
    settings, specs = chosen_models(load_preset(config.desk.preset), config)
    found = []
    for agent, text in specs.items():
        spec = parse_model_spec(text, config.endpoints)
        found.append(
            AgentModel(
                agent=agent,
                spec=spec,
                settings=settings[agent],
                key_variable=services.models.key_variable(spec),
                sees=services.models.sees(spec),
                price=prices.find(spec.provider, spec.model),
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
