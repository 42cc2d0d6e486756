"""The agents that decide recorded turns again, with the memory as it was then.

The inputs of recorded decisions, read again: the turn, the data and the preset that they were taken with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import partial

from engine.app.memory import memory_errors, memory_of_run, remembers, run_memory
from engine.app.models.mask import mask_of, masked, swap_of
from engine.app.models.models import ModelSet, Through, build_models, recorded_briefing
from engine.app.models.recorded_run import RecordedRun, answered_again
from engine.app.research.market_data import load_macro, load_run
from engine.app.research.run_spec import preset_of, with_costs
from engine.cycle.cycle import Cycle
from engine.cycle.recall import TradingMemory
from engine.cycle.turn import CycleResult
from engine.domain.decision import DecisionKey
from engine.domain.market import Symbol
from engine.domain.model_call import AnswerRecord, ModelKind
from engine.domain.order import Portfolio
from engine.domain.run import Briefing, RunSpec
from engine.errors import MissingData, StaleData, UsageError
from engine.journal.entries import OrderEntry, Recalled, RunEntry, Trail
from engine.journal.reader import JournalReader
from engine.lab.altered_inputs import TICKERS
from engine.lab.decision_changes import Changes
from engine.lab.recorded_turn import RecordedTurn, backtest_turn, decide_again, desk_turn
from engine.lab.window import on_convention
from engine.market.as_of import Market, load_market
from engine.preset import Preset, briefed, load_preset
from engine.services import Services
from engine.session.recorder import Inputs, read_inputs
from memory.recall import LayeredMemory


@dataclass(frozen=True, slots=True, repr=False)  # asyncio.run formats what it returns, a whole market here
class DecidedAgain:
    """The result of deciding a recorded turn, or a symbol of it, again."""

    recorded: RecordedTurn
    result: CycleResult
    answers: tuple[AnswerRecord, ...]
    notes: tuple[str, ...]

    def trails(self, symbol: Symbol) -> list[Trail]:
        """A symbol's decisions as trails, without fills and outcomes."""
        desk, now, given = self.recorded.desk, self.recorded.now, self.result.recollections
        opinions = tuple(one for one in self.result.opinions if one.key.symbol == symbol)
        return [
            Trail(
                decision=made,
                answers=tuple(a for one in made.based_on(opinions) for a in self.answers if a.key == one.key),
                orders=tuple(
                    OrderEntry(order=order, run=made.key.run, desk=desk, cycle=made.key.cycle, time=now)
                    for order in self.result.orders
                    if order.symbol == symbol
                ),
                moves=(),
                fills=(),
                outcome=None,
                closes=(),
                recalled=tuple(
                    Recalled(memory, memory.id in one.evidence, one.key.owner)
                    for one in made.based_on(opinions)
                    for memory in {m.id: m for m in given.get(one.key, ())}.values()
                ),
                opinions=opinions,
                debate=next((one for one in self.result.debates if one.key.symbol == symbol), None),
            )
            for made in self.result.decisions
            if made.key.symbol == symbol
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """The agents that decide again. `answers` are given again where the question is the same; `watch` puts another in
    the place of the memory as it was, `through` wraps every model."""

    services: Services
    preset: Preset
    models: ModelSet
    answers: tuple[AnswerRecord, ...] = ()
    watch: Callable[[TradingMemory], TradingMemory] = lambda memory: memory
    through: Through = lambda model: model

    async def decide(self, recorded: RecordedTurn, symbol: Symbol | None) -> DecidedAgain:
        """Decide on one symbol beside the orders of the others, or (None) on the whole batch."""
        run, records = recorded.run, list[AnswerRecord]()
        every = self.models.models.values()
        replaying = {id(model): self.through(answered_again(model, self.answers)) for model in every}
        asker = self.models.asker(run.spec, records.append, through=lambda model: replaying[id(model)])
        with self._memory(recorded) as (memory, notes):
            cycle = Cycle(self.preset, asker, recorded.inputs.market.calendars, memory=memory)
            result = await decide_again(recorded, cycle, symbol=symbol)
        answers = tuple(record.in_run(run.id, recorded.cycle, recorded.now) for record in records)
        return DecidedAgain(recorded, result, answers, notes)

    @contextmanager
    def _memory(self, recorded: RecordedTurn) -> Iterator[tuple[TradingMemory | None, tuple[str, ...]]]:
        """The memory of the run as it was before the decision, with notes on it; what is written into it is lost. An
        empty one where the run had none. Raises MissingData where one that it had is gone, and as `memory_errors`
        says."""
        if not remembers(self.preset):
            yield None, ()
            return
        services, run = self.services, recorded.run
        stored, original = memory_of_run(services, run), original_preset(services, run)
        if not stored.exists:
            if remembers(original):
                raise MissingData(f"what {run.id} remembered is gone from {stored.place}: put it back from a copy")
            with run_memory(services, self.preset, recorded.calendar) as empty:
                yield empty, (f"{run.name} has no memory: {self.preset.name} begins with an empty one",)
            return
        from memory.lancedb_store import LanceStore

        spec = None if run.spec is None else run.spec.embedder
        with memory_errors(), services.open_embedder(spec, lambda use: None, limit=services.limit) as embedder:
            store = LanceStore(stored.place, embedder, writing=False)
            constants = original.memory.constants if remembers(original) else stored.constants
            with LayeredMemory(store, embedder, constants) as memory:
                then = TradingMemory(memory, recorded.calendar).as_of(recorded.step)
            yield self.watch(then), ()


def decider_of(
    services: Services,
    reader: JournalReader,
    run: RunEntry,
    before: Iterable[Trail],
    *,
    changes: Changes,
    market: Market,
) -> Decider:
    """The agents that decide a run's recorded decisions of its market again. Raises UsageError for a run of a rule
    strategy, and for a preset, step or model that there is not; as `build_models` does."""
    preset = changed_preset(services, run, changes, recorded_briefing(reader, run))
    model = changes.model or (None if run.spec is None else run.spec.model)
    recorded = () if run.spec is None else run.spec.models
    answers = answers_of(before)
    replayed = RecordedRun.of(reader, run.id, answers) if model == ModelKind.REPLAY else None
    mask = None if run.spec is None else mask_of(run.spec, market)
    models = build_models(services, preset, model, recorded=recorded, keys_on_demand=True, replayed=replayed, mask=mask)
    swap = swap_of(run.symbols, market) if changes.altered == TICKERS else None
    return Decider(
        services=services,
        preset=preset,
        models=models,
        answers=answers if changes.model is None else (),
        through=partial(masked, mask=swap),
    )


def answers_of(trails: Iterable[Trail]) -> tuple[AnswerRecord, ...]:
    """All answers that led to some decisions."""
    return tuple(answer for one in trails for answer in one.answers)


def changed_preset(services: Services, run: RunEntry, changes: Changes, briefing: Briefing | None = None) -> Preset:
    """The preset that decides now, with the briefing of the run."""
    if run.spec is not None and run.spec.preset is None:
        raise UsageError(f"{run.id} is a run of the rule strategy {run.name}: only decisions of agents can be re-run")
    if changes.preset is None:
        return original_preset(services, run, briefing).without(changes.without)
    return briefed(load_preset(changes.preset), briefing).without(changes.without)


def original_preset(services: Services, run: RunEntry, briefing: Briefing | None = None) -> Preset:
    """The preset that a run decided by; a desk's is the configured one, unless that has another name by now, with the
    briefing of the run."""
    if run.spec is not None:
        kept = preset_of(run.spec)
        assert kept is not None  # a rule strategy decides nothing again
        return kept
    configured = load_preset(services.config.desk.preset)
    return briefed(configured if configured.name == run.name else load_preset(run.name), briefing)


@dataclass(frozen=True, slots=True)
class RecordedTurns:
    """The turns of a journal's decisions, each on its run's own data; a backtest's market is loaded once."""

    services: Services
    reader: JournalReader
    _markets: dict[str, Market] = field(default_factory=dict)

    async def of(self, key: DecisionKey) -> RecordedTurn:
        """The turn of a decision. Raises MissingData where the journal lacks its books or inputs, and what the source
        raises."""
        services, reader = self.services, self.reader
        run, session = reader.run(key.run), key.session
        if run.spec is not None:
            calendar, (rules, _) = services.desk_calendar(run.spec.symbols), with_costs(run.spec, services.config)
            return backtest_turn(
                reader,
                run,
                run.spec,
                session,
                market=await self._market(run.id, run.spec),
                calendar=calendar,
                rules=rules,
                desk=services.desk,
            )
        calendar = services.desk_calendar(run.symbols)
        inputs = read_inputs(recorded_inputs(reader, run.id, key.cycle), services.calendar_for)
        return desk_turn(reader, run, session, cycle=key.cycle, desk=services.desk, inputs=inputs, calendar=calendar)

    async def _market(self, run: str, spec: RunSpec) -> Market:
        if run not in self._markets:
            self._markets[run] = on_convention(spec, await load_run(self.services, spec))
        return self._markets[run]


def recorded_inputs(reader: JournalReader, run: str, cycle: int) -> Inputs:
    """The inputs of a desk's run in a cycle, as its journal has them. Raises MissingData where it has none."""
    inputs = reader.inputs(run, cycle)
    if not inputs:
        raise MissingData(f"{run} recorded no inputs of cycle {cycle}: it cannot be re-run")
    return inputs


async def present_data(services: Services, symbols: Sequence[Symbol], portfolio: Portfolio, session: date) -> Market:
    """The present data of the symbols that were decided or held. Raises what the source raises, and StaleData where
    bars do not reach the session."""
    source = services.open_source(services.data, session)
    macro = await load_macro(services, services.data, session)
    together = tuple(dict.fromkeys((*symbols, *portfolio.positions)))
    market = await load_market(source, source, together, services.calendar_for, macro=macro)
    for symbol in symbols:
        history = market.histories[symbol]
        if not len(history) or history.session(-1) < session:
            raise StaleData(f"{symbol}: its bars do not reach {session}, when it was decided: fetch them again")
    return market
