"""The forecast of a bench: an estimate of its models' calls, tokens and dollars.

The first sessions of every run are played with the offline rules; what they asked is taken for the rest. Answers that
are recorded already are followed as far as they go, and not counted as to be paid.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from engine.agents.ask import agent_of, for_owner
from engine.agents.registry import market_alone
from engine.app.bench.jobs import Job, agents_of, job_market
from engine.app.memory import remembers, run_memory
from engine.app.models.mask import mask_of, masked
from engine.app.models.models import build_models, chosen_models
from engine.app.models.recorded_run import each_once
from engine.app.research.agent_run import AgentRun
from engine.app.research.run_spec import Stop
from engine.domain.model_call import (
    BATCH,
    CACHED_FROM,
    TIERS,
    VENDORS,
    ModelKind,
    ModelPrice,
    ModelRequest,
    ModelResult,
    ModelSpec,
    PriceTable,
    ReplayMode,
    Usage,
    beginning,
    parse_model_spec,
    replays,
)
from engine.domain.run import RunSpec, total_cost
from engine.domain.text import counted
from engine.errors import BudgetReached, MissingData, StaleData
from engine.lab.altered_inputs import ALTERED
from engine.lab.backtest import run_agents
from engine.lab.window import desk_calendar_of, on_convention, windows
from engine.market.as_of import Market
from engine.messages.events import SessionOpened
from engine.offline.model import OfflineModel
from engine.ports import LanguageModel
from engine.preset import load_preset
from engine.services import (
    USUAL_ANSWER_TOKENS,
    OnUse,
    OpenEmbedder,
    RecordedAnswers,
    Services,
    SpendingLimit,
    Spent,
    dollars,
)
from engine.session.cost_meter import VECTORS
from engine.settings.config import BudgetConfig, Config

if TYPE_CHECKING:
    from memory.ports import Embedder, Matrix  # they load numpy

SETTLING, COUNTED = 10, 10
"""Sessions of a run that are played before prompts have their usual length, and those that are then counted."""

CHARACTERS_A_TOKEN = 4
CHART_TOKENS = 1100
"""About what a chart of 1000 x 800 costs a model that sees."""
HASHING = "hash-384"
"""The embedder of a forecast, which asks nobody."""


@dataclass(slots=True)
class Estimate:
    """The questions to one model: all calls, those of them that are recorded, tokens of the others. `cached_tokens` are
    those of the input that a vendor's cache is expected to hold: beginnings that are the same for a whole run. `cost`
    in USD, None where the price is not known; `one_call` is the most that the cheapest call may cost, None where that
    is not known; `reasoning` are the tokens that an answer of it takes beside what is written, None where none is
    recorded."""

    calls: float = 0.0
    held: int = 0
    input_tokens: float = 0.0
    cached_tokens: float = 0.0
    output_tokens: float = 0.0
    cost: Decimal | None = Decimal(0)
    one_call: Decimal | None = None
    reasoning: float | None = None

    def add(self, other: Estimate) -> None:
        """Add the questions of another estimate to the same model."""
        self.calls += other.calls
        self.held += other.held
        self.input_tokens += other.input_tokens
        self.cached_tokens += other.cached_tokens
        self.output_tokens += other.output_tokens
        self.cost = total_cost((self.cost, other.cost))
        self.one_call = min((one for one in (self.one_call, other.one_call) if one is not None), default=None)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Estimates by model spec of so many runs that have data; `title` is of one that estimates something else,
    `sampled` counts decisions of `Job.sampled`."""

    models: Mapping[str, Estimate]
    runs: int
    title: str = ""
    sampled: int = 0

    @property
    def known_cost(self) -> Decimal:
        """USD of all models whose price is known."""
        return sum((found.cost for found in self.models.values() if found.cost is not None), Decimal(0))

    @property
    def unpriced_tokens(self) -> float:
        """Tokens of all models whose price is not known."""
        return sum(one.input_tokens + one.output_tokens for one in self.models.values() if one.cost is None)

    def too_little(self, budget: Decimal) -> str:
        """The reason why dollars are not even enough for one call; empty where they are, or that is not known."""
        known = [found.one_call for found in self.models.values()]
        priced = [one for one in known if one is not None]
        if len(priced) < len(known) or not priced or budget >= min(priced):
            return ""
        return f"--budget of {dollars(budget)} is below one call, which may cost up to {dollars(min(priced))}"

    def too_much(self, budget: BudgetConfig) -> str:
        """The reason to ask before the runs; empty where there is none."""
        if self.known_cost > budget.ask_above:
            return f"the forecast of about ${self.known_cost:,.2f} is above budget.ask_above (${budget.ask_above:,.2f})"
        if self.unpriced_tokens > budget.tokens_per_day:
            count = f"{_millions(self.unpriced_tokens)} tokens of models without a known price"
            return f"the forecast of about {count} is above budget.tokens_per_day ({budget.tokens_per_day:,})"
        return ""

    def lines(self) -> Iterator[str]:
        """The forecast for a person."""
        if not (self.runs or self.title):  # they will say what data they lack
            return
        again = f" and for {counted(self.sampled, 'decision')} made again at most" if self.sampled else ""
        yield self.title or f"Forecast for {counted(self.runs, 'run')}{again}, an estimate from their first sessions:"
        for spec, found in self.models.items():
            new = max(0.0, found.calls - found.held)
            cost = "price unknown" if found.cost is None else f"about ${found.cost:,.2f}"
            cached = f" ({_millions(found.cached_tokens)} of them cached)" if found.cached_tokens else ""
            tokens = f"{_millions(found.input_tokens)} tokens in{cached}, {_millions(found.output_tokens)} out"
            yield f"  {spec}: about {new:,.0f} calls ({found.held:,} more are recorded), {tokens}, {cost}"
            if found.reasoning is None:
                yield f"  (reasoning of {spec} is not in it: none of its answers is recorded yet)"
            elif found.reasoning:
                yield f"  ({found.reasoning:,.0f} tokens of reasoning a call among them, as in its recorded answers)"


def _millions(count: float) -> str:
    return f"{count / 1e6:,.2f} million"


KINDS = ("calls", "input_tokens", "output_tokens", "cached_tokens")
Totals = Mapping[str, tuple[float, float, float, float]]
"""Calls, tokens and, of the input, those that a vendor's cache may hold, of a run, by agent and owner (`for_owner`)."""


class Rehearsal:
    """Answers from the recorded answers of a model, if one is given, else by the rules, and counts."""

    label = OfflineModel.label

    def __init__(
        self, tally: Counter[tuple[str, str]], recorded: RecordedAnswers | None, spec: ModelSpec, *, sees: bool
    ) -> None:
        self.spec, self.sees = str(spec), sees
        self.missed = False
        self._tally, self._recorded, self._of = tally, recorded, spec
        self._rules = OfflineModel()

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """A recorded answer or the rules'."""
        agent, found = for_owner(request.purpose, request.owner), None
        if self._recorded is not None:
            found = self._recorded.find(self._of, request)
        result = await self._rules.answer(request, on_delta) if found is None else found
        self.missed = self.missed or found is None
        text = sum(len(message.text) for message in request.messages) + len(request.system)
        charts = sum(len(message.charts) for message in request.messages)
        asked = text + len(json.dumps(request.schema))
        self._tally[agent, "calls"] += 1
        self._tally[agent, "held"] += found is not None
        self._tally[agent, "input_tokens"] += asked // CHARACTERS_A_TOKEN + charts * CHART_TOKENS
        self._tally[agent, "output_tokens"] += len(result.text) // CHARACTERS_A_TOKEN
        stable = len(beginning(request.system))
        self._tally[agent, "cached_tokens"] += stable // CHARACTERS_A_TOKEN if stable >= CACHED_FROM else 0
        return result


def is_free(services: Services, job: Job) -> bool:
    """True where a run asks nobody who might charge for it: the rules, or recorded answers alone."""
    models = services.config.models
    if job.spec.preset is None:
        return True
    if replays(job.spec.model) or replays(models.default) or models.replay == ReplayMode.REPLAY_ONLY:
        return True
    return all(spec.kind is ModelKind.OFFLINE for spec in _specs(services, job).values())


def paid_forecast(
    services: Services, jobs: Sequence[Job], report: Callable[[str], None] = lambda text: None
) -> Forecast | None:
    """The forecast of some runs; None where none of them asks anybody who might charge for it."""
    return None if all(is_free(services, job) for job in jobs) else forecast(services, jobs, report)


def forecast(services: Services, jobs: Sequence[Job], report: Callable[[str], None] = lambda text: None) -> Forecast:
    """An estimate of what some runs will ask. Raises MalformedData for data that cannot be read."""
    wanted = [job for job in jobs if not is_free(services, job)]
    totals: dict[tuple[object, ...], Totals | None] = {}
    estimates: dict[str, Estimate] = {}
    runs, prices = len(wanted), services.models.prices()
    with services.models.recorded() as recorded:
        reasoning = cache(recorded.reasoning)  # which reads every recorded answer
        for number, job in enumerate(wanted):
            report(f"forecast: {number} of {len(wanted)} runs")
            specs = _specs(services, job)
            seeing = _seeing(services, job, specs)
            spec = job.spec
            played = spec.preset, spec.preset_text, spec.without, seeing
            key = (*played, spec.symbols, spec.first, spec.last, spec.warm_up_from, job.sampled)
            if key not in totals:
                totals[key] = _totals(services, job, seeing)
            known = totals[key]
            if known is None:
                runs -= 1
                continue
            follows = services.config.models.replay != ReplayMode.LIVE
            follows = follows and any(map(recorded.has, specs.values()))
            held = _held(services, job, recorded, specs, seeing) if follows else Counter()
            _add(
                estimates,
                known,
                specs,
                held,
                prices=prices,
                tiers=_tiers(services, job, specs),
                reasoning=reasoning,
            )
    return Forecast(estimates, runs, sampled=sum(job.sampled for job in wanted) * len(ALTERED))


def _add(
    estimates: dict[str, Estimate],
    known: Totals,
    specs: Mapping[str, ModelSpec],
    held: Mapping[str, int],
    *,
    prices: PriceTable,
    reasoning: Callable[[ModelSpec], float | None],
    tiers: Mapping[str, Decimal] = MappingProxyType({}),
) -> None:
    for agent, (calls, tokens_in, tokens_out, cached) in known.items():
        spec = specs.get(agent) or specs[agent_of(agent)]
        if spec.kind is ModelKind.OFFLINE:
            continue
        thought = 0.0 if agent == VECTORS else reasoning(spec)
        found = estimates.setdefault(str(spec), Estimate(reasoning=thought))
        new = max(0.0, calls - held.get(agent, 0))
        found.calls += max(calls, held.get(agent, 0))
        found.held += held.get(agent, 0)
        if not calls:
            continue
        found.input_tokens += new * tokens_in / calls
        found.cached_tokens += new * cached / calls
        written = tokens_out / calls + (found.reasoning or 0.0)
        found.output_tokens += new * written
        price = prices.find(spec.provider, spec.model)
        if price is None or found.cost is None:
            found.cost = None
        else:
            found.add(Estimate(one_call=one_call(price, tokens_in / calls) if new else None))
            cost = price.cost(Usage(round(tokens_in / calls), round(cached / calls), round(written)))
            found.cost += cost * round(new) * tiers.get(agent_of(agent), Decimal(1))


def one_call(price: ModelPrice, tokens_in: float) -> Decimal:
    """The most that a call of about so many tokens may cost in USD."""
    return price.cost(Usage(round(tokens_in * 4 / 3), 0, USUAL_ANSWER_TOKENS))


def _specs(services: Services, job: Job) -> Mapping[str, ModelSpec]:
    """The model of each agent of a run that is not a replay, and the one that makes its memory's vectors."""
    config, preset = services.config, load_preset(job.spec.preset or "")
    chosen = chosen_models(preset, config, job.spec.model, recorded=job.spec.models)[1]
    named = {agent: parse_model_spec(text, config.endpoints) for agent, text in chosen.items()}
    embedder = job.spec.embedder or config.memory.embedder
    return named | {VECTORS: embedder_spec(config, embedder if remembers(preset) else OfflineModel.spec)}


def _tiers(services: Services, job: Job, specs: Mapping[str, ModelSpec]) -> Mapping[str, Decimal]:
    """The part of the list price that each agent's questions cost at the tier that they ask for, or in a batch."""
    preset, spec = load_preset(job.spec.preset or ""), job.spec
    batched = market_alone(preset.registered) if spec.batch else {}
    tiers: dict[str, str] = {}
    for agent, own in chosen_models(preset, services.config, spec.model)[0].items():
        kind = specs[agent].kind
        tiers[agent] = "" if kind is ModelKind.ANTHROPIC else own.tier or spec.options.tier or ""
        if agent in batched and kind in VENDORS:
            tiers[agent] = BATCH
    return {agent: TIERS.get(tier, Decimal(1)) for agent, tier in tiers.items()}


def asks_service(services: Services, spec: RunSpec) -> bool:
    """True for a run that may ask a service, or read its recorded answers."""
    if spec.preset is None:
        return False
    models = {spec.model} if spec.model is not None else set(dict(spec.models).values())
    vectors = embedder_spec(services.config, spec.embedder or "")
    return models != {ModelKind.OFFLINE} or vectors.kind is not ModelKind.OFFLINE


def embedder_spec(config: Config, embedder: str) -> ModelSpec:
    """The spec of an embedder that a service charges for; the rules' for one that asks nobody."""
    remote = embedder.partition(":")[0] in {*VENDORS, *config.endpoints}
    return parse_model_spec(embedder if remote else OfflineModel.spec, config.endpoints)


def _seeing(services: Services, job: Job, specs: Mapping[str, ModelSpec]) -> frozenset[str]:
    """The agents of a run whose model is shown charts; the others read their figures."""
    if "vision" not in agents_of(job.spec).steps:
        return frozenset()
    return frozenset(agent for agent, spec in specs.items() if services.models.sees(spec))


def _totals(services: Services, job: Job, seeing: frozenset[str]) -> Totals | None:
    """The questions of a run: those of its first sessions as they were played, each later one as those that follow
    them; None where it has no data."""
    tally, before, opened = Counter[tuple[str, str]](), Counter[tuple[str, str]](), 0

    def enough() -> bool:
        nonlocal opened, before
        if opened == SETTLING:
            before = tally.copy()
        opened += 1
        return opened > SETTLING + COUNTED

    try:
        market = job_market(services, job)
        warming, sessions = windows(job.spec, desk_calendar_of(market, job.spec.symbols))
        rules = ModelSpec(ModelKind.OFFLINE)
        rehearsals = {sees: Rehearsal(tally, None, rules, sees=sees) for sees in (True, False)}
        counting = replace(services, open_embedder=partial(counted_embedder, services.open_embedder, tally))
        played = asyncio.run(_play(counting, job, market, lambda agent: rehearsals[agent in seeing], enough))
    except (MissingData, StaleData):
        return None
    settled = SETTLING if played > SETTLING else 0
    if not settled:
        before.clear()
    symbols = len(job.spec.symbols)
    again = min(job.sampled, len(sessions) * symbols) * len(ALTERED) / symbols  # in sessions
    times = (len(warming) + len(sessions) + again - settled) / max(1, played - settled)
    return _by_agent({key: before[key] + times * (count - before[key]) for key, count in tally.items()})


def _by_agent(tally: Mapping[tuple[str, str], float]) -> Totals:
    agents = dict.fromkeys(agent for agent, _ in tally)
    return cast(Totals, {agent: tuple(float(tally.get((agent, kind), 0)) for kind in KINDS) for agent in agents})


def _held(
    services: Services, job: Job, recorded: RecordedAnswers, specs: Mapping[str, ModelSpec], seeing: frozenset[str]
) -> Counter[str]:
    """By agent, the calls of a run that are recorded, as far as the first session that lacks one."""
    tally = Counter[tuple[str, str]]()
    models = {
        spec: Rehearsal(tally, recorded, spec, sees=agent in seeing)
        for agent, spec in specs.items()
        if spec.kind is not ModelKind.OFFLINE
    }

    def missed() -> bool:
        return any(model.missed for model in models.values())

    def of(agent: str) -> LanguageModel:
        return models.get(specs[agent]) or OfflineModel()

    stored = unpaid(services)
    with suppress(BudgetReached):  # as far as vectors are stored
        asyncio.run(_play(stored, job, job_market(services, job), of, missed))
    return Counter({agent: count for (agent, kind), count in tally.items() if kind == "held"})


def unpaid(services: Services) -> Services:
    """Services whose models and embedders may cost nothing: what is recorded alone."""
    return replace(services, limit=SpendingLimit(BudgetConfig(usd_per_day=Decimal(0), tokens_per_day=0), Spent()))


def rehearsed_forecast(
    services: Services, tally: Counter[tuple[str, str]], specs: Mapping[str, ModelSpec], title: str
) -> Forecast:
    """The forecast of questions that were rehearsed to the last one."""
    held = Counter({agent: count for (agent, kind), count in tally.items() if kind == "held"})
    estimates: dict[str, Estimate] = {}
    with services.models.recorded() as recorded:
        prices, reasoning = services.models.prices(), cache(recorded.reasoning)
        _add(estimates, _by_agent(tally), specs, held, prices=prices, reasoning=reasoning)
    return Forecast(estimates, 1, title=title)


class _CountedEmbedder:
    """An embedder without a service, in the place of one: its texts are counted."""

    def __init__(self, inner: Embedder, tally: Counter[tuple[str, str]]) -> None:
        self.id, self.dimension = inner.id, inner.dimension
        self._inner, self._tally = inner, tally

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of the texts."""
        self._tally[VECTORS, "calls"] += 1
        self._tally[VECTORS, "input_tokens"] += sum(map(len, texts)) // CHARACTERS_A_TOKEN
        return self._inner.embed(texts)


@contextmanager
def counted_embedder(
    opener: OpenEmbedder,
    tally: Counter[tuple[str, str]],
    spec: str | None,
    on_use: OnUse,
    *,
    limit: SpendingLimit | None = None,
) -> Iterator[Embedder]:
    """An embedder that asks nobody, in the place of any; its calls are counted in `tally`."""
    with opener(HASHING, on_use) as inner:
        yield _CountedEmbedder(inner, tally)


async def _play(
    services: Services, job: Job, market: Market, model_of: Callable[[str], LanguageModel], stop: Stop
) -> int:
    """Play a run with given models until it is to stop; the number of sessions."""
    preset = agents_of(job.spec)
    models, mask = build_models(services, preset, OfflineModel.spec), mask_of(job.spec, on_convention(job.spec, market))
    models = replace(models, models=each_once({agent: masked(model_of(agent), mask) for agent in models.models}))
    count = 0

    def on_event(event: object) -> None:
        nonlocal count
        count += isinstance(event, SessionOpened)

    run = AgentRun(
        services=services,
        spec=job.spec,
        preset=preset,
        models=models,
        market=market,
        publish=on_event,
        stop=stop,
    )
    with run_memory(services, preset, run.calendar) as memory:
        await run_agents(run.context(memory))
    return count
