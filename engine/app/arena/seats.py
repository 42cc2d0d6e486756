"""The seats of an arena's table taken: rules, personas, presets of the cycle and strategies as players."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from random import Random
from zlib import crc32

from engine.agents.ask import DEFAULT, Asker, agent_of
from engine.app.arena.record import REHEARSED, ArenaSpec
from engine.app.memory.memory import run_memory
from engine.app.models.briefings import desk_preset
from engine.app.models.models import OnUnanswered, Preflight, chosen_models, insisted_agents, models_of_agents
from engine.arena.agents import ANALYSIS, CHAT, ORDERS, REFLECTION
from engine.arena.decided_player import CycleDecider, DecidedPlayer, StrategyDecider, unfed
from engine.arena.players import Persona, PersonaPlayer, Player, RulePlayer
from engine.arena.rules import ArenaRules
from engine.arena.traders import PERSONA, RULES, AgentSeat, seat_strategy
from engine.cycle.cycle import Cycle
from engine.domain.model_call import AnswerRecord
from engine.domain.model_spec import ModelKind
from engine.market.trading_hours import AroundTheClock
from engine.ports import LanguageModel
from engine.preset import Preset, load_preset
from engine.services import OnUse, Services
from engine.session.cost_meter import AbstentionGuard

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
