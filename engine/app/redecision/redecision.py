"""Recorded decisions of a symbol, decided again with the requested changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import date

from engine.app.bench.forecast import Forecast, Rehearsal, rehearsed_forecast, unpaid
from engine.app.records.look_index import check_look_index, count_looks, spec_look
from engine.app.research.decider import decider_of
from engine.app.research.recorded_turns import RecordedTurns, original_preset
from engine.cycle.cycle import INDICATOR_ROWS
from engine.domain.decision import Decision
from engine.domain.market import Symbol
from engine.domain.model_spec import ModelKind, ModelSpec, ReplayMode, parse_model_spec, replays
from engine.domain.run import LookKind, RunSpec, WindowLook
from engine.errors import BudgetReached
from engine.journal.looks import spec_hash
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.lab.decision_changes import Changes, Redecided, compared
from engine.lab.recorded_turn import RecordedTurn
from engine.preset import Preset
from engine.services import Services

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
    check_look_index()
    turns, done = RecordedTurns(services, reader), list[Redecided]()

    async def decide() -> None:
        for number, (decisions, changes) in enumerate(questions):
            report(f"decided again: {number} of {len(questions)}")
            done.append(await _decided_again(services, turns, decisions, changes))

    try:
        asyncio.run(decide())
    finally:
        count_looks(_looks(services, done))
    return done


async def _decided_again(
    services: Services, turns: RecordedTurns, decisions: Sequence[Decision], changes: Changes
) -> Redecided:
    reader, key = turns.reader, decisions[0].key
    run = reader.run(key.run)
    before = [trail(reader, made.key) for made in decisions]
    decider = decider_of(services, reader, run, before, changes)
    preset, models, notes = decider.preset, decider.models, tuple[str, ...]()
    async with aclosing(models):
        recorded = await turns.of(key)
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


def redecision_forecast(
    services: Services,
    reader: JournalReader,
    decisions: Sequence[Decision],
    changes: Changes = AS_IT_WAS,
) -> Forecast | None:
    """An estimate of what `redecide` will ask, the rules answering what is not recorded; None where nobody is asked who
    might charge for it. Raises as `redecide` does."""
    key = decisions[0].key
    title = f"Forecast for deciding {key.symbol} of {key.session} again:"
    return redecisions_forecast(services, reader, [(decisions, changes)], title)


def redecisions_forecast(
    services: Services, reader: JournalReader, questions: Sequence[Question], title: str
) -> Forecast | None:
    """The same of `redecide_all`. A question that several of them ask is counted each time."""
    services = unpaid(services)
    turns, tally = RecordedTurns(services, reader), Counter[tuple[str, str]]()
    specs: dict[str, ModelSpec] = {}

    async def rehearse() -> None:
        for decisions, changes in questions:
            specs.update(await _rehearsed(services, turns, decisions, changes, tally))

    asyncio.run(rehearse())
    return rehearsed_forecast(services, tally, specs, title) if tally else None


async def _rehearsed(
    services: Services,
    turns: RecordedTurns,
    decisions: Sequence[Decision],
    changes: Changes,
    tally: Counter[tuple[str, str]],
) -> Mapping[str, ModelSpec]:
    """Decide again with rehearsed models and count what they are asked; the model of each agent."""
    reader, key, config = turns.reader, decisions[0].key, services.config
    if replays(changes.model) or config.models.replay == ReplayMode.REPLAY_ONLY:
        return {}
    before = [trail(reader, made.key) for made in decisions]
    decider = decider_of(services, reader, reader.run(key.run), before, changes)
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
            rehearsed = {agent: played.get(model.spec, model) for agent, model in models.models.items()}
            turn = await turns.of(key)
            await replace(decider, models=replace(models, models=rehearsed)).decide(turn, key.symbol)
    return specs


def _looks(services: Services, done: Sequence[Redecided]) -> list[WindowLook]:
    """The looks that were taken by deciding again: one for each change that was tried, at all symbols, from the first
    session to the last. An attribution is as many trials as it has rows, however many decisions were drawn."""
    tried: dict[str, RunSpec] = {}
    for one in done:
        spec = _tried(one)
        change = spec_hash(replace(spec, symbols=(), first=date.min, last=date.min))
        known = tried.setdefault(change, spec)
        symbols = tuple(dict.fromkeys((*known.symbols, *spec.symbols)))
        first, last = min(known.first, spec.first), max(known.last, spec.last)
        tried[change] = replace(known, symbols=symbols, first=first, last=last)
    return [spec_look(LookKind.REDECISION, spec, services.clock.now()) for spec in tried.values()]


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
