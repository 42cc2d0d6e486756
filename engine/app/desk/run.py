"""One run of a desk whose lock is held: market, models, memory and venue are opened, and its end is written down.

Runs of a desk: after a close for all symbols or for one, a cycle within a session, and the submission of approved
orders.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

from engine.account.disagreement import BooksDisagree, EntryAwaited
from engine.agents.ask import QuestionKey
from engine.app.desk.certificate import check_rehearsed
from engine.app.desk.context import DeskContext, Finished, desk_account, desk_context
from engine.app.desk.demo_history import DemoTime, by_desk_time, empty_beginning, is_demo
from engine.app.desk.market import DeskMarket, desk_market, load_market, refuse_frozen
from engine.app.desk.settings import effective_settings, keep_settings
from engine.app.memory import MemoryBinding, desk_memory, remembers
from engine.app.models.models import (
    Gated,
    ModelSet,
    Through,
    build_models,
    configured_briefing,
    keep_briefing,
    known_of,
    label_after,
    price_notes,
)
from engine.app.records.desk_journal import DeskJournal, use_journal
from engine.app.records.spending import day_limit
from engine.cycle.cycle import INDICATOR_ROWS, Cycle
from engine.domain.market import Symbol, is_crypto
from engine.domain.model_call import AnswerRecord, UnansweredCall
from engine.domain.order import DAILY, ZERO
from engine.domain.run import RunKind, RunOutcome
from engine.errors import (
    ConfigError,
    DeskHalted,
    MissingData,
    NetworkError,
    PaperdeskError,
    StaleData,
    TryAgainLater,
    gravest,
)
from engine.execution.controls import CyclePaused, approvals, halted, not_sent, paused
from engine.execution.frozen_symbols import frozen_error, reasons
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.lab.backtest import unread_series
from engine.market.live_prices import LivePrices
from engine.messages.events import Event, Noticed, Publish, RunFinished
from engine.ports import Clock, LiveFeed
from engine.preset import Preset, briefed, load_preset
from engine.reports.documents import row_json
from engine.services import Services
from engine.session.context import DeskRun, DeskRunResult, Quotes, about_run, run_id
from engine.session.cost_meter import VECTORS, CostMeter
from engine.session.run import run_after_close, run_within
from memory.lancedb_store import load_library


async def run_desk(
    context: DeskContext,
    publish: Publish,
    through: Through,
    *,
    number: int = DAILY,
    quotes: Quotes | None = None,
) -> DeskRunResult:
    """The run after the close, of all symbols or of the context's one, or a cycle within the session at the prices of
    `quotes`, of a desk whose lock is held. Raises as engine.app.desk.run does."""
    limit = day_limit(context.services, context.journal.reader, context.clock.now())
    services, config = replace(context.services, limit=limit), context.services.config
    context = replace(context, services=services)
    run = run_id(context.desk, context.session, number, only=context.only)
    early: list[Event] = []  # before there is a journal to write

    def warn(event: Event) -> None:
        early.append(event)
        publish(event)

    briefing = configured_briefing(services, services.data, services.symbols)
    preset = briefed(load_preset(config.desk.preset), briefing)
    if context.only is not None and preset.decision == "portfolio":
        raise ConfigError(f"{preset.name} decides on the whole portfolio in one question: no symbol is decided alone")
    coins = [symbol for symbol in services.symbols if is_crypto(symbol)]
    if services.broker is not None and preset.sizing.allow_short and coins:
        raise ConfigError(
            f"{preset.name} sells short (sizing.allow_short), and no broker lets coins be sold short: take "
            f"{', '.join(coins)} off desk.symbols, or set it to false"
        )
    check_rehearsed(services, preset)
    models = build_models(services, preset)
    for note in price_notes(services, preset):
        warn(Noticed(run, context.clock.now(), "warning", note))
    market, late = await load_market(context, run, warn)
    refuse_frozen(context, (*late, *market.faults))
    journal, reader = context.journal.writer, context.journal.reader
    assert reader is not None  # the writer has created the journal
    keep_briefing(journal, run, briefing)
    keep_settings(journal, run, effective_settings(context, briefing, preset, market))
    traded = desk_market(context, run, market, late, warn)
    for event in early:
        journal.event(event)
    answered = [call.model for call in reader.calls(run) if not call.kind]
    specs = ", ".join(dict.fromkeys((*answered, *models.spec.split(", "))))
    before = reader.find_run(run)
    playing = _Run(
        context=context,
        run=run,
        number=number,
        preset=preset,
        models=models,
        traded=traded,
        publish=publish,
        meter=CostMeter(specs, *known_of(services, specs), services.clock),
        label=label_after(before.label if before and answered else "", models.label),
    )
    return await playing.play(through, quotes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run, prepared.

    context: the desk and the session.
    run: id of the run.
    number: the cycle's number, DAILY after the close.
    preset: the desk's preset with the configured briefing.
    models: the models that answer the agents.
    traded: the market and the journal.
    publish: hears every event.
    meter: counts calls and cost.
    label: every model that decides the run, introduced.
    """

    context: DeskContext
    run: str
    number: int
    preset: Preset
    models: ModelSet
    traded: DeskMarket
    publish: Publish
    meter: CostMeter
    label: str

    async def play(self, through: Through, quotes: Quotes | None) -> DeskRunResult:
        """Run the session, and write down how it ended."""
        context, preset, traded = self.context, self.preset, self.traded
        reader, market = traded.reader, traded.market
        recorder = traded.recorder(preset.windows.chart + INDICATOR_ROWS)
        venue = traded.venue(recorder)

        def unanswered(asked: QuestionKey, call: UnansweredCall) -> None:
            recorder.unanswered(asked, call, self.number)
            self.meter.unanswered(asked, call)

        asker = self.models.publishing_asker(
            self.run,
            context.clock,
            self._count,
            on_answered=self._record,
            on_text=self.publish,
            on_unanswered=unanswered,
            # The innermost gate: who waits for the end of a pause has waited before it.
            through=lambda model: through(Gated(model, self._end_at_a_pause)),
        )
        first_run = reader.latest_run() is None
        self._count_earlier()
        for note in unread_series(preset, context.services.data, market) if first_run else ():
            self._notice("info", note)
        if remembers(preset):
            await asyncio.to_thread(load_library)
        warn = partial(self._notice, "warning")
        # A broker's fees are known once they are charged: the journal has them, no rate foretells them.
        costs = traded.rules()[0].cost_rate if context.account is None else ZERO
        binding = MemoryBinding(context.desk, reader, self._record, self.run, context.clock.now)
        try:
            with desk_memory(
                context.services, preset, context.calendar, warn, self.meter.add_vectors, writing=binding.writing
            ) as memory:
                desk = DeskRun(
                    run=self.run,
                    desk=context.desk,
                    session=context.session,
                    number=self.number,
                    only=context.only,
                    symbols=context.symbols,
                    market=market,
                    calendar=context.calendar,
                    cycle=Cycle(preset, asker, market.calendars, self._record, memory, costs),
                    name=preset.name,
                    label=self.label,
                    meter=self.meter,
                    journal=traded.journal,
                    reader=reader,
                    recorder=recorder,
                    venue=venue,
                    clock=context.clock,
                    publish=self._record,
                    pause=asyncio.sleep,
                    mode=context.services.config.broker.mode,
                    broker=context.services.config.broker.kind,
                    trigger=context.services.trigger,
                    frozen=traded.frozen,
                )
                done = await (run_after_close(desk) if quotes is None else run_within(desk, quotes))
            return done
        except PaperdeskError as error:
            self._fail(error)
            to_mend = reasons(traded.frozen)
            if to_mend and (counts := gravest(error, frozen_error(to_mend))) is not error:
                raise counts from error
            raise
        finally:
            await self.models.aclose()

    async def _end_at_a_pause(self) -> None:
        """Raise CyclePaused where an operator has paused the desk."""
        if (pause := paused(self.traded.reader)) is not None:
            raise CyclePaused(pause)

    def _record(self, event: Event) -> None:
        """Write an event down and publish it."""
        self.traded.journal.event(event)
        self.publish(event)

    def _count_earlier(self) -> None:
        """Count what the run had used before it was killed, or waited."""
        self.meter.restore(self.traded.reader.calls(self.run))
        before = self.traded.reader.find_run(self.run)
        if before is not None and before.model is not None and VECTORS in before.model.agents:
            self.meter.add_vectors(before.model.agents[VECTORS])

    def _count(self, answer: AnswerRecord) -> None:
        if self.traded.journal.answer(answer.in_run(self.run, self.number, self.context.clock.now())):
            self.meter.count(answer)

    def _fail(self, error: PaperdeskError) -> None:
        """Write down that the run failed, or was halted because broker and journal disagree, where it had begun; a
        session that was skipped stays skipped."""
        services = self.context.services
        broker = services.config.broker
        outcome = RunOutcome.HALTED if isinstance(error, DeskHalted) else RunOutcome.FAILED
        extra: dict[str, Any] = {**about_run(broker.kind, broker.mode, self.label, services.trigger)}
        extra["exit_code"] = error.exit_code
        if isinstance(error, BooksDisagree | EntryAwaited):
            extra["differences"] = [row_json.difference(one) for one in error.differences]
            extra["awaited"] = isinstance(error, EntryAwaited)
        begun = self.traded.reader.find_run(self.run)
        if begun is not None and begun.outcome is None:
            extra |= {name: begun.extra[name] for name in ("as_of", "exchange_close") if name in begun.extra}
            now = self.context.clock.now()
            self.traded.journal.run_finished(
                self.run, outcome, now, detail=str(error), model=self.meter.use, extra=extra
            )
            self._record(RunFinished(self.run, now, outcome, None, str(error)))

    def _notice(self, level: str, text: str) -> None:
        self._record(Noticed(self.run, self.context.clock.now(), level, text))


NEEDS_PRICES = "an intraday cycle needs live prices, which the desk's broker does not provide"


async def run_daily(
    services: Services,
    requested: date | None = None,
    publish: Publish = lambda event: None,
    *,
    through: Through = lambda model: model,
    journal: DeskJournal | None = None,
    due: date | None = None,
    only: Symbol | None = None,
) -> DeskRunResult | Finished:
    """Run the configured desk for a session. A command that has opened the journal, and seen that the session `due` is
    not finished, passes both on; so does one that has moved a demo desk's clock there.

    With `only` a run of its own decides one symbol for the session; the daily run leaves out what such runs have
    decided.

    Raises UsageError, DataError, ConfigError, NetworkError, TryAgainLater, CredentialsRefused and DeskHalted; what was
    done before stays done.
    """
    broker = services.broker
    with use_journal(services.desk, journal) as opened:
        if broker is None:
            context = desk_context(by_desk_time(services), opened, requested, due=due, only=only)
            if is_demo(services):  # its events stand among those of the session
                clock = DemoTime(services, context.session)
                context = replace(context, services=replace(services, clock=clock), clock=clock)
            with opened.locked():
                if opened.reader is None and (note := empty_beginning(services)):
                    publish(Noticed("", context.clock.now(), "warning", note))
                return context.finished() or await _run_session(context, publish, through)
        if due is None and not services.goes_by_broker:
            done = desk_context(services, opened, requested, only=only).finished()
            if done is not None:
                return done  # without asking the broker
        # The lock comes first: a broker that does not answer must not keep a second run from seeing the first.
        with opened.locked():
            async with desk_account(services, broker) as account:
                context = desk_context(services, opened, requested, account=account, only=only)
                return context.finished() or await _run_session(context, publish, through)


async def _run_session(context: DeskContext, publish: Publish, through: Through) -> DeskRunResult:
    """Run the desk after the close of its session. Runs of one symbol that have decided and not come to their end, as
    killed ones or those whose orders wait, go on first: their orders are theirs to send."""
    reader = context.journal.reader
    runs = () if reader is None else reader.runs(RunKind.SYMBOL)
    for run in runs:
        if run.session != context.session or run.outcome is RunOutcome.DONE or run.symbols[0] == context.only:
            continue
        if run.symbols[0] in context.symbols and reader is not None and reader.decisions(run.id):
            await run_desk(replace(context, only=run.symbols[0]), publish, through)
    return await run_desk(context, publish, through)


async def run_intraday(
    services: Services,
    session: date,
    number: int,
    publish: Publish = lambda event: None,
    *,
    through: Through = lambda model: model,
    prices: LivePrices | None = None,
    journal: DeskJournal | None = None,
) -> DeskRunResult | Finished:
    """Run cycle `number` within the session after `session`, whose own cycle has to be decided. Prices are asked for;
    where that fails, those of `prices` count. Raises as `run_daily` does, StaleData where that session is not open."""
    if services.broker is None:
        raise ConfigError(NEEDS_PRICES)
    async with desk_account(services, services.broker) as account:
        feed = services.broker.open_feed(account.clock)
        if feed is None:
            raise ConfigError(NEEDS_PRICES)
        identity = run_id(services.desk, session, number)
        quotes = _Quotes(feed, prices or LivePrices(), account.clock, identity, publish)
        with use_journal(services.desk, journal) as opened:
            context = desk_context(services, opened, account=account)
            if context.session != session:
                raise StaleData(f"the session after {session} is over: no cycle within it")
            with opened.locked():
                if _is_done(context, identity):
                    return Finished(identity, session)
                return await run_desk(context, publish, through, number=number, quotes=quotes.ask)


@dataclass(frozen=True, slots=True)
class _Quotes:
    """The prices of the moment: those that are asked for, or the last ones that the feed has sent."""

    feed: LiveFeed
    prices: LivePrices
    clock: Clock
    run: str
    publish: Publish

    async def ask(self, symbols: Sequence[Symbol]) -> Mapping[Symbol, Decimal]:
        """The latest price of each symbol that has one."""
        try:
            for one in await self.feed.latest(symbols):
                self.prices.update(one)
        except (NetworkError, TryAgainLater, MissingData) as error:
            text = f"prices unavailable, using the feed's last ones: {error}"
            self.publish(Noticed(self.run, self.clock.now(), "warning", text))
        return self.prices.prices(symbols, self.clock.now())


def _is_done(context: DeskContext, run: str) -> bool:
    reader = context.journal.reader
    found = None if reader is None else reader.find_run(run)
    return found is not None and found.outcome is RunOutcome.DONE


def is_decided(reader: JournalReader | None, desk: str, session: date) -> bool:
    """True where the desk has decided on a session's close, also where its daily run found nothing left to decide."""
    return reader is not None and bool(reader.finished_run(session) or reader.decisions(run_id(desk, session)))


def interrupted_cycle(reader: JournalReader | None, session: date) -> int | None:
    """The number of the session's latest cycle, where that was killed before it came to its end."""
    runs = () if reader is None else [run for run in reader.runs(RunKind.INTRADAY) if run.session == session]
    return runs[-1].cycle if runs and runs[-1].outcome is None else None


async def submit_approved(services: Services, publish: Publish = lambda event: None) -> bool:
    """Go on with the runs of the desk's latest session that have orders which were approved or vetoed and not sent:
    reconcile, send what is approved, end what is vetoed or too late; nothing is decided anew. False where there is
    nothing to do, or the desk is halted. Raises as `run_daily` does, TryAgainLater while a run is at work."""
    runs = _answered_runs(services.desk)
    for run in runs:
        if run.kind in (RunKind.DAILY, RunKind.SYMBOL):
            only = run.symbols[0] if run.kind is RunKind.SYMBOL else None
            await run_daily(services, run.session, publish, only=only)
        elif run.session is not None:
            await run_intraday(services, run.session, run.cycle, publish)
    return bool(runs)


def _answered_runs(desk: str) -> Sequence[RunEntry]:
    """Runs of the latest session with waiting orders that were approved or vetoed."""
    with DeskJournal(desk) as journal:
        reader = journal.reader
        if reader is None or halted(reader) is not None:
            return ()
        after_close = (run for run in reader.runs() if run.kind in (RunKind.DAILY, RunKind.SYMBOL))
        latest = max((run.session for run in after_close if run.session is not None), default=None)
        waiting = not_sent(reader)
        answers = approvals(reader, [entry.order.id for entry in waiting])
        answered = {entry.run for entry in waiting if entry.order.id in answers}
        ours = (run for run in reader.runs() if run.kind is not RunKind.ORDER)
        return [run for run in ours if run.id in answered and run.session == latest]
