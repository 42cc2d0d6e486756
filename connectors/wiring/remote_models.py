"""Models of vendors and endpoints, each behind its recorded answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from functools import cached_property

from connectors.charts.painter import MatplotlibPainter
from connectors.llm.capped_model import CappedModel, SpendingCap
from connectors.llm.endpoint import Endpoint, RateLimiter
from connectors.llm.paid_results import AnswerStore
from connectors.llm.remote_model import RemoteModel
from connectors.llm.replay import ReplayModel
from connectors.loopback import is_loopback
from engine.domain.model_call import PREFLIGHT, VENDORS, ModelKind, ModelRequest, ModelSpec, ReplayMode
from engine.errors import PaperdeskError
from engine.ports import LanguageModel
from engine.services import ModelService, Questions, Report, SpendingLimit
from engine.settings import places
from engine.settings.config import THINKING, Config, EndpointConfig

_REQUESTS_PER_MINUTE = 60


def endpoint_of(
    models: ModelService, config: Config, spec: ModelSpec, environ: Mapping[str, str] = os.environ
) -> Endpoint:
    """The service of a model, with a rate limiter of its own."""
    variable, own = models.key_variable(spec), config.endpoints.get(spec.provider, EndpointConfig())
    thinking = own.thinking_tokens
    return Endpoint(
        provider=spec.provider,
        key_variable=variable,
        api_key=environ.get(variable),
        base_url=own.base_url,
        limiter=RateLimiter(
            own.concurrency, _requests_per_minute(spec, own), own.tokens_per_minute, begin=1 if own.local else None
        ),
        max_output_tokens=own.max_output_tokens,
        thinking_tokens=(THINKING if spec.kind in VENDORS else 0) if thinking is None else thinking,
    )


def _requests_per_minute(spec: ModelSpec, own: EndpointConfig) -> int | None:
    if own.requests_per_minute is not None or spec.kind in VENDORS or is_loopback(own.base_url or ""):
        return own.requests_per_minute
    return _REQUESTS_PER_MINUTE


class RemoteModels:
    """OpenModels with the parts that several models share: one painter, one store of recorded answers, one rate limiter
    per service. Nothing is opened before it is needed."""

    def __init__(
        self,
        service: ModelService,
        config: Config,
        mode: ReplayMode,
        *,
        keys_on_demand: bool = False,
        limit: SpendingLimit | None = None,
        paid_since: datetime | None = None,
    ) -> None:
        self._service, self._config = service, config
        self._mode = mode
        self._keys_on_demand = keys_on_demand
        self._endpoints: dict[str, Endpoint] = {}
        self._painter = MatplotlibPainter()
        self._prices = service.prices()
        self._cap = None if limit is None else SpendingCap(limit)
        self._paid_since = paid_since
        self._made: list[ReplayModel] = []
        self._preflight: Callable[[ModelRequest], Awaitable[None]] | None = None
        self._preparing = asyncio.Lock()
        self._refused: PaperdeskError | None = None

    @cached_property
    def _store(self) -> AnswerStore:
        return AnswerStore(places.replay_cache())

    def model(self, spec: ModelSpec) -> LanguageModel:
        """The model of a vendor or an endpoint behind its recorded answers. Raises CredentialsRefused."""
        inner: RemoteModel | CappedModel | None = None
        if self._mode is not ReplayMode.REPLAY_ONLY:
            live = self.live(spec)
            price = self._prices.find(spec.provider, spec.model)
            inner = live if self._cap is None else CappedModel(live, self._cap, price)
        model = ReplayModel(
            self._store,
            inner,
            provider=spec.provider,
            model=spec.model,
            painter_version=self._painter.version if self._service.sees(spec) else None,
            mode=self._mode,
            before=self._prepare,
            paid_since=self._paid_since,
        )
        self._made.append(model)
        return model

    def ask_first(self, preflight: Callable[[ModelRequest], Awaitable[None]]) -> None:
        """Await `preflight` once, before the first question that no recorded answer is there for."""
        self._preflight = preflight

    async def batch(self, questions: Questions, run: str, booked: Collection[str], report: Report) -> None:
        """Have questions answered in batches, each by the model of its spec, as far as that takes them."""
        asked: dict[str, list[ModelRequest]] = {}
        for spec, request in questions:
            asked.setdefault(spec, []).append(request)
        made = {model.spec: model for model in reversed(self._made)}
        known = [(made[spec], requests) for spec, requests in asked.items() if spec in made]
        await asyncio.gather(*(model.batch(requests, run, booked, report) for model, requests in known))

    async def _prepare(self, request: ModelRequest) -> None:
        if request.purpose == PREFLIGHT:
            return
        async with self._preparing:
            if self._preflight is not None:
                try:
                    await self._preflight(request)
                except PaperdeskError as error:
                    self._refused = error
                self._preflight = None
            if self._refused is not None:
                raise self._refused

    async def aclose(self) -> None:
        """Close every model's connections, and the store with them."""
        for model in self._made:
            await model.aclose()

    def live(self, spec: ModelSpec) -> RemoteModel:
        """The model of a service itself, without recorded answers.

        Raises CredentialsRefused without a key, and with `keys_on_demand` only for the first question.
        """
        endpoint = self._endpoints.setdefault(spec.provider, endpoint_of(self._service, self._config, spec))
        if not self._keys_on_demand:
            endpoint.check(str(spec))
        painter = self._painter if self._service.sees(spec) else None
        if spec.kind is ModelKind.ANTHROPIC:
            from connectors.llm.anthropic_model import AnthropicModel

            return AnthropicModel(spec.model, endpoint, self._prices, painter)
        from connectors.llm.openai_model import OpenAIModel

        return OpenAIModel(spec.model, endpoint, self._prices, painter)
