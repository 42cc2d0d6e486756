"""A run of the desk that nobody watches: whoever wants to hear of it is told how it ended, also where it failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import date

from connectors.wiring.desk import run_desk_day
from connectors.wiring.services import services
from engine import places
from engine.app.desk_runner import Publish
from engine.app.desk_session import Finished, session_to_run
from engine.clock import LiveClock
from engine.config import Config
from engine.domain.run import RunOutcome
from engine.errors import DeskHalted, NotificationFailed, PaperdeskError, UsageError
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.events import Event, Noticed, RunStarted
from engine.ports import Clock, LanguageModel, Notifier
from engine.reports.documents.row_json import Row
from engine.reports.documents.session import failure_document, session_document
from engine.session.desk_context import DeskRunResult


async def run_and_tell(
    config: Config,
    asked: date | None = None,
    publish: Publish = lambda event: None,
    wall: Clock | None = None,
    through: Callable[[LanguageModel], LanguageModel] = lambda model: model,
    known: str | None = None,
) -> DeskRunResult | Finished:
    """`run_desk_day`, and what it came to is told (`told`). Raises as `run_desk_day` does."""

    async def run(hear: Publish) -> DeskRunResult | Finished:
        return await run_desk_day(config, asked, hear, wall, through)

    return await told(config, run, asked, publish, wall, known)


async def told(
    config: Config,
    run: Callable[[Publish], Awaitable[DeskRunResult | Finished]],
    session: date | None = None,
    publish: Publish = lambda event: None,
    wall: Clock | None = None,
    known: str | None = None,
) -> DeskRunResult | Finished:
    """Awaits a `run` of the desk and tells notify.command and notify.webhook what it came to: its document
    (session_document) with `exit_code` and `error`. A run with nothing to do tells nobody, nor does one that was called
    in a way that means nothing, nor a failure in the words that are `known`. Who cannot be told is a warning, published
    and noted in the journal. Raises what the run raises, and ConfigError for whoever cannot be told at all."""
    clock, begun = wall or LiveClock(), list[str]()
    notifiers = services(config).open_notifiers()

    def hear(event: Event) -> None:
        if isinstance(event, RunStarted):
            begun.append(event.run)
        publish(event)

    async def tell(outcome: RunOutcome, code: int, line: str | None) -> None:
        if notifiers and (line is None or line != known):
            said = _document(config, session, begun, outcome, clock) | {"exit_code": code, "error": line}
            await _tell(notifiers, said, config.desk.name, publish, clock)

    try:
        done = await run(hear)
    except UsageError:
        raise
    except PaperdeskError as error:
        outcome = RunOutcome.HALTED if isinstance(error, DeskHalted) else RunOutcome.FAILED
        await tell(outcome, error.exit_code, str(error))
        raise
    except Exception as error:
        await tell(RunOutcome.FAILED, PaperdeskError.exit_code, f"a bug: {type(error).__name__}: {error}")
        raise
    if isinstance(done, DeskRunResult):
        begun.append(done.run)
        await tell(done.outcome, 0, None)
    return done


def _document(config: Config, asked: date | None, begun: Sequence[str], outcome: str, clock: Clock) -> Row:
    """What the journal has of the run that began; of one that did not, what is known without."""
    desk = config.desk.name
    with suppress(PaperdeskError):
        if begun:
            with JournalReader(places.desk_journal(desk)) as reader:
                return session_document(reader, desk, begun[-1], outcome)
    session = asked
    with suppress(PaperdeskError):
        session = session_to_run(services(config), asked, clock.now())[1]
    return failure_document(desk, session, config.broker.mode, config.broker.kind)


async def _tell(notifiers: Sequence[Notifier], said: Row, desk: str, publish: Publish, clock: Clock) -> None:
    for notifier in notifiers:
        try:
            await notifier.notify(said)
        except NotificationFailed as error:
            text, run = f"not told of the run: {error}", said["run"]
            publish(Noticed(run or "", clock.now(), "warning", text))
            if run is not None:
                with suppress(PaperdeskError), JournalWriter(places.desk_journal(desk)) as journal:
                    journal.noted(run, "warning", text, clock.now())
