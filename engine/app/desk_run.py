"""One run of a desk whose lock is held: market, models, memory and venue are opened, and its end is written down."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from engine import places
from engine.account.booking import claim_account
from engine.account.broker_venue import BrokerVenue
from engine.account.reconciliation import BooksDisagree
from engine.agents.ask import AnswerRecord, Asker
from engine.app.desk_context import DeskAccount, DeskContext, check_calendar, refuse_bound
from engine.app.fetch import refresh
from engine.app.market_data import held_symbols, load_desk
from engine.app.memory import desk_memory, remembers
from engine.app.models import ModelSet, Through, build_models
from engine.app.run_spec import configured_briefing, keep_briefing, with_costs
from engine.app.session_report import keep_report
from engine.cycle.cycle import INDICATOR_ROWS, Cycle
from engine.domain.briefing import Briefing
from engine.domain.run import RunKind, RunOutcome, RunSpec
from engine.errors import DataError, DeskHalted, PaperdeskError
from engine.execution.venue import Venue
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.lab.window import unread_series
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.messages.events import Event, Noticed, Publish, RunFinished
from engine.preset import Preset, briefed, load_preset
from engine.reports.documents import row_json
from engine.session.context import Quotes
from engine.session.cost_meter import CostMeter
from engine.session.desk_context import DeskRun, DeskRunResult, run_id
from engine.session.desk_run import run_daily, run_within
from engine.session.recorder import DeskRecorder, answer_entry
from engine.session.schedule import DAILY
from engine.session.simulated_venue import DeskVenue
from memory.lancedb_store import load_library


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """What a run needs before it writes anything.

    context: the desk and the session.
    number: the cycle's number, DAILY after the close.
    briefing: the configured briefing of the agents.
    preset: the desk's preset with that briefing.
    models: the models that answer the agents.
    market: data of the symbols that are decided or held.
    """

    context: DeskContext
    number: int
    briefing: Briefing
    preset: Preset
    models: ModelSet
    market: Market

    @property
    def run(self) -> str:
        """The run's id."""
        return run_id(self.context.desk, self.context.session, self.number)


async def run_desk(
    context: DeskContext,
    publish: Publish,
    through: Through,
    *,
    number: int = DAILY,
    quotes: Quotes | None = None,
) -> DeskRunResult:
    """The daily run, or a cycle within the session at the prices of `quotes`, of a desk whose lock is held. Raises as
    engine.app.runs does."""
    early: list[Event] = []  # before there is a journal to write

    def warn(event: Event) -> None:
        early.append(event)
        publish(event)

    prepared = await _prepare(context, number, warn)
    journal = context.journal.writer
    reader = context.journal.reader
    assert reader is not None  # the writer has created the journal
    keep_briefing(journal, reader, prepared.run, prepared.briefing)
    for event in early:
        journal.event(event)

    def tell(event: Event) -> None:
        journal.event(event)
        publish(event)

    return await _Run(prepared, journal, reader, tell, publish).carry_out(through, quotes)


async def _prepare(context: DeskContext, number: int, warn: Publish) -> _Prepared:
    services, config = context.services, context.services.config
    briefing = configured_briefing(services, services.data, services.symbols)
    preset = briefed(load_preset(config.desk.preset), briefing)
    models = build_models(services, preset)
    held = held_symbols(context.journal.reader)
    if context.account is not None:
        await check_calendar(context.account.broker, context.calendar, context.session)
        if config.data.refresh and services.broker is not None and services.broker.brings_data:
            identity = run_id(context.desk, context.session, number)
            await refresh(services, (*services.symbols, *held), context.session, context.clock, warn, run=identity)
    market = await load_desk(services, context.session, held)
    return _Prepared(context=context, number=number, briefing=briefing, preset=preset, models=models, market=market)


class _Run:
    def __init__(
        self, prepared: _Prepared, journal: JournalWriter, reader: JournalReader, tell: Publish, publish: Publish
    ) -> None:
        """`tell` writes an event down and publishes it; `publish` only publishes it."""
        self._prepared, self._context, self._run = prepared, prepared.context, prepared.run
        self._config = prepared.context.services.config
        self._journal, self._reader = journal, reader
        self._tell, self._publish = tell, publish
        self._meter = CostMeter(prepared.models.spec)

    async def carry_out(self, through: Through, quotes: Quotes | None) -> DeskRunResult:
        """Run the session, and write down how it ended."""
        context, prepared, preset = self._context, self._prepared, self._prepared.preset
        recorder = DeskRecorder(
            self._journal,
            self._run,
            context.desk,
            context.clock,
            reader=self._reader,
            market=prepared.market,
            bars=preset.windows.chart + INDICATOR_ROWS,
        )
        venue, asker = self._venue(recorder), self._asker(through)
        first_run = not self._reader.runs(RunKind.DAILY)
        self._meter.goes_on(self._reader.calls(self._run))
        for note in unread_series(preset, context.services.data, prepared.market) if first_run else ():
            self._notice("info", note)
        if remembers(preset):
            await asyncio.to_thread(load_library)
        try:
            with desk_memory(
                context.services, preset, context.calendar, lambda why: self._notice("warning", why), self._meter.add
            ) as memory:
                cycle = Cycle(preset, asker, prepared.market.calendars, self._tell, memory)
                run = self._desk_run(cycle, recorder, venue)
                done = await (run_daily(run) if quotes is None else run_within(run, quotes))
            self._report()
            return done
        except PaperdeskError as error:
            self._fail(error)
            self._report()
            raise
        finally:
            await prepared.models.aclose()

    def _venue(self, recorder: DeskRecorder) -> Venue:
        context, market = self._context, self._prepared.market
        if context.account is not None:
            return self._broker_venue(context.account)
        refuse_bound(self._reader, context.desk)
        spec = RunSpec(
            symbols=context.symbols, first=context.session, last=context.session, preset=self._config.desk.preset
        )
        rules, cash = with_costs(spec, self._config)
        return DeskVenue(
            rules,
            market.histories,
            market.actions,
            calendar=context.calendar,
            recorder=recorder,
            reader=self._reader,
            cash=cash,
        )

    def _broker_venue(self, account: DeskAccount) -> BrokerVenue:
        context, market = self._context, self._prepared.market
        desk = context.desk
        return BrokerVenue(
            account.broker,
            context.reconciler(account),
            context.booking(account, self._run, market),
            journal=self._journal,
            reader=self._reader,
            prices=market.at(decision_time(context.calendar, context.session)).close,
            claim=lambda identity: claim_account(places.account_file(identity), desk, identity),
            desk=desk,
        )

    def _asker(self, through: Through) -> Asker:
        clock = self._context.clock

        def record(answer: AnswerRecord) -> None:
            if self._journal.answer(answer_entry(answer, self._run, self._prepared.number, clock.now())):
                self._meter.count(answer)

        return self._prepared.models.publishing_asker(
            self._run, clock, record, on_answered=self._tell, on_text=self._publish, through=through
        )

    def _desk_run(self, cycle: Cycle, recorder: DeskRecorder, venue: Venue) -> DeskRun:
        context, prepared = self._context, self._prepared
        return DeskRun(
            run=self._run,
            desk=context.desk,
            session=context.session,
            number=prepared.number,
            symbols=context.symbols,
            market=prepared.market,
            calendar=context.calendar,
            cycle=cycle,
            name=prepared.preset.name,
            label=prepared.models.label,
            meter=self._meter,
            journal=self._journal,
            reader=self._reader,
            recorder=recorder,
            venue=venue,
            clock=context.clock,
            publish=self._tell,
            pause=asyncio.sleep,
            mode=self._config.broker.mode,
            broker=self._config.broker.kind,
        )

    def _fail(self, error: PaperdeskError) -> None:
        """Write down that the run failed, or was halted because broker and journal disagree, where it had begun; a
        session that was skipped stays skipped."""
        outcome = RunOutcome.HALTED if isinstance(error, DeskHalted) else RunOutcome.FAILED
        differences = error.differences if isinstance(error, BooksDisagree) else ()
        extra: dict[str, Any] = {"broker": self._config.broker.kind, "mode": self._config.broker.mode}
        extra |= {"differences": [row_json.difference(one) for one in differences]} if differences else {}
        if any(run.id == self._run and run.outcome is None for run in self._reader.runs()):
            now = self._context.clock.now()
            self._journal.run_finished(self._run, outcome, now, detail=str(error), extra=extra)
            self._tell(RunFinished(self._run, now, outcome, None, str(error)))

    def _report(self) -> None:
        """Write the run's report beside the journal; one that cannot be written is a warning, for it can be made
        again."""
        desk = self._context.desk
        try:
            keep_report(self._reader, desk, self._run, places.desk_reports(desk))
        except DataError as error:
            self._notice("warning", str(error))

    def _notice(self, level: str, text: str) -> None:
        self._tell(Noticed(self._run, self._context.clock.now(), level, text))
