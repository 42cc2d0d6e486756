"""Notification of a desk's runs that nobody watches: how they ended, also where they failed.

A cycle that an open desk or a watch asks for, as a value that a process of its own can be given.

The next session of a desk whose clock is moved by hand: the demo desk, or a desk at a sandbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import partial

from engine.app.desk.context import Finished, desk_context
from engine.app.desk.demo_history import DECIDED, due_session, is_demo, session_reached
from engine.app.desk.run import run_daily, run_intraday
from engine.app.models.models import PAUSE_SECONDS, Gate, Gated, Through
from engine.app.records.desk_journal import DeskJournal, use_journal
from engine.app.records.own_process import in_own_process
from engine.clock import SyncedClock
from engine.domain.market import Symbol
from engine.domain.run import RunKind, RunOutcome, RunTrigger
from engine.errors import (
    ConfigError,
    DeskHalted,
    NetworkError,
    NotificationFailed,
    PaperdeskError,
    TryAgainLater,
    UsageError,
)
from engine.execution.controls import halted, pause_of, paused
from engine.market.live_prices import LivePrices
from engine.market.trading_hours import completed_at, session_after, session_to_decide
from engine.messages.events import Event, Noticed, Publish, RunStarted
from engine.ports import LanguageModel, Notifier
from engine.reports.documents.row_json import Row
from engine.reports.documents.session import failure_document, session_document
from engine.services import Services
from engine.session.context import DeskRunResult
from engine.settings import places

Run = Callable[[Publish, DeskJournal], Awaitable[DeskRunResult | Finished]]
"""A run of the desk, given the listener to its events and its journal."""


async def run_and_notify(
    services: Services,
    requested: date | None = None,
    publish: Publish = lambda event: None,
    *,
    through: Through = lambda model: model,
    last_error: str | None = None,
    journal: DeskJournal | None = None,
    due: date | None = None,
    only: Symbol | None = None,
) -> DeskRunResult | Finished:
    """`run_daily`, followed by a notification (`notify_of`). Raises as `run_daily` does."""

    async def run(on_event: Publish, opened: DeskJournal) -> DeskRunResult | Finished:
        return await run_daily(services, requested, on_event, through=through, journal=opened, due=due, only=only)

    return await notify_of(services, run, publish, session=due or requested, last_error=last_error, journal=journal)


async def notify_of(
    services: Services,
    run: Run,
    publish: Publish = lambda event: None,
    *,
    session: date | None = None,
    last_error: str | None = None,
    journal: DeskJournal | None = None,
) -> DeskRunResult | Finished:
    """Await a `run` of the desk and send its document (session_document) with `exit_code` and `error` to notify.command
    and notify.webhook. A run whose model decided nothing usable is no error, and tells it there.

    The address notify.ping is called after every run that finished, with something to do or not.
    Nobody is notified of a run with nothing to do, of one that was called in a way that means nothing, or of the
    error that was the last one already. A notification that fails is a warning, published and noted in the journal.
    Raises what the run raises, and ConfigError for a receiver that cannot be notified at all.
    """
    with use_journal(services.desk, journal) as opened:
        notification = _Notification(
            services=services,
            notifiers=services.open_notifiers(),
            address=services.open_ping(),
            journal=opened,
            session=session,
            publish=publish,
        )
        try:
            done = await run(notification.on_event, opened)
        except UsageError:
            raise
        except Exception as error:
            code, text = PaperdeskError.exit_code, f"a bug: {type(error).__name__}: {error}"
            if isinstance(error, PaperdeskError):
                code, text = error.exit_code, str(error)
            if text != last_error:
                outcome = RunOutcome.HALTED if isinstance(error, DeskHalted) else RunOutcome.FAILED
                await notification.send(outcome, code, text)
            raise
        if isinstance(done, DeskRunResult):
            notification.run = done.run
            ended = done.error
            said = str(ended) if ended else done.undecided or None
            await notification.send(done.outcome, ended.exit_code if ended else 0, said)
        await notification.ping()
        return done


@dataclass(slots=True, kw_only=True)
class _Notification:
    """The notification of one run.

    services: the configured desk.
    notifiers: receivers.
    address: called after a finished run; None for none.
    journal: the desk's journal.
    session: the session that the run is for, where it is known before.
    publish: hears every event.
    run: id of the run once it has begun.
    """

    services: Services
    notifiers: Sequence[Notifier]
    address: Notifier | None
    journal: DeskJournal
    session: date | None
    publish: Publish
    run: str | None = None

    def on_event(self, event: Event) -> None:
        """Publish an event, and take the run's id from its first."""
        if isinstance(event, RunStarted):
            self.run = event.run
        self.publish(event)

    async def send(self, outcome: RunOutcome, exit_code: int, error: str | None) -> None:
        """Notify everybody."""
        if not self.notifiers:
            return
        document = self._document(outcome) | {"exit_code": exit_code, "error": error}
        for notifier in self.notifiers:
            await self._notify(notifier, document)

    async def ping(self) -> None:
        """Call the address that expects every finished run."""
        if self.address is not None:
            await self._notify(self.address, {"run": self.run})

    async def _notify(self, notifier: Notifier, document: Row) -> None:
        try:
            await notifier.notify(document)
        except NotificationFailed as failure:
            self._warn(document["run"], f"not notified of the run: {failure}")

    def _document(self, outcome: RunOutcome) -> Row:
        """The journal's document of the run that began; of one that did not, what is known without."""
        desk, config, session = self.services.desk, self.services.config, self.session
        with suppress(PaperdeskError):
            if self.run is not None and self.journal.reader is not None:
                return session_document(self.journal.reader, desk, self.run, outcome)
        with suppress(PaperdeskError):
            session = desk_context(self.services, self.journal, session).session
        return failure_document(desk, session, config.broker.mode, config.broker.kind)

    def _warn(self, run: str | None, text: str) -> None:
        now = self.services.clock.now()
        self.publish(Noticed(run or "", now, "warning", text))
        if run is not None:
            with suppress(PaperdeskError):
                self.journal.writer.noted(run, "warning", text, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRequest:
    """A cycle that is asked for: for the last completed session, or within the one after it.

    only: the one symbol that is decided; None for all of them.
    session: the one to which a demo desk's clock was moved; None where the clock says it.
    notify: True where its end is notified to whoever is configured.
    last_error: the error that was notified last; None where there was none.
    within: the session that a cycle within the following one rests on, and the cycle's number; None after a close.
    prices: the last prices of the feed, for a cycle within a session.
    """

    only: Symbol | None = None
    session: date | None = None
    notify: bool = False
    last_error: str | None = None
    within: tuple[date, int] | None = None
    prices: LivePrices = field(default_factory=LivePrices)


CycleRunner = Callable[[Services, CycleRequest, Publish, Gate], Awaitable[DeskRunResult | Finished]]
"""A way to run a cycle; the gate is awaited before every question to a model. Raises as the runs of run_kinds do."""


async def run_here(services: Services, request: CycleRequest, publish: Publish, gate: Gate) -> DeskRunResult | Finished:
    """Run a cycle on the caller's loop. Raises as engine.app.desk.run does."""

    def through(model: LanguageModel) -> LanguageModel:
        return Gated(model, gate)

    if request.within is not None:
        session, number = request.within

        async def run(on_event: Publish, journal: DeskJournal) -> DeskRunResult | Finished:
            return await run_intraday(
                services, session, number, on_event, through=through, prices=request.prices, journal=journal
            )

        return await notify_of(services, run, publish, session=session)
    if request.notify:
        return await run_and_notify(services, publish=publish, through=through, last_error=request.last_error)
    return await run_daily(services, publish=publish, through=through, due=request.session, only=request.only)


def unless_changed(
    run_cycle: CycleRunner, changed: Callable[[], str], error: type[PaperdeskError] = ConfigError
) -> CycleRunner:
    """A way to run a cycle that raises an `error` where the configuration has `changed` since the desk was opened, with
    that text: nobody would expect it to go by the old one. It is notified like a run that failed."""

    async def run(services: Services, request: CycleRequest, publish: Publish, gate: Gate) -> DeskRunResult | Finished:
        if not (text := changed()):
            return await run_cycle(services, request, publish, gate)

        async def refuse(on_event: Publish, journal: DeskJournal) -> DeskRunResult | Finished:
            raise error(text)

        if not request.notify:
            raise error(text)
        return await notify_of(services, refuse, publish, last_error=request.last_error)

    return run


@dataclass(frozen=True, slots=True)
class CycleProcess:
    """A way to run a cycle in a process of its own, where nothing that it computes keeps a screen waiting.

    open_services: gives the configured desk there; can be pickled.
    """

    open_services: Callable[[], Services]

    async def __call__(
        self, services: Services, request: CycleRequest, publish: Publish, gate: Gate
    ) -> DeskRunResult | Finished:
        """Run a cycle by the clock of `services`. The process waits at pauses by itself: `gate` is this process's, and
        is not asked. Raises as `run_here` and `in_own_process` do."""
        work = partial(_run_there, self.open_services, services.clock.now(), services.trigger, request)
        return await in_own_process(work, publish, "a cycle")


async def _run_there(
    open_services: Callable[[], Services],
    now: datetime,
    trigger: RunTrigger | None,
    request: CycleRequest,
    publish: Publish,
) -> DeskRunResult | Finished:
    opened = open_services()
    clock = SyncedClock(opened.clock)
    clock.sync(now)
    services = replace(opened, clock=clock, trigger=trigger)

    async def gate() -> None:
        while pause_of(places.desk_journal(services.desk)) is not None:
            await asyncio.sleep(PAUSE_SECONDS)

    return await run_here(services, request, publish, gate)


NO_CLOCK_TO_MOVE = "only the demo desk and a desk at the sandbox can be advanced by a session: this desk \
follows its market's clock"
READY = timedelta(minutes=5)
"""Time from the end of a session until a desk at a sandbox can decide it."""


async def run_next(services: Services, publish: Publish) -> DeskRunResult | Finished:
    """Decide the session that is due; where none is, move the clock on by a session first, but not that of a desk which
    is halted or paused. Raises UsageError for a desk whose clock nobody moves, TryAgainLater where the sandbox does not
    answer, and as `run_daily` does."""
    if not is_demo(services):
        move_broker_on(services)
        return await run_and_notify(services, publish=publish)
    with DeskJournal(services.desk) as journal:
        reader = journal.reader
        session = session_reached(reader)
        if reader is not None and due_session(reader) is None and not (halted(reader) or paused(reader)):
            session = session_after(services.desk_calendar(services.symbols), session)
        return await run_and_notify(services, publish=publish, journal=journal, due=session)


def move_broker_on(services: Services) -> None:
    """Move the clock of a sandbox to the end of its next session, unless it stands at one that the desk has not
    decided, or the desk is halted or paused. Raises as `run_next` does."""
    service = services.broker
    if service is None or not services.goes_by_broker or not service.settings.is_local:
        raise UsageError(NO_CLOCK_TO_MOVE)
    try:
        now = service.now()
    except NetworkError:
        raise TryAgainLater("the sandbox does not answer: start it with paperdesk sandbox") from None
    calendar, symbols = services.desk_calendar(services.symbols), services.symbols
    session = session_to_decide(calendar, symbols, None, now)
    with DeskJournal(services.desk) as journal:
        reader = journal.reader
        if reader is None or halted(reader) or paused(reader):
            return
        if reader.last_session([RunKind.DAILY], DECIDED) == session:
            service.advance(completed_at(calendar, symbols, session_after(calendar, session)) + READY)
