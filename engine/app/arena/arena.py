"""An arena: its table is seated, its days are played, its record is kept.

An arena is played from its specification alone: dividends, arrivals and rules draw from its seed, and answers of models
are recorded. One that was killed is therefore resumed by playing it again: what was answered is not asked again, and
the tape is that of an unbroken run.

Repeats of an arena: seeds counted up, seats rotated, each repeat a record of its own.

The forecast of an arena: its first days played with the offline rules in the place of its models.

The seats of an arena's table taken: rules, personas, presets of the cycle and strategies as players.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache, partial
from random import Random
from typing import Any
from zlib import crc32

from engine.agents.ask import DEFAULT, Asker, agent_of
from engine.app.arena.record import (
    REHEARSED,
    ArenaSpec,
    arena_lock,
    begun,
    is_begun,
    keep_record,
    played_document,
    repeat_of,
)
from engine.app.bench.forecast import (
    KINDS,
    SETTLING,
    Estimate,
    Forecast,
    Rehearsal,
    counted_embedder,
    embedder_spec,
    one_call,
)
from engine.app.memory import run_memory
from engine.app.models.models import (
    OnUnanswered,
    Preflight,
    chosen_models,
    desk_preset,
    insisted_agents,
    known_of,
    models_of_agents,
    open_model,
)
from engine.app.records.workers import in_workers, processes, stop_requested
from engine.app.research.agent_run import end_session, guard_of
from engine.app.research.run_spec import Stop
from engine.arena.agents import ANALYSIS, CHAT, ORDERS, REFLECTION
from engine.arena.decided_player import CycleDecider, DecidedPlayer, StrategyDecider, unfed
from engine.arena.play import Table, play
from engine.arena.players import Persona, PersonaPlayer, Player, RulePlayer
from engine.arena.rules import ArenaRules
from engine.arena.traders import PERSONA, RULES, AgentSeat, Seating, seat_strategy
from engine.cycle.cycle import Cycle
from engine.domain.model_call import (
    AnswerRecord,
    ModelKind,
    ModelPrice,
    ModelRequest,
    ModelSpec,
    ReplayMode,
    Usage,
    parse_model_spec,
)
from engine.errors import TryAgainLater
from engine.market.trading_hours import AroundTheClock
from engine.ports import LanguageModel
from engine.preset import Preset, load_preset
from engine.reports.documents.arena import ArenaReport, arena_document, tournament_document
from engine.reports.documents.row_json import Row
from engine.services import OnUse, Services, SpendingLimit
from engine.session.cost_meter import VECTORS, AbstentionGuard, CostMeter

OnDay = Callable[[Table], None]


def run_arena(
    services: Services,
    spec: ArenaSpec,
    *,
    replay: bool = False,
    budget: Decimal | None = None,
    on_day: OnDay = lambda table: None,
    stop: Stop = lambda: False,
) -> Row:
    """Play an arena and keep its record; `replay` asks no model beyond recorded answers, `budget` bounds the dollars of
    this call, `stop` is asked after each day. Returns the document.

    Raises UsageError for a preset or table that means nothing, ConfigError, CredentialsRefused, and TryAgainLater where
    a model cannot be had or the budget is reached: the arena can be resumed. Another process that plays it is
    TryAgainLater, too.
    """
    rules, seating, spec = spec.rules(), spec.seating(), begun(spec)
    with arena_lock(spec.run):
        keep_record(spec, None)
        try:
            document = asyncio.run(_play(services, spec, rules, seating, _Limits(replay, budget, on_day, stop)))
        except TryAgainLater as error:
            raise type(error)(f"{error}; `paperdesk arena --resume {spec.run}` continues") from None
        keep_record(spec, document)
    return document


async def _ask_first(preflights: Sequence[Preflight], first: ModelRequest) -> None:
    for preflight in preflights:
        await preflight(first)


@dataclass(frozen=True, slots=True)
class _Limits:
    replay: bool
    budget: Decimal | None
    on_day: OnDay
    stop: Stop


async def _play(services: Services, spec: ArenaSpec, rules: ArenaRules, seating: Seating, limits: _Limits) -> Row:
    config = services.config
    mode = ReplayMode.REPLAY_ONLY if limits.replay else ReplayMode(config.models.replay)
    limit = services.limit if limits.budget is None else SpendingLimit.of_dollars(config.budget, limits.budget)
    meter = CostMeter("")
    async with aclosing(services.models.open(mode, limit=limit)) as opened:
        with ExitStack() as memories:
            seats = Seats(
                services=replace(services, limit=limit),
                spec=spec,
                rules=rules,
                guard=guard_of(services, ModelKind.REPLAY if limits.replay else None),
                open_model=cache(lambda text: open_model(text, config, opened)),
                count=meter.count,
                on_unanswered=meter.unanswered,
                on_use=meter.add_vectors,
                memories=memories,
            )
            taken = {seat.name: seats.take(seat) for seat in seating.agents}
            opened.ask_first(partial(_ask_first, seats.preflights))
            players, table = {name: one.player for name, one in taken.items()}, None
            async for table in play(rules, players, spec.seed, unsaid=spec.unsaid):
                limits.on_day(table)
                end_session(seats.guard, services)
                if limits.stop():
                    break
    assert table is not None
    specs = ", ".join(dict.fromkeys(spec for one in taken.values() for spec in one.models))
    until, prices_as_of = known_of(services, specs)
    return arena_document(
        ArenaReport(
            run=spec.run,
            preset=spec.preset,
            seed=spec.seed,
            table=table,
            kinds={name: one.kind for name, one in taken.items()},
            strategies={name: one.library for name, one in players.items() if isinstance(one, PersonaPlayer)},
            abstentions={name: one.abstained for name, one in taken.items()},
            decisions={name: one.decided for name, one in players.items() if isinstance(one, DecidedPlayer)},
            notes=tuple(f"{name}: {one.note}" for name, one in taken.items() if one.note),
            use=replace(meter.use, spec=specs, training_cutoff=until, prices_as_of=prices_as_of),
            interrupted=table.market.day <= rules.days,
            baseline=[seat.name for seat in seating.agents if seat.baseline],
        )
    )


def run_repeats(
    services: Services,
    spec: ArenaSpec,
    *,
    jobs: int = 1,
    replay: bool = False,
    budget: Decimal | None = None,
    stop: Stop = lambda: False,
) -> Row | None:
    """Play all repeats of an arena, `jobs` at a time, and keep the record of the whole; those that are done already are
    not played again. `budget` is shared evenly by the repeats that are left. Returns the document of those that are
    done, None where none is.

    Raises as `run_arena` does.
    """
    with arena_lock(spec.run):
        return _run_repeats(services, begun(spec), jobs, (replay, budget), stop)


def _run_repeats(
    services: Services, spec: ArenaSpec, jobs: int, limits: tuple[bool, Decimal | None], stop: Stop
) -> Row | None:
    replay, budget = limits
    keep_record(spec, None)
    specs = [repeat_of(spec, number) for number in range(spec.repeats)]
    done: dict[str, Mapping[str, Any]] = {}
    for one in specs:
        if (document := _done(one.run)) is not None and not replay:
            done[one.run] = document
    left = [one for one in specs if one.run not in done]
    each = budget / len(left) if budget is not None and left else None
    try:
        documents = _play_repeats(services, left, jobs, (replay, each), stop)
    except TryAgainLater as error:
        text = str(error).partition("; `paperdesk arena --resume")[0]
        raise type(error)(f"{text}; `paperdesk arena --resume {spec.run}` continues") from None
    done |= {one["run"]: one for one in documents if not one["interrupted"]}
    if not done:
        return None
    arenas = [done[one.run] for one in specs if one.run in done]
    baseline = [seat.name for seat in spec.seating().agents if seat.baseline]
    whole = tournament_document(spec.run, arenas, spec.repeats, baseline)
    keep_record(spec, whole)
    return whole


def repeat_documents(spec: ArenaSpec) -> Sequence[Mapping[str, Any]]:
    """The documents of the repeats that came to their end, in their order."""
    found = (_done(repeat_of(spec, number).run) for number in range(spec.repeats))
    return [one for one in found if one is not None]


def _done(run: str) -> Mapping[str, Any] | None:
    """The document of a repeat that came to its end. Raises MalformedData."""
    document = played_document(run) if is_begun(run) else None
    return None if document is None or document["interrupted"] else document


def _play_repeats(
    services: Services, specs: Sequence[ArenaSpec], jobs: int, limits: tuple[bool, Decimal | None], stop: Stop
) -> Sequence[Row]:
    documents: list[Row] = []
    if jobs > 1 and len(specs) > 1:
        work = partial(_play_there, services, limits)
        with processes(min(jobs, len(specs))) as team:
            in_workers(team, work, specs, stop, lambda number, document: documents.append(document))
        return documents
    for spec in specs:
        if stop():
            break
        documents.append(run_arena(services, spec, replay=limits[0], budget=limits[1], stop=stop))
    return documents


def _play_there(services: Services, limits: tuple[bool, Decimal | None], spec: ArenaSpec) -> Row:
    """Play one repeat in a process of the pool."""
    return run_arena(services, spec, replay=limits[0], budget=limits[1], stop=stop_requested)


REHEARSED_DAYS = 2
"""Days that are played where nobody's questions grow with the days, as those of a preset do."""
Tally = Counter[tuple[str, str]]


def arena_forecast(services: Services, spec: ArenaSpec) -> Forecast | None:
    """An estimate of what the table will ask, recorded answers not considered; None where nobody is asked who might
    charge for it. Raises UsageError for a preset or table that means nothing."""
    config, rules, seating = services.config, spec.rules(), spec.seating()
    if spec.model == ModelKind.REPLAY or config.models.replay == ReplayMode.REPLAY_ONLY:
        return None
    played = min(rules.days, SETTLING if any(seat.preset for seat in seating.agents) else REHEARSED_DAYS)
    tallies: dict[ModelSpec, Tally] = {}

    def tally(named: ModelSpec) -> Tally:
        return tallies.setdefault(named, Counter())

    @cache
    def rehearsal(text: str) -> LanguageModel:
        named = parse_model_spec(text, config.endpoints)
        return Rehearsal(tally(named), None, named, sees=services.models.sees(named))

    vectors = tally(embedder_spec(config, config.memory.embedder))
    with ExitStack() as memories:
        seats = Seats(
            services=replace(services, open_embedder=partial(counted_embedder, services.open_embedder, vectors)),
            spec=spec,
            rules=rules,
            open_model=rehearsal,
            memories=memories,
        )
        players = {seat.name: seats.take(seat).player for seat in seating.agents}

        async def rehearse() -> None:
            async for _ in play(rules.model_copy(update={"days": played}), players, spec.seed):
                pass

        if all(named.kind is ModelKind.OFFLINE for named in tallies):
            return None
        asyncio.run(rehearse())
    times, prices = spec.repeats * rules.days / played, services.models.prices()
    with services.models.recorded() as recorded:
        estimates = {
            str(named): _estimate(found, times, prices.find(named.provider, named.model), recorded.reasoning(named))
            for named, found in tallies.items()
            if named.kind is not ModelKind.OFFLINE and found
        }
    return Forecast(estimates, spec.repeats) if estimates else None


def _estimate(tally: Tally, times: float, price: ModelPrice | None, reasoning: float | None) -> Estimate:
    """The questions to one model in `times` what was rehearsed, with so many tokens of reasoning in an answer."""
    calls, asked, written, cached = (
        times * sum(n for (_, kind), n in tally.items() if kind == wanted) for wanted in KINDS
    )
    thought = 0.0 if (VECTORS, "calls") in tally else reasoning
    written += calls * (thought or 0.0)
    cost = None if price is None else price.cost(Usage(round(asked), round(cached), round(written)))
    least = one_call(price, asked / calls) if price is not None and calls else None
    return Estimate(
        calls=calls,
        input_tokens=asked,
        cached_tokens=cached,
        output_tokens=written,
        cost=cost,
        one_call=least,
        reasoning=thought,
    )


OpenModel = Callable[[str], LanguageModel]
"""The model of a spec, opened once for the whole table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A seat that is taken.

    player: its agent.
    kind: its rule, its preset or its model, as documents name it.
    models: specs of the models that it asks.
    abstained: counts of questions without an answer, which grow while it plays.
    note: a remark on its preset.
    """

    player: Player
    kind: str
    models: tuple[str, ...] = ()
    abstained: Mapping[str, int] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """Everything that the players of a table share.

    services: the configuration, and source of the presets' embedder.
    spec: the arena.
    rules: of its market.
    open_model: gives the models.
    count: hears of every answer.
    on_unanswered: hears of every call that no agent got an answer from.
    preflights: of the seats that are taken.
    guard: counts the days on which no model has decided.
    on_use: hears of every call of a remote embedder.
    memories: the presets' memories, open until it is closed.
    """

    services: Services
    spec: ArenaSpec
    rules: ArenaRules
    open_model: OpenModel
    count: Callable[[AnswerRecord], None] = lambda record: None
    on_unanswered: OnUnanswered = lambda key, call: None
    preflights: list[Preflight] = field(default_factory=list)
    guard: AbstentionGuard = field(default_factory=partial(AbstentionGuard, 0))
    on_use: OnUse = lambda use: None
    memories: ExitStack

    def _heard(self, record: AnswerRecord, decides: str) -> None:
        self.guard.answered(record, decides)
        self.count(record)

    def take(self, seat: AgentSeat) -> Taken:
        """The player of a seat. Raises UsageError, ConfigError, and CredentialsRefused for a missing key."""
        if seat.preset is not None:
            rehearsed = self.spec.rehearsed is not None and seat.name == REHEARSED
            return self._preset(seat, desk_preset(self.services) if rehearsed else load_preset(seat.preset))
        if seat.rule is None:
            return self._persona(seat)
        player: Player
        if seat.is_control:
            player = RulePlayer(RULES[seat.rule], Random(f"{self.spec.seed} {seat.name}"))
        else:
            player = DecidedPlayer(seat.name, StrategyDecider(seat_strategy(seat.rule, seat.params)))
        return Taken(player=player, kind=f"rule {seat.rule}")

    def _persona(self, seat: AgentSeat) -> Taken:
        models = self.services.config.models
        configured = models.default if seat.baseline else models.arena.model or models.default
        model = self.open_model(self._override(seat) or configured)
        asker = Asker(
            {DEFAULT: model},
            {DEFAULT: models.arena},
            lambda record: self._heard(record, ORDERS.name),
            lambda key, text: None,
            sample=self.spec.seed,
            on_unanswered=self.on_unanswered,
            late_abstains=True,
        )
        self.preflights.append(Preflight(asker, (CHAT, ANALYSIS, ORDERS, REFLECTION)))
        player = PersonaPlayer(Persona(name=seat.name, **seat.model_dump(include=set(PERSONA))), asker)
        return Taken(player=player, kind=model.label, models=(model.spec,), abstained=player.abstained)

    def _preset(self, seat: AgentSeat, preset: Preset) -> Taken:
        stocks, config = [stock.name for stock in self.rules.stocks], self.services.config
        for stock in stocks:
            preset.owners_of(stock)
        # Nobody can sell short here, whatever the preset allows elsewhere.
        preset = preset.model_copy(update={"sizing": preset.sizing.model_copy(update={"allow_short": False})})
        settings, specs = chosen_models(preset, config, self._override(seat))
        models = models_of_agents(preset, specs, {text: self.open_model(text) for text in specs.values()})
        answers, abstained = list[AnswerRecord](), Counter[str]()

        def heard(record: AnswerRecord) -> None:
            answers.append(record)
            if record.outcome == "abstained":
                abstained[record.agent] += 1
            self._heard(record, preset.decider.name)

        asker = Asker(
            models,
            settings,
            heard,
            lambda key, text: None,
            # Two seats of one preset may ask the same: each has answers of its own.
            sample=crc32(f"{self.spec.seed} {seat.name}".encode()),
            insisted=insisted_agents(config),
            on_unanswered=self.on_unanswered,
            late_abstains=True,
        )
        self.preflights.append(Preflight(asker, tuple(preset.active_agents)))
        calendar = AroundTheClock()
        memory = self.memories.enter_context(run_memory(self.services, preset, calendar, on_use=self.on_use))
        cycle = Cycle(preset, asker, dict.fromkeys(stocks, calendar), memory=memory, costs=self.rules.cost_rate)
        decider = CycleDecider(run=self.spec.run, name=seat.name, cycle=cycle, answers=answers)
        asked = [models[key] for key in specs if agent_of(key) in {agent.name for agent in preset.active_agents}]
        return Taken(
            player=DecidedPlayer(seat.name, decider),
            kind=f"preset {preset.name}, {models[preset.decider.name].label}",
            models=tuple(dict.fromkeys(model.spec for model in asked)),
            abstained=abstained,
            note=unfed(preset),
        )

    def _override(self, seat: AgentSeat) -> str | None:
        """The one model of a seat, where the command or the table names it."""
        if seat.baseline:
            return self.spec.baseline or seat.model
        return (None if self.spec.model == ModelKind.REPLAY else self.spec.model) or seat.model
