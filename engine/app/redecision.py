"""Recorded decisions, decided again: a symbol's with the requested changes, or a desk's whole day to check parity."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain

from engine.agents.ask import AnswerRecord
from engine.app.bench.forecast import Forecast, Rehearsal, rehearsed_forecast, unpaid
from engine.app.look_index import count_looks, spec_look
from engine.app.market_data import load_macro, load_run
from engine.app.memory import memory_errors, remembers, run_memory
from engine.app.models import ModelSet, build_models
from engine.app.run_spec import recorded_briefing, with_costs
from engine.app.stored_memory import memory_of_run
from engine.cycle.cycle import INDICATOR_ROWS, Cycle
from engine.cycle.recall import TradingMemory
from engine.cycle.turn import CycleResult
from engine.domain.decision import Decision, DecisionKey
from engine.domain.market import Symbol
from engine.domain.model_spec import ModelKind, ReplayMode, parse_model_spec
from engine.domain.portfolio import Portfolio
from engine.domain.run import LookKind, RunKind, RunOutcome, RunSpec, WindowLook
from engine.errors import BudgetReached, DataError, MissingData, StaleData, UsageError
from engine.journal.entries import AnswerEntry, OrderEntry, Recalled, RunEntry, Trail
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.lab.decision_changes import Changes, Redecided, compared, order_changes
from engine.lab.parity import Parity, data_changes
from engine.lab.recorded_turn import (
    RecordedModel,
    RecordedTurn,
    backtest_turn,
    close_inputs,
    decide_again,
    desk_turn,
)
from engine.lab.window import on_convention
from engine.market.as_of import Market, load_market
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
) -> Redecided:
    """Decide a symbol's decisions of one session (one per owner) again. Nothing is written but answers of models that
    are newly asked, into the recorded ones, and the look.

    Raises UsageError for a preset, step or model that there is not and for a rule strategy; DataError where data,
    journal or memory lack what was decided with; what `build_models` raises, CredentialsRefused only for a question
    that is new.
    """
    key = decisions[0].key
    run = reader.run(key.run)
    before = [trail(reader, made.key) for made in decisions]
    decider = _decider(services, reader, run, before, changes)
    preset, models = decider.preset, decider.models

    async def decide() -> _Again:
        async with aclosing(models):
            recorded = await _recorded_turn(services, reader, key)
            again = await decider.decide(recorded, key.symbol)
        if run.spec is None and reader.inputs(run.id, key.cycle):
            return replace(again, notes=(*again.notes, *_short_of_bars(services, recorded, preset, key.symbol)))
        return again

    again = asyncio.run(decide())
    count_looks([_look(services, run, key, preset, changes)])
    return Redecided(
        run=run,
        symbol=key.symbol,
        session=key.session,
        preset=preset.name,
        without=changes.without,
        label=models.label,
        comparisons=compared(before, again.trails(key.symbol)),
        notes=again.notes,
    )


def redecision_forecast(
    services: Services,
    reader: JournalReader,
    decisions: Sequence[Decision],
    changes: Changes = AS_IT_WAS,
) -> Forecast | None:
    """An estimate of what `redecide` will ask, the rules answering what is not recorded; None where nobody is asked who
    might charge for it. Raises as `redecide` does."""
    key, services = decisions[0].key, unpaid(services)
    config, run = services.config, reader.run(key.run)
    decider = _decider(services, reader, run, [trail(reader, made.key) for made in decisions], changes)
    models, tally = decider.models, Counter[tuple[str, str]]()
    specs = {agent: parse_model_spec(model.spec, config.endpoints) for agent, model in models.models.items()}
    alone = changes.model == ModelKind.REPLAY or config.models.replay == ReplayMode.REPLAY_ONLY

    async def rehearse() -> None:
        async with aclosing(models):
            if alone or all(spec.kind is ModelKind.OFFLINE for spec in specs.values()):
                return
            with services.models.recorded() as recorded, suppress(BudgetReached):  # as far as vectors are stored
                known = None if config.models.replay == ReplayMode.LIVE else recorded
                played = {
                    model.spec: Rehearsal(tally, known, specs[agent], sees=model.sees)
                    for agent, model in models.models.items()
                    if specs[agent].kind is not ModelKind.OFFLINE
                }
                rehearsed = {agent: played.get(model.spec, model) for agent, model in models.models.items()}
                turn = await _recorded_turn(services, reader, key)
                await replace(decider, models=replace(models, models=rehearsed)).decide(turn, key.symbol)

    asyncio.run(rehearse())
    if not tally:
        return None
    title = f"Forecast for deciding {key.symbol} of {key.session} again:"
    return rehearsed_forecast(services, tally, specs, title)


def _decider(
    services: Services, reader: JournalReader, run: RunEntry, before: Sequence[Trail], changes: Changes
) -> _Decider:
    """The agents that decide a run's recorded decisions again."""
    preset = briefed(_preset(services, run, changes), recorded_briefing(reader, run))
    model = changes.model or (None if run.spec is None else run.spec.model)
    models = build_models(services, preset, model, keys_on_demand=True)
    reused = before if changes.model in (None, ModelKind.REPLAY) else []
    return _Decider(services=services, preset=preset, models=models, answers=_answers(reused))


def check_parity(services: Services, reader: JournalReader, session: date | None, run_id: str | None = None) -> Parity:
    """Replay a session's run (by its id where one is given, the latest one that decided without either) on the
    backtest clock and compare it with the recorded decisions and orders. Nothing is written.

    Recorded are the answers of the run itself, and those to other questions that any run has had. Raises MissingData
    where nothing was decided or no inputs were kept, and for an answer that was not recorded; what models and memory
    raise.
    """
    run = _decided_run(reader, session, run_id)
    assert run.session is not None  # a desk's run has one
    cycle = max(run.cycle, 1)
    parts = reader.inputs(run.id, cycle)
    if not parts:
        raise MissingData(f"{run.id} kept no inputs: it ran on an older program, and only later days can be replayed")
    inputs = read_inputs(parts, services.calendar_for)
    calendar = services.desk_calendar(inputs.symbols)
    recorded = desk_turn(reader, run, run.session, cycle=cycle, desk=services.desk, inputs=inputs, calendar=calendar)
    preset = briefed(_original_preset(services, run), recorded_briefing(reader, run))
    decisions = reader.decisions(run.id)
    before = {
        symbol: [trail(reader, made.key) for made in decisions if made.key.symbol == symbol]
        for symbol in dict.fromkeys((*(made.key.symbol for made in decisions), *inputs.symbols))
    }
    models = build_models(services, preset, recorded_alone=True)
    answers = _answers(chain.from_iterable(before.values()))
    decider = _Decider(services=services, preset=preset, models=models, answers=answers)

    async def decide() -> _Again:
        async with aclosing(models):
            return await decider.decide(recorded, None)

    again = asyncio.run(decide())
    return Parity(
        run=run,
        session=run.session,
        label=models.label,
        comparisons=tuple(one for symbol, trails in before.items() for one in compared(trails, again.trails(symbol))),
        orders=len(recorded.orders),
        order_changes=order_changes(recorded.orders, again.result.orders),
        data=_data_changes(services, recorded),
    )


def _decided_run(reader: JournalReader, session: date | None, run_id: str | None) -> RunEntry:
    """The requested run; the latest of those that fit and decided something."""
    named = [reader.run(run_id)] if run_id is not None else reader.runs(RunKind.DAILY)
    fitting = [entry for entry in named if entry.session is not None and session in (None, entry.session)]
    decided = [entry for entry in fitting if reader.decisions(entry.id)]
    if decided:
        return decided[-1]
    days = [entry.session for entry in reader.runs(RunKind.DAILY) if entry.outcome is RunOutcome.DONE][-3:]
    latest = f": the latest sessions are {', '.join(map(str, days))}" if days else ""
    raise MissingData(f"the desk decided nothing for {session or run_id or 'any session'}{latest}")


def _data_changes(services: Services, recorded: RecordedTurn) -> tuple[str, ...]:
    """Differences between today's data and the recorded inputs; data that cannot be read is one of them."""
    inputs = recorded.inputs
    try:
        today = asyncio.run(_present_data(services, inputs.symbols, inputs.portfolio, recorded.session))
    except DataError as error:
        return (f"today's data cannot be read: {error}",)
    return tuple(data_changes(inputs, today, recorded.now))


def _answers(trails: Iterable[Trail]) -> tuple[AnswerEntry, ...]:
    return tuple(answer for one in trails for answer in one.answers)


def _look(services: Services, run: RunEntry, key: DecisionKey, preset: Preset, changes: Changes) -> WindowLook:
    """The look of deciding one symbol again: a window of one session, with the run's other settings."""
    symbols, session = (key.symbol,), key.session
    spec = run.spec or RunSpec(symbols=symbols, first=session, last=session)
    spec = replace(spec, symbols=symbols, first=session, last=session, warm_up_from=None, preset=preset.name)
    spec = replace(spec, model=changes.model or spec.model, without=changes.without, run=run.id)
    return spec_look(LookKind.REDECISION, spec, services.clock.now())


@dataclass(frozen=True, slots=True, repr=False)  # asyncio.run formats what it returns, a whole market here
class _Again:
    """The result of deciding a recorded turn, or a symbol of it, again."""

    recorded: RecordedTurn
    result: CycleResult
    answers: tuple[AnswerEntry, ...]
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
            )
            for made in self.result.decisions
            if made.key.symbol == symbol
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decider:
    """The agents that decide again. `answers` are given again where the question is the same."""

    services: Services
    preset: Preset
    models: ModelSet
    answers: tuple[AnswerEntry, ...]

    async def decide(self, recorded: RecordedTurn, symbol: Symbol | None) -> _Again:
        """Decide on one symbol beside the orders of the others, or (None) on the whole batch."""
        run, records = recorded.run, list[AnswerRecord]()
        replaying = {id(model): RecordedModel(model, self.answers) for model in self.models.models.values()}
        asker = self.models.asker(run.spec, records.append, through=lambda model: replaying[id(model)])
        with self._memory(recorded) as (memory, notes):
            cycle = Cycle(self.preset, asker, recorded.inputs.market.calendars, memory=memory)
            result = await decide_again(recorded, cycle, symbol=symbol)
        answers = tuple(answer_entry(record, run.id, recorded.cycle, recorded.now) for record in records)
        return _Again(recorded, result, answers, notes)

    @contextmanager
    def _memory(self, recorded: RecordedTurn) -> Iterator[tuple[TradingMemory | None, tuple[str, ...]]]:
        """The memory of the run as it was before the decision, with notes on it; what is written into it is lost. An
        empty one where the run had none. Raises MissingData where one that it had is gone, and as `memory_errors`
        says."""
        if not remembers(self.preset):
            yield None, ()
            return
        services, run = self.services, recorded.run
        stored, original = memory_of_run(services, run), _original_preset(services, run)
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
            yield then, ()


def _preset(services: Services, run: RunEntry, changes: Changes) -> Preset:
    """The preset that decides now."""
    if run.spec is not None and run.spec.preset is None:
        raise UsageError(f"{run.id} is a run of the rule strategy {run.name}: only decisions of agents are redecided")
    original = _original_preset(services, run) if changes.preset is None else load_preset(changes.preset)
    return original.without(changes.without)


def _original_preset(services: Services, run: RunEntry) -> Preset:
    """The preset that a run decided by; a desk's is the configured one, unless that has another name by now."""
    if run.spec is not None:
        return load_preset(run.spec.preset or "").without(run.spec.without)
    configured = load_preset(services.config.desk.preset)
    return configured if configured.name == run.name else load_preset(run.name)


async def _recorded_turn(services: Services, reader: JournalReader, key: DecisionKey) -> RecordedTurn:
    """The turn of a decision, on its run's own data."""
    run, session = reader.run(key.run), key.session
    if run.spec is not None:
        calendar, (rules, _) = services.desk_calendar(run.spec.symbols), with_costs(run.spec, services.config)
        return backtest_turn(
            reader,
            run,
            run.spec,
            session,
            market=on_convention(run.spec, await load_run(services, run.spec)),
            calendar=calendar,
            rules=rules,
            desk=services.desk,
        )
    calendar = services.desk_calendar(run.symbols)
    if parts := reader.inputs(run.id, key.cycle):
        inputs = read_inputs(parts, services.calendar_for)
    else:  # of before inputs were kept: its books are those at the close
        books = [point.portfolio for point in reader.equity() if point.session == session]
        if not books:
            raise MissingData(f"the journal {reader.path} has no books of {session}, with which it was decided")
        market = await _present_data(services, run.symbols, books[-1], session)
        inputs = close_inputs(run.symbols, books[-1], market, calendar, session)
    return desk_turn(reader, run, session, cycle=key.cycle, desk=services.desk, inputs=inputs, calendar=calendar)


async def _present_data(services: Services, symbols: Sequence[Symbol], portfolio: Portfolio, session: date) -> Market:
    """The present data of the symbols that were decided or held. Raises what the source raises, and StaleData where
    bars do not reach the session."""
    source = services.open_source(services.data, session)
    macro = await load_macro(services, services.data, session)
    together = tuple(dict.fromkeys((*symbols, *portfolio.positions)))
    market = await load_market(
        source, source, source, together, services.calendar_for, macro=macro, commentary=await source.commentary()
    )
    for symbol in symbols:
        history = market.histories[symbol]
        if not len(history) or history.session(-1) < session:
            raise StaleData(f"{symbol}: its bars do not reach {session}, when it was decided: fetch them again")
    return market


def _short_of_bars(services: Services, recorded: RecordedTurn, preset: Preset, symbol: Symbol) -> Iterator[str]:
    """A note on a longer lookback than that day's: a desk keeps only the bars that its preset reads."""
    then, now = _original_preset(services, recorded.run).windows.chart, preset.windows.chart
    bars = len(recorded.inputs.market.histories[symbol])
    if now > then and bars < now + INDICATOR_ROWS:
        yield f"{bars} bars of {symbol} were kept for a chart of {then} sessions: one of {now} has no more to show"
