"""A desk's recorded day replayed on the backtest clock, and compared with what was done."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import date
from itertools import chain

from engine.app.models.briefings import recorded_briefing
from engine.app.models.models import build_models
from engine.app.models.recorded_run import RecordedRun
from engine.app.research.decider import DecidedAgain, Decider, answers_of
from engine.app.research.recorded_turns import original_preset, present_data, recorded_inputs
from engine.domain.run import RunKind, RunOutcome
from engine.errors import DataError, MalformedData, MissingData
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.lab.decision_changes import compared, order_changes
from engine.lab.parity import Parity, data_changes
from engine.lab.recorded_turn import RecordedTurn, desk_turn
from engine.services import Services
from engine.session.recorded_inputs import read_inputs


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
    raise MissingData(f"the desk decided nothing for {session or run_id or 'any session'}{latest}")


def _data_changes(services: Services, recorded: RecordedTurn) -> tuple[str, ...]:
    """Differences between today's data and the recorded inputs; data that cannot be read is one of them."""
    inputs = recorded.inputs
    try:
        today = asyncio.run(present_data(services, inputs.symbols, inputs.portfolio, recorded.session))
    except DataError as error:
        return (f"today's data cannot be read: {error}",)
    return tuple(data_changes(inputs, today, recorded.now))
