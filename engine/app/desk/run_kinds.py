"""Runs of a desk: after a close for all symbols or for one, a cycle within a session, and the submission of approved
orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from engine.app.desk.context import DeskContext, Finished, desk_account, desk_context
from engine.app.desk.demo_history import empty_beginning, is_demo
from engine.app.desk.demo_time import DemoTime, by_desk_time
from engine.app.desk.run import run_desk
from engine.app.models.models import Through
from engine.app.records.desk_journal import DeskJournal, use_journal
from engine.domain.market import Symbol
from engine.domain.run import RunKind, RunOutcome
from engine.errors import ConfigError, MissingData, NetworkError, StaleData, TryAgainLater
from engine.execution.controls import approvals, halted, not_sent
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.market.live_prices import LivePrices
from engine.messages.events import Noticed, Publish
from engine.ports import Clock, LiveFeed
from engine.services import Services
from engine.session.context import DeskRunResult, run_id

NEEDS_PRICES = "a cycle within the session needs live prices, and the desk's broker gives none"


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
            text = f"prices cannot be asked for, the last ones that the feed has sent count: {error}"
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
