"""An old decision, decided again: the same inputs, the memory as it was that day, and what is to be different."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date

from connectors.wiring.runs import on_convention, with_costs
from connectors.wiring.services import services
from engine.agents.ask import AnswerRecord, Asker
from engine.app.briefing import kept_briefing
from engine.app.market_data import load_macro, load_run
from engine.app.memory import memory_errors, remembers, run_memory
from engine.app.models import ModelSet, build_models
from engine.app.stored_memory import memory_of_run
from engine.config import Config
from engine.conventions.catalog import convention
from engine.cycle.cycle import INDICATOR_ROWS, Cycle
from engine.cycle.recall import TradingMemory
from engine.cycle.turn import CycleResult, Turn
from engine.domain.decision import Decision
from engine.domain.execution import FillAt
from engine.domain.market import Symbol
from engine.domain.model_call import NO_OPTIONS
from engine.domain.model_spec import ModelKind
from engine.errors import MissingData, StaleData, UsageError
from engine.journal.entries import AnswerEntry, OrderEntry, Recalled, RunEntry, Trail
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.lab.decision_changes import Changes, Redecided, compared
from engine.lab.recorded_model import RecordedModel
from engine.lab.redecision import (
    RecordedTurn,
    backtest_turn,
    decide_again,
    desk_turn,
    opened,
    step_of,
)
from engine.market.as_of import Market, load_market
from engine.ports import Calendar
from engine.preset import Preset, briefed, load_preset
from engine.session.inputs import read_inputs
from engine.session.recorder import answer_entry
from memory.recall import LayeredMemory

AS_IT_WAS = Changes()
"""Nothing is to be different."""


def redecide(
    reader: JournalReader,
    decisions: Sequence[Decision],
    config: Config,
    changes: Changes = AS_IT_WAS,
    market: Market | None = None,
) -> Redecided:
    """Decides a symbol's decisions of one session (one per owner) again; `market` is the run's where it is loaded
    already. Nothing is written but answers of models that are newly asked, into the recorded ones.

    Raises UsageError for a preset, step or model that there is not and for a rule strategy; DataError where data,
    journal or memory lack what was decided with; what the models' wiring raises, CredentialsRefused only for a
    question that is new.
    """
    key = decisions[0].key
    entry = reader.run(key.run)
    preset = briefed(_preset(entry, config, changes), kept_briefing(reader, entry))
    model = changes.model or (None if entry.spec is None else entry.spec.model)
    models = build_models(services(config), preset, model, keys_on_demand=True)
    stood = [trail(reader, made.key) for made in decisions]
    said = [answer for one in stood for answer in one.answers] if changes.model in (None, ModelKind.REPLAY) else []
    asked = Asked(
        entry=entry, session=key.session, cycle=key.cycle, preset=preset, models=models, config=config, said=tuple(said)
    )
    again = asyncio.run(_again(reader, asked, key.symbol, market))
    return Redecided(
        run=entry,
        symbol=key.symbol,
        session=key.session,
        preset=preset.name,
        without=changes.without,
        label=models.label,
        comparisons=compared(stood, again.trails(key.symbol)),
        notes=again.notes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which batch is to be decided again, by whom; `said` are answers that stand where the question is the same."""

    entry: RunEntry
    session: date
    cycle: int
    preset: Preset
    models: ModelSet
    config: Config
    said: tuple[AnswerEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Again:
    """What a batch, or a symbol of it, came to when it was decided again."""

    turn: Turn
    verdict: CycleResult
    answers: tuple[AnswerEntry, ...]
    notes: tuple[str, ...]

    def trails(self, symbol: Symbol) -> list[Trail]:
        """A symbol's decisions as trails; nothing has come of them."""
        now = self.turn.market.now
        return [
            Trail(
                decision=made,
                answers=tuple(answer for answer in self.answers if answer.key == made.key),
                orders=tuple(
                    OrderEntry(order=order, run=made.key.run, desk=self.turn.desk, cycle=made.key.cycle, time=now)
                    for order in self.verdict.orders
                    if order.symbol == symbol
                ),
                moves=(),
                fills=(),
                outcome=None,
                closes=(),
                recalled=tuple(
                    Recalled(memory, memory.id in made.evidence)
                    for memory in {m.id: m for m in self.verdict.recollections.get(made.key, ())}.values()
                ),
            )
            for made in self.verdict.decisions
            if made.key.symbol == symbol
        ]


async def _again(reader: JournalReader, asked: Asked, symbol: Symbol | None, given: Market | None) -> Again:
    try:
        occasion, market, calendar = await _occasion(reader, asked, given)
        again = await decide_batch(asked, occasion, market, calendar, symbol)
        kept = given is None and asked.entry.spec is None and bool(reader.inputs(asked.entry.id, asked.cycle))
        return replace(again, notes=(*again.notes, *_short_of_bars(asked, market, symbol))) if kept else again
    finally:
        await asked.models.aclose()


def _short_of_bars(asked: Asked, market: Market, symbol: Symbol | None) -> Iterator[str]:
    """What a longer look back than that day's does not find: a desk keeps the bars that its preset reads."""
    then, now = preset_of_desk(asked.entry, asked.config).windows.chart, asked.preset.windows.chart
    for name in (symbol,) if symbol is not None else market.histories:
        bars = len(market.histories[name])
        if now > then and bars < now + INDICATOR_ROWS:
            yield f"{bars} bars of {name} were kept for a chart of {then} sessions: one of {now} has no more to show"


async def decide_batch(
    asked: Asked, recorded: RecordedTurn, market: Market, calendar: Calendar, symbol: Symbol | None
) -> Again:
    """The result on one symbol beside what the others ordered, or (None) on the whole batch."""
    heard: list[AnswerRecord] = []
    models = asked.models
    spec = asked.entry.spec
    saying = {id(model): RecordedModel(model, asked.said) for model in models.models.values()}
    answering = {agent: saying[id(model)] for agent, model in models.models.items()}
    asker = Asker(
        answering,
        models.settings,
        heard.append,
        lambda asked, text: None,
        sample=0 if spec is None else spec.sample,
        options=NO_OPTIONS if spec is None else spec.options,
        insisted=models.insisted,
    )
    with memory_then(asked, calendar, step_of(recorded, calendar)) as (memory, notes):
        cycle = Cycle(asked.preset, asker, market.calendars, memory=memory)
        done = await decide_again(recorded, market, calendar, cycle, symbol=symbol)
    now = done.turn.market.now
    answers = tuple(answer_entry(record, asked.entry.id, asked.cycle, now) for record in heard)
    return Again(done.turn, done.result, answers, notes)


def _preset(entry: RunEntry, config: Config, changes: Changes) -> Preset:
    if entry.spec is not None and entry.spec.preset is None:
        raise UsageError(
            f"{entry.id} is a run of the rule strategy {entry.name}: only decisions of agents are redecided"
        )
    if changes.preset is not None:
        return load_preset(changes.preset).without(changes.without)
    if entry.spec is not None and entry.spec.preset is not None:
        return load_preset(entry.spec.preset).without((*entry.spec.without, *changes.without))
    return preset_of_desk(entry, config).without(changes.without)


def preset_of_desk(entry: RunEntry, config: Config) -> Preset:
    """What a desk ran on that day: its configured preset, unless it has another name by now."""
    configured = load_preset(config.desk.preset)
    return configured if configured.name == entry.name else load_preset(entry.name)


async def _occasion(reader: JournalReader, asked: Asked, given: Market | None) -> tuple[RecordedTurn, Market, Calendar]:
    entry, config = asked.entry, asked.config
    outside = services(config)
    if entry.spec is None:
        inputs = reader.inputs(entry.id, asked.cycle)
        seen = read_inputs(inputs, outside.calendar_for) if inputs else None
        occasion = desk_turn(reader, entry, asked.session, asked.cycle, config.desk.name, seen)
        market = given or (seen.market if seen is not None else await desk_market(config, occasion))
        return occasion, market, outside.desk_calendar(entry.symbols)
    spec = entry.spec
    calendar = outside.desk_calendar(spec.symbols)
    rules, _ = with_costs(spec, config)
    loaded = await load_run(outside, spec) if given is None else given
    market = on_convention(spec, convention(spec.convention), loaded)
    occasion = backtest_turn(reader, entry, spec, asked.session, calendar, rules, config.desk.name)
    if rules.fill_at is FillAt.SAME_CLOSE:
        occasion = opened(occasion, market, rules)
    return occasion, market, calendar


async def desk_market(config: Config, occasion: RecordedTurn) -> Market:
    """What the desk's data say today of the symbols that were decided or held then. Raises what the source raises, and
    StaleData where bars do not reach the session."""
    outside = services(config)
    source = outside.open_source(outside.data, occasion.session)
    macro = await load_macro(outside, outside.data, occasion.session)
    symbols = tuple(dict.fromkeys((*occasion.symbols, *occasion.portfolio.positions)))
    market = await load_market(source, source, source, symbols, outside.calendar_for, macro=macro)
    for symbol in occasion.symbols:
        history = market.histories[symbol]
        if not len(history) or history.session(-1) < occasion.session:
            raise StaleData(
                f"{symbol}: its bars do not reach {occasion.session}, when it was decided: fetch them again"
            )
    return market


@contextmanager
def memory_then(
    asked: Asked, calendar: Calendar, step: float
) -> Iterator[tuple[TradingMemory | None, tuple[str, ...]]]:
    """The memory of the run as it was before a decision, and what has to be said about it; what is written into it is
    lost. An empty one where the run had none. Raises MissingData where one that it had is gone, and as
    `memory_errors` says."""
    if not remembers(asked.preset):
        yield None, ()
        return
    outside = services(asked.config)
    kept = memory_of_run(outside, asked.entry)
    original = _original(asked)
    if not kept.exists:
        if remembers(original):
            raise MissingData(f"what {asked.entry.id} remembered is gone from {kept.place}: put it back from a copy")
        with run_memory(outside, asked.preset, calendar) as empty:
            yield empty, (f"{asked.entry.name} has no memory: {asked.preset.name} begins with an empty one",)
        return
    from memory.lancedb_store import LanceStore

    spec = asked.entry.spec
    with memory_errors(), outside.open_embedder(None if spec is None else spec.embedder, lambda use: None) as embedder:
        store = LanceStore(kept.place, embedder, writing=False)
        constants = original.memory if remembers(original) else kept.constants
        with LayeredMemory(store, embedder, constants) as memory:
            then = TradingMemory(memory, calendar).as_of(step)
        yield then, ()


def _original(asked: Asked) -> Preset:
    spec = asked.entry.spec
    if spec is None:
        return preset_of_desk(asked.entry, asked.config)
    assert spec.preset is not None  # a rule strategy was refused
    return load_preset(spec.preset).without(spec.without)
