"""Language models and embedders of the configured vendors and endpoints, behind their recorded results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from engine.domain.model_call import (
    VENDORS,
    Capabilities,
    ModelKind,
    ModelSpec,
    PriceTable,
    ReplayMode,
    parse_model_spec,
)
from engine.domain.run import ModelUse
from engine.errors import ConfigError, UsageError
from engine.services import OpenModels, RecordedAnswers, SpendingLimit
from engine.settings import places
from engine.settings.config import THINKING, Config, EndpointConfig

KEYS = {ModelKind.OPENAI: "OPENAI_API_KEY", ModelKind.ANTHROPIC: "ANTHROPIC_API_KEY"}
"""Environment variable of each vendor's key."""
MINILM = "all-MiniLM-L6-v2"
"""The model of `minilm` where no other is named."""

if TYPE_CHECKING:
    from memory.ports import Embedder


@dataclass(frozen=True, slots=True)
class ConfiguredModels:
    """ModelService over a configuration's vendors and endpoints."""

    config: Config

    def open(
        self,
        mode: ReplayMode,
        *,
        keys_on_demand: bool = False,
        limit: SpendingLimit | None = None,
        paid_since: datetime | None = None,
    ) -> OpenModels:
        """Models that use recorded answers by a mode, and stay within a limit."""
        from connectors.wiring.remote_models import RemoteModels

        return RemoteModels(self, self.config, mode, keys_on_demand=keys_on_demand, limit=limit, paid_since=paid_since)

    def key_variable(self, spec: ModelSpec) -> str:
        """The environment variable of a model's key; empty where none is needed."""
        endpoint = self.config.endpoints.get(spec.provider)
        return (endpoint and endpoint.key_env) or KEYS.get(spec.kind, "")

    def address(self, spec: ModelSpec) -> str:
        """The address that an environment variable gives to a vendor's models, with the variable; empty for none."""
        from connectors.llm.endpoint import BASE_URL_VARIABLES, without_password

        own, variable = self.config.endpoints.get(spec.provider), BASE_URL_VARIABLES.get(spec.provider, "")
        given = "" if own and own.base_url else os.environ.get(variable)
        return f"{without_password(given)} ({variable})" if given else ""

    def sees(self, spec: ModelSpec) -> bool:
        """True where a model is configured to be shown charts."""
        endpoint = self.config.endpoints.get(spec.provider)
        if endpoint is None or (spec.kind in VENDORS and "vision" not in endpoint.model_fields_set):
            return True
        return endpoint.vision

    def prices(self) -> PriceTable:
        """The table of prices that comes with Paperdesk, with the configured ones in it."""
        from connectors.llm.pricing import load_prices, own_price

        own = self.config.models.prices
        specs = {text: parse_model_spec(text, self.config.endpoints) for text in own}
        return load_prices().with_own(
            {(spec.provider, spec.model): own_price(own[text]) for text, spec in specs.items()}
        )

    @contextmanager
    def recorded(self) -> Iterator[RecordedAnswers]:
        """The file of recorded answers until the block ends."""
        from connectors.charts.painter import MatplotlibPainter
        from connectors.llm.replay import StoredAnswers

        with closing(StoredAnswers(places.replay_cache(), MatplotlibPainter.version)) as answers:
            yield answers

    async def probe(self, spec: ModelSpec, at_length: bool = False) -> Capabilities:
        """Ask a model two small questions, past its recorded answers; `at_length` also what a trial asks, with pictures
        whatever is configured."""
        from connectors.llm.probe import probe, trial
        from connectors.wiring.remote_models import RemoteModels

        config = _unrestrained(self.config, spec) if at_length else self.config
        async with aclosing(RemoteModels(ConfiguredModels(config), config, ReplayMode.LIVE).live(spec)) as model:
            return await (trial if at_length else probe)(model)


def _unrestrained(config: Config, spec: ModelSpec) -> Config:
    """The configuration with pictures, and room for thinking, at a model's endpoint."""
    own = config.endpoints.get(spec.provider, EndpointConfig())
    own = own.model_copy(update={"vision": True, "thinking_tokens": own.thinking_tokens or THINKING})
    return config.model_copy(update={"endpoints": {**config.endpoints, spec.provider: own}})


@contextmanager
def open_embedder(
    config: Config,
    spec: str | None,
    on_use: Callable[[ModelUse], None],
    environ: Mapping[str, str] = os.environ,
    *,
    limit: SpendingLimit | None = None,
) -> Iterator[Embedder]:
    """The embedder of a spec (None: the one that [memory] names), with its connections and its file of vectors, until
    the block ends; `on_use` gets the use of every call of a remote one, which stays within a limit. Raises ConfigError
    for a spec that means none, CredentialsRefused for a missing key."""
    text = spec or config.memory.embedder
    if text == "hash-384":
        from memory.embedders import HashEmbedder

        yield HashEmbedder()
        return
    if text == "minilm" or text.startswith("minilm:"):
        from memory.embedders import SentenceEmbedder

        yield SentenceEmbedder(text.removeprefix("minilm").removeprefix(":") or MINILM)
        return
    try:
        named = parse_model_spec(text, config.endpoints)
    except UsageError:
        named = None
    if named is None or named.kind not in (ModelKind.OPENAI, ModelKind.ENDPOINT):
        known = ("hash-384", "minilm:FOLDER", "openai:MODEL", *(f"{name}:MODEL" for name in sorted(config.endpoints)))
        raise ConfigError(f"memory.embedder: {text!r} makes no vectors; available: {', '.join(known)}")
    from connectors.llm.embeddings import OpenAIEmbedder
    from connectors.llm.paid_results import EmbeddingStore
    from connectors.wiring.remote_models import endpoint_of

    models = ConfiguredModels(config)
    endpoint, prices = endpoint_of(models, config, named, environ), models.prices()
    with (
        closing(EmbeddingStore(places.embeddings())) as store,
        closing(OpenAIEmbedder(named.model, endpoint, store, prices=prices, on_use=on_use, limit=limit)) as made,
    ):
        yield made
