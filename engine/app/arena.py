"""An arena: its table is seated, its days are played, its record is kept.

An arena is played from its specification alone: dividends, arrivals and rules draw from its seed, and answers of models
are recorded. One that was killed is therefore resumed by playing it again: what was answered is not asked again, and
the tape is that of an unbroken run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from engine.agents.ask import DEFAULT, AnswerRecord, Asker
from engine.app.arena_record import ArenaSpec, arena_lock, keep_record
from engine.app.bench.forecast import KINDS, Estimate, Forecast, Rehearsal
from engine.app.models import open_model
from engine.arena.play import Table, play
from engine.arena.players import Persona, PersonaPlayer, Player, RulePlayer
from engine.arena.rules import ArenaRules
from engine.arena.seating import AgentSeat, Seating
from engine.arena.traders import RULES
from engine.domain.model_call import Usage
from engine.domain.model_spec import ModelKind, ReplayMode, parse_model_spec
from engine.errors import TryAgainLater
from engine.ports import LanguageModel
from engine.reports.documents.arena import ArenaReport, arena_document
from engine.reports.documents.row_json import Row
from engine.services import OpenModels, Services, SpendingLimit
from engine.session.cost_meter import CostMeter
from engine.settings import AgentSettings

OnDay = Callable[[Table], None]


def run_arena(
    services: Services,
    spec: ArenaSpec,
    *,
    replay: bool = False,
    budget: Decimal | None = None,
    on_day: OnDay = lambda table: None,
    stop: Callable[[], bool] = lambda: False,
) -> Row:
    """Play an arena and keep its record; `replay` asks no model beyond recorded answers, `budget` bounds the dollars of
    this call, `stop` is asked after each day. Returns the document.

    Raises UsageError for a preset or table that means nothing, ConfigError, CredentialsRefused, and TryAgainLater where
    a model cannot be had or the budget is reached: the arena can be resumed. Another process that plays it is
    TryAgainLater, too.
    """
    rules, seating = spec.rules(), spec.seating()
    with arena_lock(spec.run):
        keep_record(spec, None)
        try:
            document = asyncio.run(_play(services, spec, rules, seating, _Limits(replay, budget, on_day, stop)))
        except TryAgainLater as error:
            raise type(error)(f"{error}; `paperdesk arena --resume {spec.run}` goes on") from None
        keep_record(spec, document)
    return document


REHEARSED = 2
"""Days that a forecast plays with the rules in the place of models."""


def arena_forecast(services: Services, spec: ArenaSpec) -> Forecast | None:
    """An estimate of what the personas will ask, recorded answers not considered; None where nobody is asked who might
    charge for it. Raises UsageError for a preset or table that means nothing."""
    config, rules, seating = services.config, spec.rules(), spec.seating()
    if spec.model == ModelKind.REPLAY or config.models.replay == ReplayMode.REPLAY_ONLY:
        return None
    tallies: dict[str, Counter[tuple[str, str]]] = {}
    players: dict[str, Player] = {}
    for seat in seating.agents:
        model = None
        if seat.rule is None:
            text = _model_of(services, spec, seat)
            named = parse_model_spec(text, config.endpoints)
            model = Rehearsal(tallies.setdefault(text, Counter()), None, named, sees=services.models.sees(named))
        players[seat.name] = _player(seat, model, spec.seed, config.models.arena, lambda record: None)
    asyncio.run(_rehearse(rules.model_copy(update={"days": min(REHEARSED, rules.days)}), players, spec.seed))
    times, prices, estimates = (
        spec.repeats * max(1.0, rules.days / REHEARSED),
        services.models.prices(),
        dict[str, Estimate](),
    )
    for text, tally in tallies.items():
        named = parse_model_spec(text, config.endpoints)
        if named.kind is ModelKind.OFFLINE:
            continue
        calls, asked, written = (times * sum(n for (_, kind), n in tally.items() if kind == wanted) for wanted in KINDS)
        price = prices.find(named.provider, named.model)
        cost = None if price is None else price.cost(Usage(round(asked), 0, round(written)))
        estimates[text] = Estimate(calls=calls, input_tokens=asked, output_tokens=written, cost=cost)
    return Forecast(estimates, spec.repeats) if estimates else None


async def _rehearse(rules: ArenaRules, players: Mapping[str, Player], seed: int) -> None:
    async for _ in play(rules, players, seed):
        pass


@dataclass(frozen=True, slots=True)
class _Limits:
    replay: bool
    budget: Decimal | None
    on_day: OnDay
    stop: Callable[[], bool]


async def _play(services: Services, spec: ArenaSpec, rules: ArenaRules, seating: Seating, limits: _Limits) -> Row:
    config = services.config
    mode = ReplayMode.REPLAY_ONLY if limits.replay else ReplayMode(config.models.replay)
    limit = services.limit if limits.budget is None else SpendingLimit.of_dollars(config.budget, limits.budget)
    async with aclosing(services.models.open(mode, limit=limit)) as opened:
        models = _models(services, spec, seating, opened)
        meter = CostMeter(", ".join(dict.fromkeys(model.spec for model in models.values())))
        settings = config.models.arena
        players = {
            seat.name: _player(seat, models.get(seat.name), spec.seed, settings, meter.count) for seat in seating.agents
        }
        table = None
        async for table in play(rules, players, spec.seed, unsaid=spec.unsaid):
            limits.on_day(table)
            if limits.stop():
                break
        assert table is not None
    return arena_document(
        ArenaReport(
            run=spec.run,
            preset=spec.preset,
            seed=spec.seed,
            table=table,
            kinds={seat.name: f"rule {seat.rule}" if seat.rule else models[seat.name].label for seat in seating.agents},
            strategies={name: one.library for name, one in players.items() if isinstance(one, PersonaPlayer)},
            abstentions={name: one.abstained for name, one in players.items() if isinstance(one, PersonaPlayer)},
            use=meter.use,
            interrupted=table.market.day <= rules.days,
            baseline=[seat.name for seat in seating.agents if seat.baseline],
        )
    )


def _models(services: Services, spec: ArenaSpec, seating: Seating, opened: OpenModels) -> Mapping[str, LanguageModel]:
    """The model of each persona; personas of one model share it."""
    config = services.config
    texts = {seat.name: _model_of(services, spec, seat) for seat in seating.agents if not seat.rule}
    made = {text: open_model(text, config, opened) for text in dict.fromkeys(texts.values())}
    return {name: made[text] for name, text in texts.items()}


def _model_of(services: Services, spec: ArenaSpec, seat: AgentSeat) -> str:
    models = services.config.models
    if seat.baseline:
        return spec.baseline or seat.model or models.default
    override = None if spec.model == ModelKind.REPLAY else spec.model
    return override or seat.model or models.arena.model or models.default


def _player(
    seat: AgentSeat,
    model: LanguageModel | None,
    seed: int,
    settings: AgentSettings,
    count: Callable[[AnswerRecord], None],
) -> Player:
    if seat.rule is not None or model is None:
        return RulePlayer(RULES[seat.rule or ""], Random(f"{seed} {seat.name}"))
    persona = Persona(**seat.model_dump(exclude={"rule", "model", "baseline"}))
    asker = Asker(
        {DEFAULT: model},
        {DEFAULT: settings},
        count,
        lambda key, text: None,
        sample=seed,
        late_abstains=True,
    )
    return PersonaPlayer(persona, asker)
