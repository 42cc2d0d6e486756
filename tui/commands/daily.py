"""`paperdesk --daily`: one headless run for the last completed session; a second one has nothing to do, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.app.desk_journal import DeskJournal
from engine.errors import DataError, DeskHalted, TryAgainLater, UsageError
from tui.commands.due import desk_time, due_session, symbols_of
from tui.invocation import DEFAULT_DESK, Invocation

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from engine.messages.events import Event
    from engine.services import Services

NOTHING_TO_DO = "nothing to do"


def run(invocation: Invocation, session: str | None, as_json: bool) -> None:
    """Runs the desk for a session, or finds that it has, and prints what came of it."""
    if invocation.run is not None:
        raise UsageError("--run names a run that is there; --daily makes its own: leave one of them out")
    requested = _day(session)
    # Without a configuration the defaults hold; reading and checking them takes longer than seeing a finished run.
    services = invocation.services() if invocation.configured else None
    with DeskJournal(DEFAULT_DESK if services is None else services.desk) as journal:
        due = _due(journal, services, requested)
        found, outcome = None if due is None else _finished(journal, due), NOTHING_TO_DO
        if found is None:
            try:
                found, outcome = _run(services or invocation.services(), journal, requested, due)
            except DeskHalted:
                from tui.commands.daily_summary import print_differences

                print_differences(journal, as_json)
                raise
        from tui.commands.daily_summary import print_run

        print_run(journal, found, outcome, as_json)


def _day(text: str | None) -> date | None:
    from datetime import date

    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--session {text}: no date; write it as YYYY-MM-DD") from None


def _due(journal: DeskJournal, services: Services | None, requested: date | None) -> date | None:
    """The session that is due; None where that is not quickly known, or the desk has no journal yet."""
    if not journal.path.is_file():
        return None
    now = desk_time(services)
    return None if now is None else due_session(symbols_of(services), requested, now)


def _finished(journal: DeskJournal, session: date) -> str | None:
    """The run of a session that was done before; None where that has to be looked into. Nobody waits here for a lock:
    a run that is done stays done."""
    try:
        reader = journal.reader
        return None if reader is None else reader.finished_run(session)
    except (DataError, TryAgainLater):
        return None


def _run(services: Services, journal: DeskJournal, requested: date | None, due: date | None) -> tuple[str, str]:
    """The run and its outcome."""
    import asyncio

    from engine.app.desk_context import Finished
    from engine.app.notification import run_and_notify

    done = asyncio.run(run_and_notify(services, requested, publish=heard(), journal=journal, due=due))
    return done.run, NOTHING_TO_DO if isinstance(done, Finished) else done.outcome


def heard() -> Callable[[Event], None]:
    """Says on standard error what a person should know, and, where somebody looks, who is at work on what, on a line
    that the next one replaces."""
    import sys

    import click

    from engine.messages.events import Noticed, RunFinished, StepStarted
    from tui.plain_text import one_line

    clear = "\r\x1b[K" if sys.stderr.isatty() else ""

    def hear(event: Event) -> None:
        if isinstance(event, Noticed) and event.level != "info":
            click.echo(f"{clear}paperdesk: {event.level}: {one_line(event.text)}", err=True)
        elif isinstance(event, StepStarted) and clear:
            click.echo(f"{clear}{event.symbol}: {event.step} ...", nl=False, err=True)
        elif isinstance(event, RunFinished) and clear:
            click.echo(clear, nl=False, err=True)

    return hear
