"""`paperdesk --daily`: one headless run for the last completed session; a second one has nothing to do, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import places
from engine.errors import DataError, DeskHalted, TryAgainLater, UsageError
from tui.commands.due import desk_now, desk_of, due_session
from tui.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date

    from engine.messages.events import Event

NOTHING_TO_DO = "nothing to do"


def run(invocation: Invocation, session: str | None, as_json: bool) -> None:
    """Runs the desk for a session, or finds that it has, and prints what came of it."""
    if invocation.run is not None:
        raise UsageError("--run names a run that is there; --daily makes its own: leave one of them out")
    asked = _day(session)
    desk, symbols = desk_of(invocation)
    found, outcome = _finished(invocation, desk, symbols, asked), NOTHING_TO_DO
    if found is None:
        try:
            found, outcome = _run(invocation, asked)
        except DeskHalted:
            from tui.commands.daily_summary import print_differences

            print_differences(invocation, as_json)
            raise
    from tui.commands.daily_summary import print_run

    print_run(invocation, found, outcome, as_json)


def _day(text: str | None) -> date | None:
    from datetime import date

    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--session {text}: no date; write it as YYYY-MM-DD") from None


def _finished(invocation: Invocation, desk: str, symbols: Sequence[str], asked: date | None) -> str | None:
    """The run of the session that is due, where it was done before; None where that has to be looked into, as in the
    journal of an older program. Nobody waits here for a lock: a run that is done stays done."""
    journal = places.desk_journal(desk)
    now = desk_now(invocation) if journal.is_file() else None
    due = None if now is None else due_session(symbols, asked, now)
    if due is None:
        return None
    from engine.journal.reader import JournalReader

    try:
        with JournalReader(journal) as reader:
            return reader.finished_run(due)
    except (DataError, TryAgainLater):
        return None


def _run(invocation: Invocation, asked: date | None) -> tuple[str, str]:
    """The run and its outcome."""
    import asyncio

    from connectors.wiring.telling import run_and_tell
    from engine.app.desk_session import Finished

    done = asyncio.run(run_and_tell(invocation.load().config, asked, publish=heard()))
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
