"""Recorded decisions of a symbol, decided again with the requested changes.

Attribution of recorded decisions: each decided again without one of its inputs, for one day or over a run.

A desk's recorded day replayed on the backtest clock, and compared with what was done.

The place of a memory in what a recorded decision asked of memory, by deciding it again with its recorded answers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import chain, groupby
from random import Random

from engine.app.bench.forecast import Forecast, Rehearsal, rehearsed_forecast, unpaid
from engine.app.memory import absence, memory_of_run
from engine.app.models.mask import masked
from engine.app.models.models import build_models, recorded_briefing
from engine.app.models.recorded_run import RecordedRun
from engine.app.records.trial_index import check_trial_index, count_trials, spec_hash, spec_trial
from engine.app.redecision.decider import (
    DecidedAgain,
    Decider,
    RecordedTurns,
    answers_of,
    changed_preset,
    decider_of,
    original_preset,
    present_data,
    recorded_inputs,
)
from engine.app.research.market_data import known_closes
from engine.cycle.cycle import INDICATOR_ROWS
from engine.cycle.recall import TradingMemory, WatchedRecall
from engine.domain.decision import Decision, DecisionKey
from engine.domain.market import Symbol
from engine.domain.model_call import ModelKind, ModelSpec, ReplayMode, parse_model_spec, replays
from engine.domain.run import RunKind, RunOutcome, RunSpec, Trial, TrialKind
from engine.errors import BudgetReached, DataError, MalformedData, MissingData
from engine.journal.entries import RunEntry, Trail
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.lab.altered_inputs import altered
from engine.lab.decision_changes import Attribution, Changes, Redecided, arms_of, attributed, compared, order_changes
from engine.lab.recorded_turn import Parity, RecordedTurn, data_changes, desk_turn
from engine.market.as_of import MarketAsOf
from engine.ports import Calendar
from engine.preset import Preset
from engine.reports.documents.closes import SymbolCloses
from engine.reports.documents.memory import named
from engine.reports.documents.records import Records
from engine.services import Services
from engine.session.recorder import read_inputs
from memory.record import MemoryRecord

AS_IT_WAS = Changes()
"""No difference from the run."""

Question = tuple[Sequence[Decision], Changes]
"""The decisions of one symbol and session (one per owner), and what is to be changed."""


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
    return redecide_all(services, reader, [(decisions, changes)])[0]


def redecide_all(
    services: Services,
    reader: JournalReader,
    questions: Sequence[Question],
    report: Callable[[str], None] = lambda text: None,
) -> list[Redecided]:
    """Decide some decisions again, one by one, each as `redecide` does; data of a run are loaded once."""
    check_trial_index()
    turns, done = RecordedTurns(services, reader), list[Redecided]()

    async def decide() -> None:
        for number, (decisions, changes) in enumerate(questions):
            report(f"decided again: {number} of {len(questions)}")
            done.append(await _decided_again(services, turns, decisions, changes))

    try:
        asyncio.run(decide())
    finally:
        count_trials(_trials(services, done))
    return done


async def _decided_again(
    services: Services, turns: RecordedTurns, decisions: Sequence[Decision], changes: Changes
) -> Redecided:
    reader, key = turns.reader, decisions[0].key
    run, before, recorded, decider = await _before(services, turns, decisions, changes)
    preset, models, notes = decider.preset, decider.models, tuple[str, ...]()
    async with aclosing(models):
        again = await decider.decide(recorded, key.symbol)
    if run.spec is None and reader.inputs(run.id, key.cycle):
        notes = tuple(_short_of_bars(services, recorded, preset, key.symbol))
    return Redecided(
        run=run,
        symbol=key.symbol,
        session=key.session,
        preset=preset.name,
        changes=changes,
        label=models.label,
        comparisons=compared(before, again.trails(key.symbol)),
        notes=(*again.notes, *notes),
    )


async def _before(
    services: Services, turns: RecordedTurns, decisions: Sequence[Decision], changes: Changes
) -> tuple[RunEntry, Sequence[Trail], RecordedTurn, Decider]:
    """The run of decisions, their trails, their turn as it is changed, and who decides it again."""
    reader, key = turns.reader, decisions[0].key
    run, before = reader.run(key.run), [trail(reader, made.key) for made in decisions]
    recorded = altered(await turns.of(key), changes.altered)
    decider = decider_of(services, reader, run, before, changes=changes, market=recorded.inputs.market)
    return run, before, recorded, decider


def redecision_forecast(
    services: Services, reader: JournalReader, questions: Sequence[Question], how: str = ""
) -> Forecast | None:
    """An estimate of what `redecide_all` will ask, the rules answering what is not recorded; None where nobody is asked
    who might charge for it. A question that several of them ask is counted each time. Raises as `redecide` does."""
    services, key = unpaid(services), questions[0][0][0].key
    times = len({id(decisions) for decisions, _ in questions})
    what = f"{key.symbol} of {key.session}" if times == 1 else f"{times} times"
    turns, tally = RecordedTurns(services, reader), Counter[tuple[str, str]]()
    specs: dict[str, ModelSpec] = {}

    async def rehearse() -> None:
        for decisions, changes in questions:
            specs.update(await _rehearsed(services, turns, decisions, changes, tally))

    asyncio.run(rehearse())
    title = f"Forecast for deciding {what} again{how}:"
    return rehearsed_forecast(services, tally, specs, title) if tally else None


async def _rehearsed(
    services: Services,
    turns: RecordedTurns,
    decisions: Sequence[Decision],
    changes: Changes,
    tally: Counter[tuple[str, str]],
) -> Mapping[str, ModelSpec]:
    """Decide again with rehearsed models and count what they are asked; the model of each agent."""
    config = services.config
    if replays(changes.model) or config.models.replay == ReplayMode.REPLAY_ONLY:
        return {}
    _, _, turn, decider = await _before(services, turns, decisions, changes)
    models = decider.models
    specs = {agent: parse_model_spec(model.spec, config.endpoints) for agent, model in models.models.items()}
    async with aclosing(models):
        if all(spec.kind is ModelKind.OFFLINE for spec in specs.values()):
            return specs
        with services.models.recorded() as recorded, suppress(BudgetReached):  # as far as vectors are stored
            known = None if config.models.replay == ReplayMode.LIVE else recorded
            played = {
                model.spec: Rehearsal(tally, known, specs[agent], sees=model.sees)
                for agent, model in models.models.items()
                if specs[agent].kind is not ModelKind.OFFLINE
            }
            rehearsed = {
                agent: masked(played.get(model.spec, model), models.mask) for agent, model in models.models.items()
            }
            await replace(decider, models=replace(models, models=rehearsed)).decide(turn, decisions[0].key.symbol)
    return specs


def _trials(services: Services, done: Sequence[Redecided]) -> list[Trial]:
    """The trials of deciding again: one for each change that was tried, at all symbols, from the first
    session to the last. An attribution is as many trials as it has rows, however many decisions were drawn."""
    tried: dict[str, RunSpec] = {}
    for one in done:
        spec = _tried(one)
        change = spec_hash(replace(spec, symbols=(), first=date.min, last=date.min))
        known = tried.setdefault(change, spec)
        symbols = tuple(dict.fromkeys((*known.symbols, *spec.symbols)))
        first, last = min(known.first, spec.first), max(known.last, spec.last)
        tried[change] = replace(known, symbols=symbols, first=first, last=last)
    return [spec_trial(TrialKind.REDECISION, spec, services.clock.now()) for spec in tried.values()]


def _tried(done: Redecided) -> RunSpec:
    """One symbol of one session, with the run's other settings and what was changed."""
    run, symbols, session, changes = done.run, (done.symbol,), done.session, done.changes
    spec = run.spec or RunSpec(symbols=symbols, first=session, last=session)
    spec = replace(spec, symbols=symbols, first=session, last=session, warm_up_from=None, preset=done.preset)
    return replace(spec, model=changes.model or spec.model, without=changes.without, run=run.id)


def _short_of_bars(services: Services, recorded: RecordedTurn, preset: Preset, symbol: Symbol) -> Iterator[str]:
    """A note on a longer lookback than that day's: a desk keeps only the bars that its preset reads."""
    then, now = original_preset(services, recorded.run).windows.chart, preset.windows.chart
    bars = len(recorded.inputs.market.histories[symbol])
    if now > then and bars < now + INDICATOR_ROWS:
        yield f"{bars} bars of {symbol} were kept for a chart of {then} sessions: one of {now} has no more to show"


Decisions = Sequence[Decision]
"""The decisions of one symbol and session, one per owner."""


def sample(records: Records, symbol: Symbol | None, most: int, seed: int) -> list[Decisions]:
    """Up to `most` occasions of the records, drawn by the seed and in their order: decisions of one symbol and session.
    Raises MissingData where nothing was decided."""
    reader = records.required
    name = symbol
    if symbol is not None and not reader.decisions(records.run, symbol):
        name = symbol.upper()
    made = reader.decisions(records.run, name, part=records.part)
    grouped = [
        [*group]
        for _, group in groupby(made, lambda one: (one.key.run, one.key.session, one.key.cycle, one.key.symbol))
    ]
    if not grouped:
        raise MissingData(f"{records.title} decided nothing{'' if name is None else f' for {name}'}")
    chosen = Random(f"attribution {seed}").sample(range(len(grouped)), min(most, len(grouped)))
    return [grouped[number] for number in sorted(chosen)]


def attribution_forecast(services: Services, records: Records, occasions: Sequence[Decisions]) -> Forecast | None:
    """An estimate of what `attribute` will ask; None where nobody is asked who might charge for it. Raises as
    `redecide` does."""
    questions = [one for decisions in occasions for one in _arms(services, records, decisions)[0]]
    return redecision_forecast(services, records.required, questions, " without each input")


def attribute(
    services: Services,
    records: Records,
    occasions: Sequence[Decisions],
    report: Callable[[str], None] = lambda text: None,
) -> list[Attribution]:
    """Decide each occasion again with nothing left out, without each input, and without all of them. Raises as
    `redecide` does; answers that came by then are recorded."""
    arms = [_arms(services, records, decisions) for decisions in occasions]
    questions = [question for own, _, _ in arms for question in own]
    done = iter(redecide_all(services, records.required, questions, report))
    market = known_closes(services, records, [*dict.fromkeys(decisions[0].key.symbol for decisions in occasions)])
    attributions = []
    for decisions, (own, inputs, characters) in zip(occasions, arms, strict=True):
        redecided = [next(done) for _ in own]
        attributions.append(attributed(redecided, inputs, characters, _next_move(market, decisions[0].key)))
    return attributions


def _arms(
    services: Services, records: Records, decisions: Decisions
) -> tuple[list[Question], tuple[str, ...], tuple[str, ...]]:
    """The questions about one occasion, with the inputs and the characters that are left out one by one."""
    reader = records.required
    preset = changed_preset(services, reader.run(decisions[0].key.run), AS_IT_WAS)
    inputs, characters = preset.inputs, preset.characters
    return [(decisions, Changes(without=arm)) for arm in arms_of(inputs, characters)], inputs, characters


def _next_move(market: MarketAsOf | None, key: DecisionKey) -> float | None:
    """The change of the symbol's close over the session after a decision."""
    closes = SymbolCloses.of(market, key.symbol)
    return next((one.change for one in closes.after(key.session) if one.sessions == 1), None)


def check_parity(services: Services, reader: JournalReader, session: date | None, run_id: str | None = None) -> Parity:
    """Replay a session's run (by its id where one is given, the latest one that decided without either) on the
    backtest clock and compare it with the recorded decisions and orders. Nothing is written.

    Recorded are the answers of the run itself, and those to other questions that any run has had. Raises MissingData
    where nothing was decided or no inputs were kept, and for an answer that was not recorded; what models and memory
    raise.
    """
    run = _decided_run(reader, session, run_id)
    assert run.session is not None  # a desk's run has one
    ordered = {entry.order.id for entry in reader.orders(run.id)}
    if early := [fill for fill in reader.early_fills() if fill.order_id in ordered]:
        raise MalformedData(
            f"{run.id}: {early[0].side} {early[0].symbol} filled at {early[0].time:%Y-%m-%d %H:%M} UTC, before its "
            "order was sent: nothing can be compared with that"
        )
    cycle = max(run.cycle, 1)
    inputs = read_inputs(recorded_inputs(reader, run.id, cycle), services.calendar_for)
    calendar = services.desk_calendar(inputs.symbols)
    recorded = desk_turn(reader, run, run.session, cycle=cycle, desk=services.desk, inputs=inputs, calendar=calendar)
    preset = original_preset(services, run, recorded_briefing(reader, run))
    decisions = reader.decisions(run.id)
    before = {
        symbol: [trail(reader, made.key) for made in decisions if made.key.symbol == symbol]
        for symbol in dict.fromkeys((*(made.key.symbol for made in decisions), *inputs.symbols))
    }
    answers = answers_of(chain.from_iterable(before.values()))
    models = build_models(services, preset, replayed=RecordedRun.of(reader, run.id, answers))
    decider = Decider(services=services, preset=preset, models=models)

    async def decide() -> DecidedAgain:
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
    raise MissingData(f"the desk has no decision for {session or run_id or 'any session'}{latest}")


def _data_changes(services: Services, recorded: RecordedTurn) -> tuple[str, ...]:
    """Differences between today's data and the recorded inputs; data that cannot be read is one of them."""
    inputs = recorded.inputs
    try:
        today = asyncio.run(present_data(services, inputs.symbols, inputs.portfolio, recorded.session))
    except DataError as error:
        return (f"today's data cannot be read: {error}",)
    return tuple(data_changes(inputs, today, recorded.now))


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A memory, its place in everything that a decision asked of memory, and the calendar of memory's steps."""

    record: MemoryRecord
    recalls: Sequence[WatchedRecall]
    calendar: Calendar


def recall_placement(services: Services, reader: JournalReader, decisions: Sequence[Decision], wanted: str) -> Watched:
    """Decide a symbol's decisions of one session (one per owner) again as they were, and watch the memory that an id,
    or enough of its beginning, names. Nothing is written, and no model is asked.

    Raises MissingData where the run has no memory, no memory has the id, or an answer is not recorded; what
    `Decider.decide` raises.
    """
    key, noted = decisions[0].key, list[WatchedRecall]()
    run = reader.run(key.run)
    stored = memory_of_run(services, run)
    if not stored.exists:
        raise MissingData(absence(stored, f"desk {services.desk}" if run.spec is None else f"backtest {run.id}"))
    preset = original_preset(services, run, recorded_briefing(reader, run))
    answers = answers_of(trail(reader, made.key) for made in decisions)
    models = build_models(services, preset, replayed=RecordedRun.of(reader, run.id, answers))
    with stored.opened() as memory:
        record = named(memory.records(), wanted)

    async def decide() -> None:
        async with aclosing(models):
            recorded = await RecordedTurns(services, reader).of(key)
            watch = partial(TradingMemory.watched, record_id=record.id, noted=noted)
            decider = Decider(services=services, preset=preset, models=models, watch=watch)
            await decider.decide(recorded, key.symbol)

    asyncio.run(decide())
    return Watched(record=record, recalls=noted, calendar=stored.calendar)
