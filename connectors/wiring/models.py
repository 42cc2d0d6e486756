"""Language models of the configured vendors and endpoints, behind their recorded answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass

from engine import places
from engine.config import Config
from engine.domain.model_call import Capabilities
from engine.domain.model_price import PriceTable
from engine.domain.model_spec import ModelKind, ModelSpec, ReplayMode
from engine.services import OpenModels, RecordedAnswers

KEYS = {ModelKind.OPENAI: "OPENAI_API_KEY", ModelKind.ANTHROPIC: "ANTHROPIC_API_KEY"}
"""Environment variable of each vendor's key."""


@dataclass(frozen=True, slots=True)
class ConfiguredModels:
    """ModelService over a configuration's vendors and endpoints."""

    config: Config

    def open(self, mode: ReplayMode, *, keys_on_demand: bool = False) -> OpenModels:
        """Models that use recorded answers by a mode."""
        from connectors.wiring.remote_models import RemoteModels

        return RemoteModels(self, self.config, mode, keys_on_demand=keys_on_demand)

    def key_variable(self, spec: ModelSpec) -> str:
        """The environment variable of a model's key; empty where none is needed."""
        endpoint = self.config.endpoints.get(spec.endpoint)
        return KEYS.get(spec.kind, "") if endpoint is None else endpoint.key_env or ""

    def sees(self, spec: ModelSpec) -> bool:
        """True where a model is configured to be shown charts."""
        endpoint = self.config.endpoints.get(spec.endpoint)
        return endpoint is None or endpoint.vision

    def prices(self) -> PriceTable:
        """The table of prices that comes with Paperdesk."""
        from connectors.llm.pricing import load_prices

        return load_prices()

    @contextmanager
    def recorded(self) -> Iterator[RecordedAnswers]:
        """The file of recorded answers until the block ends."""
        from connectors.charts.painter import MatplotlibPainter
        from connectors.llm.paid_results import AnswerStore
        from connectors.llm.replay import StoredAnswers

        with closing(AnswerStore(places.replay_cache())) as store:
            yield StoredAnswers(store, MatplotlibPainter.version)

    async def probe(self, spec: ModelSpec) -> Capabilities:
        """Ask a model two small questions, past its recorded answers."""
        from connectors.llm.probe import probe
        from connectors.wiring.remote_models import RemoteModels

        async with aclosing(RemoteModels(self, self.config, ReplayMode.LIVE).live(spec)) as model:
            return await probe(model)
