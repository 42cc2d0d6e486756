"""Models of vendors and endpoints, each behind its recorded answers."""

from __future__ import annotations

import os
from functools import cached_property, partial

from connectors.charts.painter import MatplotlibPainter
from connectors.llm.answer_store import AnswerStore
from connectors.llm.lazy_model import LazyModel
from connectors.llm.pricing import load_prices
from connectors.llm.rate_limiter import RateLimiter
from connectors.llm.remote_model import RemoteModel
from connectors.llm.replay import ReplayModel
from engine import places
from engine.config import Config
from engine.domain.model_price import PriceTable
from engine.domain.model_spec import ModelKind, ModelSpec, ReplayMode
from engine.ports import LanguageModel


class RemoteModels:
    """OpenModels with the parts that several models share: one painter, one store of recorded answers, one rate limiter
    per service. Nothing is opened before it is needed."""

    def __init__(self, config: Config, mode: ReplayMode, *, keys_on_demand: bool = False) -> None:
        self._config = config
        self._mode = mode
        self._keys_on_demand = keys_on_demand
        self._limiters: dict[str, RateLimiter] = {}
        self._made: list[ReplayModel] = []

    @cached_property
    def _painter(self) -> MatplotlibPainter:
        return MatplotlibPainter()

    @cached_property
    def _store(self) -> AnswerStore:
        return AnswerStore(places.replay_cache())

    @cached_property
    def _prices(self) -> PriceTable:
        return load_prices()

    def model(self, spec: ModelSpec) -> LanguageModel:
        """The model of a vendor or an endpoint behind its recorded answers. Raises CredentialsRefused."""
        only_recorded = self._mode is ReplayMode.REPLAY_ONLY
        sees = self._config.endpoints[spec.endpoint].vision if spec.kind is ModelKind.ENDPOINT else True
        inner: RemoteModel | LazyModel | None = None
        if not only_recorded and self._keys_on_demand:
            inner = LazyModel(partial(self.live, spec), provider=spec.provider, model=spec.model, sees=sees)
        elif not only_recorded:
            inner = self.live(spec)
        model = ReplayModel(
            self._store,
            inner,
            provider=spec.provider,
            model=spec.model,
            sees=sees,
            painter_version=self._painter.version,
            mode=self._mode,
            raise_on_miss=only_recorded,
        )
        self._made.append(model)
        return model

    async def aclose(self) -> None:
        """Close every model's connections, and the store."""
        for model in self._made:
            await model.aclose()
        if "_store" in self.__dict__:
            self._store.close()

    def live(self, spec: ModelSpec) -> RemoteModel:
        """The model of a service itself, without recorded answers. Raises CredentialsRefused without a key."""
        limiter = self._limiters.setdefault(spec.provider, self._limiter(spec))
        if spec.kind is ModelKind.ANTHROPIC:
            from connectors.llm.anthropic_model import AnthropicModel

            key = os.environ.get("ANTHROPIC_API_KEY")
            return AnthropicModel(spec.model, api_key=key, prices=self._prices, painter=self._painter, limiter=limiter)
        from connectors.llm.openai_model import OpenAIModel

        if spec.kind is ModelKind.OPENAI:
            key = os.environ.get("OPENAI_API_KEY")
            return OpenAIModel(spec.model, api_key=key, prices=self._prices, painter=self._painter, limiter=limiter)
        endpoint = self._config.endpoints[spec.endpoint]
        variable = endpoint.key_env or ""
        return OpenAIModel(
            spec.model,
            api_key=os.environ.get(variable) if variable else None,
            prices=self._prices,
            painter=self._painter,
            limiter=limiter,
            provider=spec.endpoint,
            key_variable=variable,
            base_url=endpoint.base_url,
            sees=endpoint.vision,
            needs_key=bool(variable),
        )

    def _limiter(self, spec: ModelSpec) -> RateLimiter:
        if spec.kind is not ModelKind.ENDPOINT:
            return RateLimiter()
        endpoint = self._config.endpoints[spec.endpoint]
        return RateLimiter(endpoint.concurrency, endpoint.requests_per_minute)
