"""Which model answers which agent, with its settings: preset, configuration and flag together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from connectors.charts.painter import MatplotlibPainter
from connectors.llm.answer_store import AnswerStore
from connectors.llm.call_gate import CallGate
from connectors.llm.on_demand import OnDemand
from connectors.llm.pricing import load_prices
from connectors.llm.remote_model import RemoteModel
from connectors.llm.replay import ReplayModel
from engine import places
from engine.config import Config
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.model_price import PriceTable
from engine.domain.model_spec import ModelKind, ModelSpec, ReplayMode, parse_model_spec
from engine.errors import ConfigError
from engine.offline.model import OfflineModel
from engine.ports import LanguageModel
from engine.preset import Preset
from engine.settings import AgentSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSet:
    """Models and settings by agent, `decides` the one that decides; `spec` is what a result says, `insisted` the agents
    whose temperature the user set himself."""

    spec: str
    models: Mapping[str, LanguageModel]
    settings: Mapping[str, AgentSettings]
    insisted: frozenset[str]
    workshop: Workshop
    decides: str = "decision"

    @property
    def label(self) -> str:
        """How the decision's model is introduced."""
        return self.models[self.decides].label

    async def aclose(self) -> None:
        """Lets go of connections and files; inside the event loop that asked."""
        await self.workshop.aclose()


def build_models(
    preset: Preset, config: Config, override: str | None = None, *, keys_on_demand: bool = False
) -> ModelSet:
    """The models of a run; without the preset's step `vision` none of them is shown a picture. `override` (a flag)
    answers every agent, or is `replay`: the configured models, from recorded answers alone. Raises UsageError or
    ConfigError for a spec that means nothing, CredentialsRefused for a missing key; with `keys_on_demand` that is
    raised by the first question that no recorded answer is there for."""
    mode = ReplayMode(config.models.replay)
    if override == ModelKind.REPLAY:
        mode, override = ReplayMode.REPLAY_ONLY, None
    settings, specs = chosen_models(preset, config, override)
    workshop = Workshop(config, mode, keys_on_demand=keys_on_demand)
    opened = {text: workshop.model(text) for text in dict.fromkeys(specs.values())}
    if "vision" not in preset.steps:
        opened = {text: _Unseeing(model) for text, model in opened.items()}
    spec = ", ".join(dict.fromkeys(model.spec for model in opened.values()))
    insisted = frozenset(a for a, own in config.models.agents.items() if "temperature" in own.model_fields_set)
    return ModelSet(
        spec=spec,
        models={agent: opened[text] for agent, text in specs.items()},
        settings=settings,
        insisted=insisted,
        workshop=workshop,
        decides=preset.decider.name,
    )


def chosen_models(
    preset: Preset, config: Config, override: str | None = None
) -> tuple[dict[str, AgentSettings], dict[str, str]]:
    """Settings and model spec of every agent: the preset's wishes, changed by the configuration. Nothing is opened.
    Raises ConfigError for an agent that there is not."""
    for where, named in (
        ("models.agents", config.models.agents),
        (f"preset {preset.name}: agents", preset.agents),
    ):
        unknown = sorted(set(named) - set(preset.registered))
        if unknown:
            raise ConfigError(f"{where}.{unknown[0]}: no such agent; there are {', '.join(preset.registered)}")
    settings: dict[str, AgentSettings] = {}
    specs: dict[str, str] = {}
    for agent in preset.registered:
        wished = preset.agents.get(agent, AgentSettings())
        own = config.models.agents.get(agent)
        changes = {} if own is None else own.model_dump(exclude_unset=True)
        settings[agent] = wished.model_copy(update=changes)
        specs[agent] = override or settings[agent].model or config.models.default
    return settings, specs


class _Unseeing:
    """A model that is shown no pictures: it reads their figures, as one that cannot see does."""

    sees = False

    def __init__(self, model: LanguageModel) -> None:
        self.spec, self.label = model.spec, model.label
        self._model = model

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's own answer."""
        return await self._model.answer(request, on_delta)


class Workshop:
    """Makes models, and what several of them share: one painter, one store of recorded answers, one gate per
    service. Nothing is opened before it is needed."""

    def __init__(self, config: Config, mode: ReplayMode, *, keys_on_demand: bool = False) -> None:
        self._config = config
        self._mode = mode
        self._keys_on_demand = keys_on_demand
        self._gates: dict[str, CallGate] = {}
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

    def model(self, text: str) -> LanguageModel:
        """The model of a spec. Raises UsageError, ConfigError and CredentialsRefused."""
        spec = parse_model_spec(text, self._config.endpoints)
        if spec.kind is ModelKind.OFFLINE:
            return OfflineModel()
        if spec.kind is ModelKind.REPLAY:
            raise ConfigError(
                "models.default: replay is a way of running, not a model: set models.replay = replay-only"
            )
        only_recorded = self._mode is ReplayMode.REPLAY_ONLY
        sees = self._config.endpoints[spec.endpoint].vision if spec.kind is ModelKind.ENDPOINT else True
        inner: RemoteModel | OnDemand | None = None
        if not only_recorded and self._keys_on_demand:
            inner = OnDemand(partial(self.live, spec), provider=spec.provider, model=spec.model, sees=sees)
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
        """Closes every model's connections, and the store."""
        for model in self._made:
            await model.aclose()
        if "_store" in self.__dict__:
            self._store.close()

    def live(self, spec: ModelSpec) -> RemoteModel:
        """The model of a service itself, without recorded answers. Raises CredentialsRefused without a key."""
        gate = self._gates.setdefault(spec.provider, self._gate(spec))
        if spec.kind is ModelKind.ANTHROPIC:
            from connectors.llm.anthropic_model import AnthropicModel

            key = os.environ.get("ANTHROPIC_API_KEY")
            return AnthropicModel(spec.model, api_key=key, prices=self._prices, painter=self._painter, gate=gate)
        from connectors.llm.openai_model import OpenAIModel

        if spec.kind is ModelKind.OPENAI:
            key = os.environ.get("OPENAI_API_KEY")
            return OpenAIModel(spec.model, api_key=key, prices=self._prices, painter=self._painter, gate=gate)
        endpoint = self._config.endpoints[spec.endpoint]
        variable = endpoint.key_env or ""
        return OpenAIModel(
            spec.model,
            api_key=os.environ.get(variable) if variable else None,
            prices=self._prices,
            painter=self._painter,
            gate=gate,
            provider=spec.endpoint,
            key_variable=variable,
            base_url=endpoint.base_url,
            sees=endpoint.vision,
            needs_key=bool(variable),
        )

    def _gate(self, spec: ModelSpec) -> CallGate:
        if spec.kind is not ModelKind.ENDPOINT:
            return CallGate()
        endpoint = self._config.endpoints[spec.endpoint]
        return CallGate(endpoint.concurrency, endpoint.requests_per_minute)
