"""Notification of a desk's runs that nobody watches: how they ended, also where they failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from engine.app.desk.context import Finished, desk_context
from engine.app.desk.run_kinds import run_daily
from engine.app.models.models import Through
from engine.app.records.desk_journal import DeskJournal, use_journal
from engine.domain.market import Symbol
from engine.domain.run import RunOutcome
from engine.errors import DeskHalted, NotificationFailed, PaperdeskError, UsageError
from engine.messages.events import Event, Noticed, Publish, RunStarted
from engine.ports import Notifier
from engine.reports.documents.row_json import Row
from engine.reports.documents.session import failure_document, session_document
from engine.services import Services
from engine.session.context import DeskRunResult

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
