"""One run of a desk whose lock is held, with everything that it needs: market, models, memory, venue, journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date
from typing import Any

from connectors.wiring.runs import with_costs
from engine import places
from engine.account.comparison import BooksDisagree
from engine.agents.ask import AnswerRecord, Asked, Asker
from engine.app.briefing import configured_briefing, keep_briefing
from engine.app.desk_account import DeskAccount, build_venue, check_calendar, refuse_bound
from engine.app.desk_runner import Publish
from engine.app.fetch import refresh
from engine.app.market_data import held_symbols, load_desk
from engine.app.memory import desk_memory, remembers
from engine.app.models import build_models
from engine.app.session_report import keep_report
from engine.config import Config
from engine.cycle.cycle import INDICATOR_ROWS, Cycle
from engine.domain.run import RunKind, RunOutcome, RunSpec
from engine.errors import DataError, DeskHalted, PaperdeskError
from engine.execution.venue import Venue
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.lab.window import unread_series
from engine.messages.events import AgentSaid, Event, Noticed, RunFinished
from engine.ports import Calendar, Clock, LanguageModel
from engine.preset import briefed, load_preset
from engine.reports.documents import row_json
from engine.services import Services
from engine.session.context import Quotes
from engine.session.cost_meter import CostMeter, answered
from engine.session.desk_context import DeskRun, DeskRunResult, run_id
from engine.session.desk_recorder import DeskRecorder
from engine.session.desk_run import run_daily, run_within
from engine.session.recorder import answer_entry
from engine.session.schedule import DAILY
from engine.session.simulated_venue import DeskVenue
from memory.lancedb_store import load_library


async def run_at(
    given: Services,
    calendar: Calendar,
    session: date,
    publish: Publish,
    clock: Clock,
    through: Callable[[LanguageModel], LanguageModel],
    account: DeskAccount | None,
    number: int = DAILY,
    ask: Quotes | None = None,
) -> DeskRunResult:
    """The daily run, or a cycle within the session (whose prices of the moment `ask` brings), of a desk whose lock is
    held. Raises as `run_desk_day` does."""
    config, desk = given.config, given.desk
    identity = run_id(desk, session, number)
    briefing = configured_briefing(given, given.data, given.symbols)
    preset = briefed(load_preset(config.desk.preset), briefing)
    models = build_models(given, preset)
    warned: list[Event] = []  # before the journal is open

    def warn(event: Event) -> None:
        warned.append(event)
        publish(event)

    held = held_symbols(desk)
    if account is not None:
        await check_calendar(account.broker, calendar, session)
        if config.data.refresh and given.broker is not None and given.broker.brings_data:
            await refresh(given, (*given.symbols, *held), session, clock, warn, run=identity)
    market = await load_desk(given, session, held)
    spec = RunSpec(symbols=given.symbols, first=session, last=session, preset=config.desk.preset)
    rules, cash = with_costs(spec, config)
    meter = CostMeter(models.spec)
    with ExitStack() as resources:
        journal = resources.enter_context(JournalWriter(places.desk_journal(desk)))
        keep_briefing(journal, identity, briefing)

        def tell(event: Event) -> None:
            journal.event(event)
            publish(event)

        for event in warned:
            journal.event(event)

        def heard(record: AnswerRecord) -> None:
            if journal.answer(answer_entry(record, identity, number, clock.now())):
                meter.count(record)
            tell(answered(record, identity, clock.now()))

        def said(asked: Asked, text: str) -> None:
            publish(
                AgentSaid(
                    run=identity,
                    time=clock.now(),
                    session=asked.session,
                    symbol=asked.symbol,
                    owner=asked.owner,
                    step=asked.step,
                    text=text,
                )
            )

        asked_of = {agent: through(model) for agent, model in models.models.items()}
        asker = Asker(asked_of, models.settings, heard, said, insisted=models.insisted)
        reader = resources.enter_context(JournalReader(journal.path))
        recorder = DeskRecorder(
            journal, identity, desk, clock, reader=reader, market=market, bars=preset.windows.chart + INDICATOR_ROWS
        )
        venue: Venue
        if account is None:
            refuse_bound(journal.path, desk)
            venue = DeskVenue(
                rules,
                market.histories,
                market.actions,
                calendar=calendar,
                recorder=recorder,
                reader=reader,
                cash=cash,
            )
        else:
            venue = build_venue(desk, account, journal, identity, session, market, calendar)

        def untidied(reason: str) -> None:
            tell(Noticed(identity, clock.now(), "warning", reason))

        begins = not reader.runs(RunKind.DAILY)
        meter.goes_on(reader.calls(identity))
        for note in unread_series(preset, given.data, market) if begins else ():
            tell(Noticed(identity, clock.now(), "info", note))
        if remembers(preset):
            await asyncio.to_thread(load_library)
        try:
            with desk_memory(given, preset, calendar, untidied, meter.add) as memory:
                cycle = Cycle(preset, asker, market.calendars, tell, memory)
                setting = DeskRun(
                    run=identity,
                    desk=desk,
                    session=session,
                    symbols=spec.symbols,
                    market=market,
                    calendar=calendar,
                    cycle=cycle,
                    name=preset.name,
                    label=models.label,
                    meter=meter,
                    journal=journal,
                    venue=venue,
                    clock=clock,
                    reader=reader,
                    recorder=recorder,
                    publish=tell,
                    pause=asyncio.sleep,
                    mode=config.broker.mode,
                    broker=config.broker.kind,
                    number=number,
                )
                done = await (run_daily(setting) if ask is None else run_within(setting, ask))
            _report(desk, identity, clock, tell)
            return done
        except PaperdeskError as error:
            _failed(config, journal, identity, error, clock, tell)
            _report(desk, identity, clock, tell)
            raise
        finally:
            await models.aclose()


def _failed(
    config: Config, journal: JournalWriter, identity: str, error: PaperdeskError, clock: Clock, tell: Publish
) -> None:
    """Writes down that the run failed, or was halted because broker and journal disagree, where it had begun; a
    session that was skipped stays skipped."""
    outcome = RunOutcome.HALTED if isinstance(error, DeskHalted) else RunOutcome.FAILED
    differences = error.differences if isinstance(error, BooksDisagree) else ()
    extra: dict[str, Any] = {"broker": config.broker.kind, "mode": config.broker.mode}
    extra |= {"differences": [row_json.difference(one) for one in differences]} if differences else {}
    with JournalReader(journal.path) as reader:
        under_way = any(run.id == identity and run.outcome is None for run in reader.runs())
    if under_way:
        journal.run_finished(identity, outcome, clock.now(), detail=str(error), extra=extra)
        tell(RunFinished(identity, clock.now(), outcome, None, str(error)))


def _report(desk: str, identity: str, clock: Clock, tell: Publish) -> None:
    """Writes the run's report beside the journal; one that cannot be written is a warning, for it can be made again."""
    try:
        keep_report(places.desk_journal(desk), desk, identity, places.desk_reports(desk))
    except DataError as error:
        tell(Noticed(identity, clock.now(), "warning", str(error)))
