"""Which services the configured models belong to, whether their keys are there, and what they can do when asked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connectors.llm.pricing import load_prices
from connectors.llm.probe import probe
from connectors.wiring.models import Workshop, chosen_models
from engine.config import Config
from engine.domain.model_call import Capabilities
from engine.domain.model_price import ModelPrice, PriceTable
from engine.domain.model_spec import ModelKind, ModelSpec, ReplayMode, parse_model_spec
from engine.errors import CredentialsRefused, PaperdeskError
from engine.preset import load_preset
from engine.settings import AgentSettings

KEYS = {ModelKind.OPENAI: "OPENAI_API_KEY", ModelKind.ANTHROPIC: "ANTHROPIC_API_KEY"}
"""Where each vendor's key comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentModel:
    """The model that answers an agent. `key_variable` is empty where no key is needed; `price` None where it is not
    known (the rules cost nothing)."""

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


def agent_models(config: Config, prices: PriceTable | None = None) -> tuple[AgentModel, ...]:
    """Every agent's model. Raises UsageError or ConfigError for a preset or spec that means nothing."""
    table = prices or load_prices()
    settings, specs = chosen_models(load_preset(config.desk.preset), config)
    found = []
    for agent, text in specs.items():
        spec = parse_model_spec(text, config.endpoints)
        endpoint = config.endpoints.get(spec.endpoint)
        variable = KEYS.get(spec.kind, "") if endpoint is None else endpoint.key_env or ""
        sees = True if endpoint is None else endpoint.vision
        found.append(
            AgentModel(
                agent=agent,
                spec=spec,
                settings=settings[agent],
                key_variable=variable,
                sees=sees,
                price=table.find(spec.provider, spec.model),
            )
        )
    return tuple(found)


async def ask_services(config: Config, specs: Sequence[ModelSpec]) -> Mapping[ModelSpec, Capabilities | PaperdeskError]:
    """Asks each service's model two tiny questions; what was refused or cannot be asked is the error. The rules are
    nobody's service and are left out."""
    workshop = Workshop(config, ReplayMode.LIVE)
    found: dict[ModelSpec, Capabilities | PaperdeskError] = {}
    for spec in dict.fromkeys(specs):
        if spec.kind in (ModelKind.OFFLINE, ModelKind.REPLAY):
            continue
        try:
            model = workshop.live(spec)
        except CredentialsRefused as error:
            found[spec] = error
            continue
        try:
            found[spec] = await probe(model)
        except PaperdeskError as error:
            found[spec] = error
        finally:
            await model.aclose()
    return found
