"""The agents that decide recorded turns again, with the memory as it was then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from engine.app.memory.memory import memory_errors, remembers, run_memory
from engine.app.memory.stored_memory import memory_of_run
from engine.app.models.briefings import recorded_briefing
from engine.app.models.models import ModelSet, build_models
from engine.app.models.recorded_run import RecordedRun
from engine.app.research.recorded_turns import original_preset
from engine.cycle.cycle import Cycle
from engine.cycle.recall import TradingMemory
from engine.cycle.turn import CycleResult
from engine.domain.briefing import Briefing
from engine.domain.market import Symbol
from engine.domain.model_call import AnswerRecord
from engine.domain.model_spec import ModelKind
from engine.errors import MissingData, UsageError
from engine.journal.entries import OrderEntry, Recalled, RunEntry, Trail
from engine.journal.reader import JournalReader
from engine.lab.decision_changes import Changes
from engine.lab.recorded_turn import RecordedModel, RecordedTurn, decide_again
from engine.preset import Preset, briefed, load_preset
from engine.services import Services
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
    the place of the memory as it was."""

    services: Services
    preset: Preset
    models: ModelSet
    answers: tuple[AnswerRecord, ...] = ()
    watch: Callable[[TradingMemory], TradingMemory] = lambda memory: memory

    async def decide(self, recorded: RecordedTurn, symbol: Symbol | None) -> DecidedAgain:
        """Decide on one symbol beside the orders of the others, or (None) on the whole batch."""
        run, records = recorded.run, list[AnswerRecord]()
        replaying = {id(model): RecordedModel(model, self.answers) for model in self.models.models.values()}
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
    services: Services, reader: JournalReader, run: RunEntry, before: Iterable[Trail], changes: Changes
) -> Decider:
    """The agents that decide a run's recorded decisions again. Raises UsageError for a run of a rule strategy, and for
    a preset, step or model that there is not; as `build_models` does."""
    preset = changed_preset(services, run, changes, recorded_briefing(reader, run))
    model = changes.model or (None if run.spec is None else run.spec.model)
    recorded = () if run.spec is None else run.spec.models
    answers = answers_of(before)
    replayed = RecordedRun.of(reader, run.id, answers) if model == ModelKind.REPLAY else None
    models = build_models(services, preset, model, recorded=recorded, keys_on_demand=True, replayed=replayed)
    return Decider(services=services, preset=preset, models=models, answers=answers if changes.model is None else ())


def answers_of(trails: Iterable[Trail]) -> tuple[AnswerRecord, ...]:
    """All answers that led to some decisions."""
    return tuple(answer for one in trails for answer in one.answers)


def changed_preset(services: Services, run: RunEntry, changes: Changes, briefing: Briefing | None = None) -> Preset:
    """The preset that decides now, with the briefing of the run."""
    if run.spec is not None and run.spec.preset is None:
        raise UsageError(f"{run.id} is a run of the rule strategy {run.name}: only decisions of agents are redecided")
    if changes.preset is None:
        return original_preset(services, run, briefing).without(changes.without)
    return briefed(load_preset(changes.preset), briefing).without(changes.without)
