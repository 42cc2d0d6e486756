"""Models of a run: a model and its settings for each agent, by preset, configuration and flag together.

Preflight: one short question per model, settings and picture of a run, before the first question that is paid for.

A model that is not there, or a key or a setting that is refused, ends the run before anything is decided or paid. The
answer does not matter; it is recorded like any other, so that no run asks again for what one has been told already.

Notes on the models of a run: what they were trained on, the age of their prices; and the label of a run.

A model whose every question waits at a gate, where an operator's pause holds it.

A briefing: all that the user adds to a preset for a run. It is configured, kept with the run, and read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from engine.agents.agent import Agent, Reads, View
from engine.agents.ask import MAY_PASS, Asker, QuestionKey, agent_of, check_had, for_owner
from engine.agents.registry import market_alone, waits_for
from engine.agents.tools import read_guidance
from engine.app.models.mask import Mask, masked
from engine.app.models.recorded_run import RecordedRun, Unseeing, each_once, recorded_backtest
from engine.domain.chart import SAMPLE
from engine.domain.json_text import from_json, to_json
from engine.domain.market import Symbol
from engine.domain.model_call import (
    NO_OPTIONS,
    PREFLIGHT,
    VENDORS,
    AnswerRecord,
    Capabilities,
    Message,
    ModelKind,
    ModelRequest,
    ModelResult,
    ModelSpec,
    PriceTable,
    ReplayMode,
    UnansweredCall,
    one_word,
    parse_model_spec,
    replays,
)
from engine.domain.run import Briefing, DataSpec, ExpertNote, RunSpec
from engine.errors import BudgetReached, ConfigError, MissingData, PaperdeskError, UsageError
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.events import AgentSaid, Publish
from engine.offline.model import OfflineModel
from engine.ports import Clock, LanguageModel
from engine.preset import Preset, briefed, load_preset
from engine.reports.documents.set_up import AgentModel, Probed
from engine.services import OpenModels, Services
from engine.session.cost_meter import answered
from engine.settings.config import THINKING, Config, EndpointConfig
from engine.settings.values import AgentSettings

Through = Callable[[LanguageModel], LanguageModel]
"""A wrapper of every model that a run asks."""
OnUnanswered = Callable[[QuestionKey, UnansweredCall], None]
"""A listener to every call that no agent got an answer from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSet:
    """Models and settings of a run.

    spec: the models' specs as a result names them.
    models: model by agent.
    settings: settings by agent.
    insisted: agents whose temperature the user set.
    opened: connections and files that the models share.
    agents: those that the preset's steps ask.
    decides: the agent that decides.
    owners: for whom it decides.
    mask: hides the market from the models; None where nothing is hidden.
    """

    spec: str
    models: Mapping[str, LanguageModel]
    settings: Mapping[str, AgentSettings]
    insisted: frozenset[str]
    opened: OpenModels
    agents: tuple[Agent[Any, Any], ...] = ()
    decides: str = "decision"
    owners: tuple[str, ...] = ()
    mask: Mask | None = None

    @property
    def label(self) -> str:
        """The label of the model that decides; of every owner's, where they differ."""
        keys = (for_owner(self.decides, owner) for owner in self.owners)
        models = [self.models.get(key) or self.models[self.decides] for key in keys] or [self.models[self.decides]]
        return ", ".join(dict.fromkeys(model.label for model in models))

    def asker(
        self,
        spec: RunSpec | None,
        on_answer: Callable[[AnswerRecord], None],
        on_delta: Callable[[QuestionKey, str], None] = lambda key, text: None,
        through: Through = lambda model: model,
        *,
        on_unanswered: OnUnanswered = lambda key, call: None,
    ) -> Asker:
        """The way of a run's agents to the models, each wrapped by `through`; a desk's run has no spec."""
        asker = Asker(
            {agent: through(model) for agent, model in self.models.items()},
            self.settings,
            on_answer,
            on_delta,
            sample=0 if spec is None else spec.sample,
            options=NO_OPTIONS if spec is None else spec.options,
            insisted=self.insisted,
            on_unanswered=on_unanswered,
        )
        self.opened.ask_first(Preflight(asker, self.agents))
        return asker

    def publishing_asker(
        self,
        run: str,
        clock: Clock,
        on_answer: Callable[[AnswerRecord], None],
        *,
        spec: RunSpec | None = None,
        on_answered: Publish,
        on_text: Publish,
        on_unanswered: OnUnanswered,
        through: Through = lambda model: model,
    ) -> Asker:
        """An asker whose every call is an event for `on_answered`, and whose streamed text is one for `on_text`."""

        def answer(record: AnswerRecord) -> None:
            on_answer(record)
            on_answered(answered(record, run, clock.now()))

        def text(key: QuestionKey, part: str) -> None:
            on_text(
                AgentSaid(
                    run=run,
                    time=clock.now(),
                    session=key.session,
                    symbol=key.symbol,
                    owner=key.owner,
                    step=key.step,
                    text=part,
                )
            )

        return self.asker(spec, answer, text, through, on_unanswered=on_unanswered)

    async def aclose(self) -> None:
        """Close connections and files; inside the event loop that asked. Whoever is cancelled closes them first."""
        closing = asyncio.ensure_future(self.opened.aclose())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await closing
            raise


def build_models(
    services: Services,
    preset: Preset,
    override: str | None = None,
    *,
    recorded: RecordedModels = (),
    keys_on_demand: bool = False,
    replayed: RecordedRun | None = None,
    mask: Mask | None = None,
) -> ModelSet:
    """The models of a run; without the preset's step `vision` none of them is shown a picture.

    override: a flag's model, which answers every agent; or `replay`: models from recorded answers alone, never the
        rules; or `replay:RUN`: the same with the models and answers of one run.
    recorded: the models of a run that is repeated, in place of the configuration's.
    keys_on_demand: a missing key is raised by the first question that no recorded answer is there for.
    replayed: the run whose models and answers are replayed, where that is known already.
    mask: hides the market from every model; what a run has recorded is unmasked already.

    Raises UsageError or ConfigError for a spec that means nothing, CredentialsRefused for a missing key, and
    BudgetReached by the first question that does not fit into the services' limit.
    """
    config = services.config
    mode = ReplayMode(config.models.replay)
    replay = replays(override)
    if override is not None and replay and (run := parse_model_spec(override).model):
        replayed = recorded_backtest(run)
    if replay or replayed is not None:
        mode, override = ReplayMode.REPLAY_ONLY, None
    settings, specs = chosen_models(preset, config, override, recorded=recorded)
    if replay and (replayed is None or replayed.by_rules):
        replayed, specs = None, _replayed(services, preset, specs)
    if replayed is not None and not replayed.models:  # nobody was asked
        replayed = None
    source = services.models.open(
        mode, keys_on_demand=keys_on_demand, limit=services.limit, paid_since=services.paid_since
    )

    def model(text: str) -> LanguageModel:
        return masked(open_model(text, config, source), mask)

    if replayed is None:
        opened = {text: model(text) for text in dict.fromkeys(specs.values())}
    else:  # by agent: which model has answered is known of each question
        specs = {agent: agent for agent in specs}
        opened = {agent: replayed.model(agent, model) for agent in specs}
    return ModelSet(
        spec=", ".join(dict.fromkeys(model.spec for model in opened.values() if model.spec)),
        models=_with_fallbacks(models_of_agents(preset, specs, opened), settings, cache(model)),
        settings=settings,
        insisted=insisted_agents(config),
        opened=source,
        agents=tuple(preset.active_agents),
        decides=preset.decider.name,
        owners=tuple(preset.owners),
        mask=mask,
    )


class WithFallback:
    """A model in whose place another one answers while it cannot be asked, or its budget is used up, and in a replay
    where that one's answer alone is recorded; the answer's notes say so."""

    def __init__(self, model: LanguageModel, other: LanguageModel) -> None:
        self.spec, self.label, self.sees = model.spec, model.label, model.sees
        self._model, self._other = model, other

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's own answer, or the other's."""
        result: ModelResult | None
        if request.ahead:
            return await self._model.answer(request, on_delta)
        try:
            result = await self._model.answer(request, on_delta)
            failure = result.failure
            if failure is None or failure.kind not in MAY_PASS:
                return result
            because = f"{failure.kind.value}: {failure.detail}"
        except (BudgetReached, MissingData) as error:
            result, because = None, str(error)
        answer = await self._other.answer(request, on_delta)
        note = f"answered by {self._other.spec} in place of {self.spec}: {because}"
        failed = (*(() if result is None else result.failed), *answer.failed)
        return replace(answer, notes=(note, *answer.notes), failed=failed)


def _with_fallbacks(
    models: Mapping[str, LanguageModel], settings: Mapping[str, AgentSettings], made: Callable[[str], LanguageModel]
) -> Mapping[str, LanguageModel]:
    """The models of agents, each with the one that its settings name as a fallback; the rules always answer."""
    asking = (agent for agent, model in models.items() if model.spec != OfflineModel.spec)
    others = {agent: other for agent in asking if (other := settings[agent_of(agent)].fallback) is not None}
    return {**models, **{agent: WithFallback(models[agent], made(other)) for agent, other in others.items()}}


def models_of_agents(
    preset: Preset, specs: Mapping[str, str], opened: Mapping[str, LanguageModel]
) -> Mapping[str, LanguageModel]:
    """The model of every agent of a preset, by the spec of each and the opened model of each spec: without the step
    `vision` none of them is shown a picture, and none is asked the same twice in a batch."""
    shown = dict(opened)
    if "vision" not in preset.steps:
        shown = {text: Unseeing(model) for text, model in opened.items()}
    remote = {text: model for text, model in shown.items() if model.spec != OfflineModel.spec}
    shown |= each_once(remote)
    return {agent: shown[text] for agent, text in specs.items()}


def insisted_agents(config: Config) -> frozenset[str]:
    """The agents whose temperature the user set."""
    return frozenset(agent for agent, own in config.models.agents.items() if "temperature" in own.model_fields_set)


def _replayed(services: Services, preset: Preset, specs: dict[str, str]) -> dict[str, str]:
    """The models whose recorded answers are replayed: the configured ones, and where those are the rules, which record
    nothing, the only one of which any are recorded. Raises MissingData and ConfigError where there is none."""
    rules = [agent.name for agent in preset.active_agents if specs[agent.name] == OfflineModel.spec]
    if not rules:
        return specs
    with services.models.recorded() as recorded:
        known = recorded.specs()
    if not known:
        raise MissingData("--model replay: no answers are recorded yet; run once with the model itself")
    if len(known) > 1 or len(rules) < len(preset.active_agents):
        named = f"agent {rules[0]} is configured to be answered by the rules, which record nothing"
        raise ConfigError(
            f"--model replay: {named}; set models.default to one that is recorded ({', '.join(known)}), or name a run "
            "whose models are replayed: --model replay:RUN"
        )
    return dict.fromkeys(specs, known[0])


def open_model(text: str, config: Config, source: OpenModels) -> LanguageModel:
    """The model of a spec. Raises UsageError or ConfigError for one that means nothing, CredentialsRefused."""
    spec = parse_model_spec(text, config.endpoints)
    if spec.kind is ModelKind.OFFLINE:
        return OfflineModel()
    if spec.kind is ModelKind.REPLAY:
        raise ConfigError(f"{text} is a mode, not a model: set models.replay = replay-only")
    return source.model(spec)


RecordedModels = Sequence[tuple[str, str]]
"""Agents with the specs of the models that answer them, as a run has recorded them."""


def chosen_models(
    preset: Preset, config: Config, override: str | None = None, *, recorded: RecordedModels = ()
) -> tuple[dict[str, AgentSettings], dict[str, str]]:
    """Settings and model spec of every agent: the preset's wishes, changed by the configuration; a recorded model
    stays. Nothing is opened. Raises ConfigError for an unknown agent, UsageError for a fallback that is no model."""
    known = dict(recorded)
    for where, named in (
        ("models.agents", config.models.agents),
        (f"preset {preset.name}: agents", preset.agents),
    ):
        unknown = sorted(set(named) - set(preset.registered))
        if unknown:
            raise ConfigError(f"{where}.{unknown[0]}: unknown agent; available: {', '.join(preset.registered)}")
    settings: dict[str, AgentSettings] = {}
    specs: dict[str, str] = {}
    for agent in preset.registered:
        wished = preset.agents.get(agent, AgentSettings())
        own = config.models.agents.get(agent)
        changes = {} if own is None else own.model_dump(exclude_unset=True)
        settings[agent] = wished.model_copy(update=changes)
        specs[agent] = override or known.get(agent) or settings[agent].model or config.models.default
        if (other := settings[agent].fallback) is not None:  # also where the rules answer, which need none
            parse_model_spec(other, config.endpoints)
    for owner, wish in _owners_models(preset, config).items():
        for active in preset.active_agents:
            key = for_owner(active.name, owner)
            specs[key] = override or known.get(key) or wish
    return settings, specs


def check_batches(preset: Preset, config: Config, spec: RunSpec) -> None:
    """Raise ConfigError for a run whose agents that read the market alone cannot be asked in batches."""
    if replays(spec.model) or config.models.replay == ReplayMode.REPLAY_ONLY:
        return
    alone = market_alone(preset.registered)
    active = {agent.name for agent in preset.active_agents if agent.name in alone}
    if not active:
        raise ConfigError(f"--batch: preset {preset.name} has no agent that reads the market alone")
    specs = chosen_models(preset, config, spec.model, recorded=spec.models)[1]
    asked = [parse_model_spec(text, config.endpoints) for key, text in specs.items() if agent_of(key) in active]
    other = next((one for one in asked if one.kind not in (*VENDORS, ModelKind.OFFLINE)), None)
    if other is not None or all(one.kind is ModelKind.OFFLINE for one in asked):
        named = ", ".join(sorted(active))
        why = "the rules answer at once, for nothing" if other is None else f"{other} takes no batches"
        raise ConfigError(f"--batch: {why}; name a model of {' or '.join(VENDORS)} for {named}, or leave --batch out")


def _owners_models(preset: Preset, config: Config) -> Mapping[str, str]:
    """The models of owners that have one of their own: the configuration's, the owner's, its character's."""
    unknown = sorted(set(config.models.owners) - set(preset.owners))
    if unknown:
        raise ConfigError(
            f"models.owners.{unknown[0]}: preset {preset.name} has no such owner; it has {', '.join(preset.owners)}"
        )
    chosen = {name: config.models.owners.get(name) or preset.owner(name).model for name in preset.owners}
    return {name: model for name, model in chosen.items() if model}


def agent_models(services: Services, prices: PriceTable) -> tuple[AgentModel, ...]:
    """Every agent's model. Raises UsageError or ConfigError for a preset or spec that means nothing."""
    config = services.config
    preset = load_preset(config.desk.preset)
    settings, specs = chosen_models(preset, config)
    active = {agent.name: agent for agent in preset.active_agents}
    found = []
    for agent, text in specs.items():
        spec, registration = parse_model_spec(text, config.endpoints), preset.registered[agent_of(agent)]
        found.append(
            AgentModel(
                agent=agent,
                spec=spec,
                settings=settings[agent_of(agent)],
                key_variable=services.models.key_variable(spec),
                sees=services.models.sees(spec),
                price=prices.find(spec.provider, spec.model),
                active=agent_of(agent) in active,
                reads=tuple(source for source in Reads if source in registration.reads),
                waits_for=waits_for(registration, active),
            )
        )
    return tuple(found)


async def probe_models(services: Services, specs: Sequence[ModelSpec], at_length: bool = False) -> Probed:
    """Ask each model two small questions, or all that there is to find out of it; what was refused or cannot be asked
    is a problem. The offline rules belong to no service and are left out."""
    found: dict[ModelSpec, Capabilities] = {}
    for spec in dict.fromkeys(specs):
        if spec.kind in (ModelKind.OFFLINE, ModelKind.REPLAY):
            continue
        try:
            found[spec] = await services.models.probe(spec, at_length)
        except PaperdeskError as error:
            found[spec] = Capabilities(problem=str(error))
    return found


@dataclass(frozen=True, slots=True)
class Preflight:
    """The preflight of a run whose agents ask through an asker."""

    asker: Asker
    agents: Sequence[Agent[Any, Any]]

    async def __call__(self, first: ModelRequest) -> None:
        """Ask every model in each way that the agents ask it; `first` is the question that waits for it, whose symbol
        and session the calls are kept under. Raises CredentialsRefused, ConfigError and TryAgainLater."""
        for agent, model, request in self._questions(first):
            key = QuestionKey(
                agent=agent, step=PREFLIGHT, symbol=first.symbol, session=first.session, owner=first.owner
            )
            result = await model.answer(request, lambda text: None)  # streamed, as the agents' own questions are
            for call in result.failed:
                self.asker.on_unanswered(key, call)
            check_had(result, f"asked for {agent} before the first question")
            if not result.cached:
                used = UnansweredCall(
                    model=result.model,
                    kind=PREFLIGHT,
                    detail="" if result.failure is None else result.failure.kind,
                    input_tokens=result.usage.input_tokens,
                    output_tokens=result.usage.output_tokens,
                    cost=result.cost,
                    latency=result.latency,
                )
                self.asker.on_unanswered(key, used)

    def _questions(self, first: ModelRequest) -> Iterator[tuple[str, LanguageModel, ModelRequest]]:
        known = set()
        for agent, model in ((one, model) for one in self.agents for model in self.asker.models_of(one.name)):
            if model.spec == ModelKind.OFFLINE:
                continue
            settings, shows = self.asker.settings_of(agent.name), model.sees and agent.view.charts is not View.charts
            options = self.asker.options_of(agent.name)
            way = (model.spec, replace(settings, timeout=0.0), options, shows)
            if way not in known:
                known.add(way)
                yield (
                    agent.name,
                    model,
                    replace(
                        first,
                        purpose=PREFLIGHT,
                        system="You answer with JSON.",
                        messages=(Message("user", "Answer with the word ready.", (SAMPLE,) if shows else ()),),
                        view=None,
                        schema_name=PREFLIGHT,
                        schema=one_word("word"),
                        settings=settings,
                        options=options,
                        sample=0,
                        rule=None,
                    ),
                )


_THEN = ", then "
UNKNOWN = "unknown"


def model_notes(services: Services, preset: Preset, spec: RunSpec) -> list[str]:
    """Notes on the models of a backtest: those that were trained on its window, and prices that are old."""
    config, prices = services.config, services.models.prices()
    override = None if replays(spec.model) else spec.model
    notes = []
    specs = chosen_models(preset, config, override, recorded=spec.models)[1]
    active = {agent.name for agent in preset.active_agents}
    for text in dict.fromkeys(text for key, text in specs.items() if agent_of(key) in active):
        try:
            named = parse_model_spec(text, config.endpoints)
        except UsageError:  # a replay of a model whose endpoint is gone
            continue
        price = prices.find(named.provider, named.model)
        if price is not None and f"{spec.first:%Y-%m}" <= price.training_cutoff:
            extent = "lies" if f"{spec.last:%Y-%m}" <= price.training_cutoff else "begins"
            notes.append(
                f"the window {extent} within the training of {text}, which knows the world to "
                f"{price.training_cutoff}: what it decides may be remembered"
            )
    if spec.options.mask and OfflineModel.spec in specs.values():
        notes.append("a mask changes nothing for the rules, which read values and recall nothing")
    return [*notes, *price_notes(services, preset, spec.model, spec.models)]


def known_of(services: Services, specs: str) -> tuple[str, str]:
    """The training cut-off of models (`A, B`) and the date of their prices, as ModelUse has them."""
    prices, cutoffs, priced = services.models.prices(), dict[str, str](), ""
    for text in filter(None, specs.split(", ")):
        try:
            named = parse_model_spec(text, services.config.endpoints)
        except UsageError:  # of an endpoint that is gone
            cutoffs[text] = UNKNOWN
            continue
        if named.kind in (ModelKind.OFFLINE, ModelKind.REPLAY):
            continue
        price = prices.find(named.provider, named.model)
        cutoffs[text] = (price and price.training_cutoff) or UNKNOWN
        priced = str(prices.as_of) if prices.dated(named.provider, named.model) else priced
    if len(set(cutoffs.values())) > 1:
        return ", ".join(f"{until} ({text})" for text, until in cutoffs.items()), priced
    return next(iter(cutoffs.values()), ""), priced


def price_notes(
    services: Services, preset: Preset, override: str | None = None, recorded: RecordedModels = ()
) -> list[str]:
    """Warnings of models without a price that are near one with a price, and where the costs of a run would come from a
    price table that is old by now."""
    config, prices = services.config, services.models.prices()
    if replays(override):
        return []
    texts = chosen_models(preset, config, override, recorded=recorded)[1].values()
    specs = [parse_model_spec(text, config.endpoints) for text in texts]
    today = services.clock.now().date()
    stale = [stale_words(prices)] if any(prices.stale(one.provider, one.model, today) for one in specs) else []
    return [*unpriced_notes(specs, prices), *stale]


def unpriced_notes(specs: Iterable[ModelSpec], prices: PriceTable) -> list[str]:
    """A line for each model without a known price that may be a misspelt one."""
    meant = ((one, prices.meant(one.provider, one.model)) for one in dict.fromkeys(specs))
    return [f"{one} has no known price; did you mean {near}?" for one, near in meant if near]


def label_after(before: str, label: str) -> str:
    """The label of a run that goes on: every model that decides it; `before` is empty where nobody has yet."""
    known = before.split(_THEN) if before else []
    return before if label in known else _THEN.join((*known, label))


def stale_words(prices: PriceTable) -> str:
    """The warning about an old price table."""
    return (
        f"the price table is of {prices.as_of}: what models cost may have changed since; update Paperdesk, or set "
        "models.prices"
    )


Gate = Callable[[], Awaitable[None]]
"""A wait while the desk is paused; awaited before every question to a model."""
PAUSE_SECONDS = 1.0
"""Seconds between two looks at a pause, which another process may end."""


class Gated:
    """A model that waits at the gate before every question."""

    def __init__(self, inner: LanguageModel, gate: Gate) -> None:
        self.spec, self.label, self.sees = inner.spec, inner.label, inner.sees
        self._inner = inner
        self._gate = gate

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The inner model's answer, once the gate is open."""
        await self._gate()
        return await self._inner.answer(request, on_delta)


_FILES = (".txt", ".md")
_BRIEFING = "briefing"


def configured_briefing(services: Services, data: DataSpec, symbols: Sequence[Symbol]) -> Briefing:
    """The configured briefing on some symbols; on the demo market each listing has a profile. Raises ConfigError for
    a profile's file that cannot be read, MissingData and MalformedData for one of notes, UsageError for symbols that
    cannot be in one portfolio."""
    config, desk = services.config, services.config.desk
    return Briefing(
        profiles=tuple(_profiles(services, data, symbols)),
        risk=desk.risk,
        preference=desk.preference,
        tools=desk.tools,
        instruction=desk.instruction or "",
        guidance=configured_guidance(config, symbols),
        currency=config.exchanges.of_portfolio(symbols).currency,
    )


def desk_preset(services: Services) -> Preset:
    """The desk's preset with the configured briefing. Raises as `load_preset` and `configured_briefing` do."""
    briefing = configured_briefing(services, services.data, services.symbols)
    return briefed(load_preset(services.config.desk.preset), briefing)


def _profiles(services: Services, data: DataSpec, symbols: Sequence[Symbol]) -> Iterator[tuple[Symbol, str]]:
    for symbol in symbols:
        own = services.config.desk.profile.get(symbol)
        text = services.profile_of(data, symbol) if own is None else _text(symbol, own)
        if text:
            yield symbol, text


def _text(symbol: Symbol, own: str) -> str:
    if not own.lower().endswith(_FILES) or "\n" in own:
        return own
    path = Path(own).expanduser()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"desk.profile.{symbol}: {path} cannot be read ({reason}); correct the path") from None


def configured_guidance(config: Config, symbols: Sequence[Symbol]) -> tuple[ExpertNote, ...]:
    """The configured notes of experts on some symbols. Raises MissingData and MalformedData for a file of them that
    cannot be read."""
    if config.data.guidance is None:
        return ()
    notes = read_guidance(Path(config.data.guidance).expanduser())
    return tuple(note for note in notes if note.symbol in symbols)


def keep_briefing(journal: JournalWriter, run: str, briefing: Briefing) -> None:
    """Keep the briefing of a desk's run; one that goes on with a changed briefing keeps both."""
    journal.keep_version(run, _BRIEFING, to_json(briefing))


def recorded_briefing(reader: JournalReader, run: RunEntry) -> Briefing | None:
    """The briefing of a run's agents; None of a run that kept none."""
    if run.spec is not None:
        return run.spec.briefing
    known = reader.document_versions(run.id, _BRIEFING)
    return from_json(Briefing, known[-1]) if known else None


def endpoint_values(config: Config, spec: ModelSpec, capabilities: Capabilities) -> Mapping[str, bool | int]:
    """The values of a model's endpoint that a trial at length has found out."""
    own = config.endpoints.get(spec.provider, EndpointConfig())
    values: dict[str, bool | int] = {"vision": capabilities.sees}
    if capabilities.thinks and spec.kind is ModelKind.ENDPOINT:
        values["thinking_tokens"] = own.thinking_tokens or THINKING
    return values
