"""Parity of a recorded day of the desk: replayed from its recorded inputs, with recorded answers alone."""

from __future__ import annotations

import asyncio
from datetime import date

from engine.app.models import build_models
from engine.app.redecision import Again, Asked, decide_batch, desk_market, preset_of_desk
from engine.app.run_spec import kept_briefing
from engine.domain.model_spec import ModelKind
from engine.domain.run import RunKind, RunOutcome
from engine.errors import DataError, MissingData
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.lab.decision_changes import compared, order_changes
from engine.lab.parity import Parity, data_changes
from engine.lab.redecision import RecordedTurn, desk_turn
from engine.market.trading_hours import decision_time
from engine.preset import briefed
from engine.services import Services
from engine.session.recorded_inputs import TurnInputs, read_inputs


def check_parity(services: Services, reader: JournalReader, session: date | None, run: str | None = None) -> Parity:
    """Replay a session's run (by its id where one is given, the latest one that decided without either) on the
    backtest clock and compare it with the recorded decisions and orders. Nothing is written.

    Recorded are the answers of the run itself, and those to other questions that any run has had. Raises MissingData
    where nothing was decided or no inputs were kept, and for an answer that was not recorded; what models and memory
    raise.
    """
    entry = _decided(reader, session, run)
    assert entry.session is not None  # a desk's run has one
    cycle = max(entry.cycle, 1)
    inputs = reader.inputs(entry.id, cycle)
    if not inputs:
        raise MissingData(f"{entry.id} kept no inputs: it ran on an older program, and only later days can be replayed")
    seen = read_inputs(inputs, services.calendar_for)
    preset = briefed(preset_of_desk(services, entry), kept_briefing(reader, entry))
    decisions = reader.decisions(entry.id)
    stood = {
        symbol: [trail(reader, made.key) for made in decisions if made.key.symbol == symbol]
        for symbol in dict.fromkeys((*(made.key.symbol for made in decisions), *seen.symbols))
    }
    said = tuple(answer for trails in stood.values() for one in trails for answer in one.answers)
    models = build_models(services, preset, ModelKind.REPLAY)
    asked = Asked(
        services=services,
        entry=entry,
        session=entry.session,
        cycle=cycle,
        preset=preset,
        models=models,
        said=said,
    )
    recorded = desk_turn(reader, entry, entry.session, cycle, services.desk, seen)
    again = asyncio.run(_again(asked, recorded, seen))
    return Parity(
        run=entry,
        session=entry.session,
        label=asked.models.label,
        comparisons=tuple(one for symbol, trails in stood.items() for one in compared(trails, again.trails(symbol))),
        orders=len(recorded.orders),
        order_changes=order_changes(recorded.orders, again.result.orders),
        data=_data(services, recorded, seen),
    )


def _decided(reader: JournalReader, session: date | None, run: str | None) -> RunEntry:
    """The requested run; the latest of those that fit and decided something."""
    named = [reader.run(run)] if run is not None else reader.runs(RunKind.DAILY)
    fitting = [entry for entry in named if entry.session is not None and session in (None, entry.session)]
    decided = [entry for entry in fitting if reader.decisions(entry.id)]
    if decided:
        return decided[-1]
    days = [entry.session for entry in reader.runs(RunKind.DAILY) if entry.outcome is RunOutcome.DONE][-3:]
    known = f": the latest sessions are {', '.join(map(str, days))}" if days else ""
    raise MissingData(f"the desk decided nothing for {session or run or 'any session'}{known}")


async def _again(asked: Asked, recorded: RecordedTurn, seen: TurnInputs) -> Again:
    try:
        calendar = asked.services.desk_calendar(seen.symbols)
        return await decide_batch(asked, recorded, seen.market, calendar, None)
    finally:
        await asked.models.aclose()


def _data(services: Services, recorded: RecordedTurn, seen: TurnInputs) -> tuple[str, ...]:
    """Differences between today's data and the recorded inputs; data that cannot be read is one of them."""
    now = recorded.now or decision_time(services.desk_calendar(seen.symbols), recorded.session)
    try:
        return tuple(data_changes(seen, asyncio.run(desk_market(services, recorded)), now))
    except DataError as error:
        return (f"today's data cannot be read: {error}",)
