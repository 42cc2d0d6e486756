"""An arena: its table is seated, its days are played, its record is kept.

An arena is played from its specification alone: dividends, arrivals and rules draw from its seed, and answers of models
are recorded. One that was killed is therefore resumed by playing it again: what was answered is not asked again, and
the tape is that of an unbroken run.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

from engine import places
from engine.agents.ask import DEFAULT, AnswerRecord, Asker
from engine.app.bench.forecast import KINDS, Estimate, Forecast, Rehearsal
from engine.app.models import open_model
from engine.arena.play import Table, play
from engine.arena.players import Persona, PersonaPlayer, Player, RulePlayer
from engine.arena.rules import ArenaRules, load_rules
from engine.arena.seating import DEFAULT_TABLE, AgentSeat, Seating, load_seating
from engine.arena.traders import RULES
from engine.domain.model_call import Usage
from engine.domain.model_spec import ModelKind, ReplayMode, parse_model_spec
from engine.errors import MalformedData, MissingData, TryAgainLater
from engine.ports import LanguageModel
from engine.reports.documents.arena import ArenaReport, arena_document
from engine.reports.documents.row_json import Row
from engine.services import OpenModels, Services, SpendingLimit
from engine.session.cost_meter import CostMeter
from engine.settings import AgentSettings

OnDay = Callable[[Table], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaSpec:
    """Everything that decides an arena.

    run: its id.
    preset: the market's, by name or TOML file.
    agents: the table, by name or TOML file.
    days: in place of the preset's; None: the preset's.
    seed: of everything that is drawn.
    model: of every persona; None: its own, else the configured default.
    unsaid: ids of chat messages that nobody gets to read.
    swapped: the seats are taken in reverse order.
    rotated: the seats are moved on by so many.
    repeats: arenas with the next seeds and rotated seats.
    changes: of the seats that are neither a rule's nor the baseline's, by key of a table's file.
    baseline: model of the baseline's seats in a duel; None: the configured default.
    """

    run: str
    preset: str = "paper"
    agents: str = DEFAULT_TABLE
    days: int | None = None
    seed: int = 0
    model: str | None = None
    unsaid: tuple[str, ...] = ()
    swapped: bool = False
    rotated: int = 0
    repeats: int = 1
    changes: Mapping[str, Any] = field(default_factory=dict)
    baseline: str | None = None

    def rules(self) -> ArenaRules:
        """The market's rules. Raises UsageError."""
        rules = load_rules(self.preset)
        return rules if self.days is None else rules.model_copy(update={"days": self.days})

    def seating(self) -> Seating:
        """The table. Raises UsageError."""
        agents = tuple(
            seat if seat.rule or seat.baseline else seat.model_copy(update=self.changes)
            for seat in load_seating(self.agents).agents
        )
        first = self.rotated % len(agents)
        agents = agents[first:] + agents[:first]
        return Seating(agents=agents[::-1] if self.swapped else agents)


def load_spec(run: str) -> ArenaSpec:
    """The specification of an arena that was begun. Raises MissingData and MalformedData."""
    record = _record(run)
    try:
        spec = record["spec"]
        return ArenaSpec(**spec | {"unsaid": tuple(spec["unsaid"])})
    except (KeyError, TypeError) as error:
        raise MalformedData(_NO_RECORD.format(places.arena_file(run), type(error).__name__)) from None


def load_document(run: str) -> Row:
    """The document of an arena, or of its repeats. Raises MissingData, also where it never came to one."""
    document = _record(run).get("document")
    if document is None:
        raise MissingData(f"arena {run} was not played yet: `paperdesk arena --resume {run}` goes on")
    found: Row = document
    return found


_NO_RECORD = "{}: not the record of an arena ({})"


def _record(run: str) -> Row:
    file = places.arena_file(run)
    try:
        record = json.loads(file.read_text("utf-8"))
        if not isinstance(record, dict):
            raise TypeError
    except FileNotFoundError:
        raise MissingData(f"no arena {run}: `paperdesk arena` begins one") from None
    except (ValueError, TypeError) as error:
        raise MalformedData(_NO_RECORD.format(file, type(error).__name__)) from None
    return record


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
    a model cannot be had or the budget is reached: the arena can be resumed.
    """
    rules, seating = spec.rules(), spec.seating()
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
    limit = None if limits.budget is None else SpendingLimit.of_dollars(config.budget, limits.budget)
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


def keep_record(spec: ArenaSpec, document: Row | None) -> None:
    """Write the record of an arena or of its repeats, whole or not at all. A document that is there stays until
    the new one is."""
    file = places.arena_file(spec.run)
    if document is None and file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"spec": asdict(spec), "document": document}, indent=1), "utf-8")
    new.replace(file)
