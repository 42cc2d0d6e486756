"""A recorded decision, decided again: the same inputs, the memory as it was that day, and the requested changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date

from engine.agents.ask import AnswerRecord, Asker
from engine.app.look_index import count_looks, spec_look
from engine.app.market_data import load_macro, load_run
from engine.app.memory import memory_errors, remembers, run_memory
from engine.app.models import ModelSet, build_models
from engine.app.run_spec import kept_briefing, with_costs
from engine.app.stored_memory import memory_of_run
from engine.cycle.cycle import INDICATOR_ROWS, Cycle
from engine.cycle.recall import TradingMemory
from engine.cycle.turn import CycleResult, Turn
from engine.domain.decision import Decision
from engine.domain.execution import FillAt
from engine.domain.market import Symbol
from engine.domain.model_call import NO_OPTIONS
from engine.domain.model_spec import ModelKind
from engine.domain.run import LookKind, RunSpec, WindowLook
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
from engine.lab.window import on_convention
from engine.market.as_of import Market, load_market
from engine.ports import Calendar
from engine.preset import Preset, briefed, load_preset
from engine.services import Services
from engine.session.recorded_inputs import read_inputs
from engine.session.recorder import answer_entry
from memory.recall import LayeredMemory

AS_IT_WAS = Changes()
"""No difference from the run."""


def redecide(
    services: Services,
    reader: JournalReader,
    decisions: Sequence[Decision],
    changes: Changes = AS_IT_WAS,
    market: Market | None = None,
) -> Redecided:
    """Decide a symbol's decisions of one session (one per owner) again; `market` is the run's where it is loaded
    already. Nothing is written but answers of models that are newly asked, into the recorded ones, and the look.

    Raises UsageError for a preset, step or model that there is not and for a rule strategy; DataError where data,
    journal or memory lack what was decided with; what `build_models` raises, CredentialsRefused only for a question
    that is new.
    """
    key = decisions[0].key
    entry = reader.run(key.run)
    preset = briefed(_preset(services, entry, changes), kept_briefing(reader, entry))
    model = changes.model or (None if entry.spec is None else entry.spec.model)
    models = build_models(services, preset, model, keys_on_demand=True)
    stood = [trail(reader, made.key) for made in decisions]
    said = [answer for one in stood for answer in one.answers] if changes.model in (None, ModelKind.REPLAY) else []
    asked = Asked(
        services=services,
        entry=entry,
        session=key.session,
        cycle=key.cycle,
        preset=preset,
        models=models,
        said=tuple(said),
    )
    again = asyncio.run(_again(reader, asked, key.symbol, market))
    count_looks([_look(services, entry, decisions[0], preset, changes)])
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


def _look(services: Services, entry: RunEntry, decision: Decision, preset: Preset, changes: Changes) -> WindowLook:
    """The look of deciding one symbol again: a window of one session, with the run's other settings."""
    session, symbols = decision.key.session, (decision.key.symbol,)
    spec = entry.spec or RunSpec(symbols=symbols, first=session, last=session)
    spec = replace(spec, symbols=symbols, first=session, last=session, warm_up_from=None, preset=preset.name)
    spec = replace(spec, model=changes.model or spec.model, without=changes.without, run=entry.id)
    return spec_look(LookKind.REDECISION, spec, services.clock.now())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A batch to be decided again.

    services: data, embedders, calendars.
    entry: the recorded run.
    session: the session that was decided on.
    cycle: number of the cycle that decided.
    preset: the preset that decides now.
    models: the models that answer now.
    said: recorded answers that are given again where the question is the same.
    """

    services: Services
    entry: RunEntry
    session: date
    cycle: int
    preset: Preset
    models: ModelSet
    said: tuple[AnswerEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Again:
    """The result of deciding a batch, or a symbol of it, again."""

    turn: Turn
    result: CycleResult
    answers: tuple[AnswerEntry, ...]
    notes: tuple[str, ...]

    def trails(self, symbol: Symbol) -> list[Trail]:
        """A symbol's decisions as trails, without fills and outcomes."""
        now, given = self.turn.market.now, self.result.recollections
        opinions = tuple(one for one in self.result.opinions if one.key.symbol == symbol)
        return [
            Trail(
                decision=made,
                answers=tuple(a for one in made.based_on(opinions) for a in self.answers if a.key == one.key),
                orders=tuple(
                    OrderEntry(order=order, run=made.key.run, desk=self.turn.desk, cycle=made.key.cycle, time=now)
                    for order in self.result.orders
                    if order.symbol == symbol
                ),
                moves=(),
                fills=(),
                outcome=None,
                closes=(),
                recalled=tuple(
                    Recalled(memory, memory.id in one.evidence, "" if one.key == made.key else one.key.owner)
                    for one in made.based_on(opinions)
                    for memory in {m.id: m for m in given.get(one.key, ())}.values()
                ),
                opinions=opinions,
            )
            for made in self.result.decisions
            if made.key.symbol == symbol
        ]


async def _again(reader: JournalReader, asked: Asked, symbol: Symbol | None, given: Market | None) -> Again:
    try:
        recorded, market, calendar = await _recorded(reader, asked, given)
        again = await decide_batch(asked, recorded, market, calendar, symbol)
        kept = given is None and asked.entry.spec is None and bool(reader.inputs(asked.entry.id, asked.cycle))
        return replace(again, notes=(*again.notes, *_short_of_bars(asked, market, symbol))) if kept else again
    finally:
        await asked.models.aclose()


def _short_of_bars(asked: Asked, market: Market, symbol: Symbol | None) -> Iterator[str]:
    """Notes on a longer lookback than that day's: a desk keeps only the bars that its preset reads."""
    then, now = preset_of_desk(asked.services, asked.entry).windows.chart, asked.preset.windows.chart
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
    replaying = {id(model): RecordedModel(model, asked.said) for model in models.models.values()}
    answering = {agent: replaying[id(model)] for agent, model in models.models.items()}
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


def _preset(services: Services, entry: RunEntry, changes: Changes) -> Preset:
    if entry.spec is not None and entry.spec.preset is None:
        raise UsageError(
            f"{entry.id} is a run of the rule strategy {entry.name}: only decisions of agents are redecided"
        )
    if changes.preset is not None:
        return load_preset(changes.preset).without(changes.without)
    if entry.spec is not None and entry.spec.preset is not None:
        return load_preset(entry.spec.preset).without((*entry.spec.without, *changes.without))
    return preset_of_desk(services, entry).without(changes.without)


def preset_of_desk(services: Services, entry: RunEntry) -> Preset:
    """The preset that a desk ran on that day: the configured one, unless it has another name by now."""
    configured = load_preset(services.config.desk.preset)
    return configured if configured.name == entry.name else load_preset(entry.name)


async def _recorded(reader: JournalReader, asked: Asked, given: Market | None) -> tuple[RecordedTurn, Market, Calendar]:
    entry, services = asked.entry, asked.services
    if entry.spec is None:
        inputs = reader.inputs(entry.id, asked.cycle)
        seen = read_inputs(inputs, services.calendar_for) if inputs else None
        recorded = desk_turn(reader, entry, asked.session, asked.cycle, services.desk, seen)
        market = given or (seen.market if seen is not None else await desk_market(services, recorded))
        return recorded, market, services.desk_calendar(entry.symbols)
    spec = entry.spec
    calendar = services.desk_calendar(spec.symbols)
    rules, _ = with_costs(spec, services.config)
    loaded = await load_run(services, spec) if given is None else given
    market = on_convention(spec, loaded)
    recorded = backtest_turn(reader, entry, spec, asked.session, calendar, rules, services.desk)
    if rules.fill_at is FillAt.SAME_CLOSE:
        recorded = opened(recorded, market, rules)
    return recorded, market, calendar


async def desk_market(services: Services, recorded: RecordedTurn) -> Market:
    """The desk's present data of the symbols that were decided or held then. Raises what the source raises, and
    StaleData where bars do not reach the session."""
    source = services.open_source(services.data, recorded.session)
    macro = await load_macro(services, services.data, recorded.session)
    symbols = tuple(dict.fromkeys((*recorded.symbols, *recorded.portfolio.positions)))
    market = await load_market(source, source, source, symbols, services.calendar_for, macro=macro)
    for symbol in recorded.symbols:
        history = market.histories[symbol]
        if not len(history) or history.session(-1) < recorded.session:
            raise StaleData(
                f"{symbol}: its bars do not reach {recorded.session}, when it was decided: fetch them again"
            )
    return market


@contextmanager
def memory_then(
    asked: Asked, calendar: Calendar, step: float
) -> Iterator[tuple[TradingMemory | None, tuple[str, ...]]]:
    """The memory of the run as it was before a decision, with notes on it; what is written into it is lost. An empty
    one where the run had none. Raises MissingData where one that it had is gone, and as `memory_errors` says."""
    if not remembers(asked.preset):
        yield None, ()
        return
    services = asked.services
    kept = memory_of_run(services, asked.entry)
    original = _original(asked)
    if not kept.exists:
        if remembers(original):
            raise MissingData(f"what {asked.entry.id} remembered is gone from {kept.place}: put it back from a copy")
        with run_memory(services, asked.preset, calendar) as empty:
            yield empty, (f"{asked.entry.name} has no memory: {asked.preset.name} begins with an empty one",)
        return
    from memory.lancedb_store import LanceStore

    spec = asked.entry.spec
    with memory_errors(), services.open_embedder(None if spec is None else spec.embedder, lambda use: None) as embedder:
        store = LanceStore(kept.place, embedder, writing=False)
        constants = original.memory if remembers(original) else kept.constants
        with LayeredMemory(store, embedder, constants) as memory:
            then = TradingMemory(memory, calendar).as_of(step)
        yield then, ()


def _original(asked: Asked) -> Preset:
    spec = asked.entry.spec
    if spec is None:
        return preset_of_desk(asked.services, asked.entry)
    assert spec.preset is not None  # a rule strategy was refused
    return load_preset(spec.preset).without(spec.without)
