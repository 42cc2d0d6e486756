"""`paperdesk next` (desk): run the session that is due, or advance the demo or sandbox by one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from engine.app.records.desk_journal import DeskJournal
from engine.domain.run import RunTrigger
from engine.errors import PaperdeskError
from engine.reports.documents.session import session_document
from tui.commands import daily
from tui.settings.invocation import Invocation, command
from tui.text.console import as_json, show, show_json

if TYPE_CHECKING:
    from engine.reports.documents.row_json import Row
    from engine.services import Services

MOST = 250


@command("next", "--run")
@click.argument("count", metavar="[N]", type=click.IntRange(1, MOST), default=1)
def next_command(invocation: Invocation, count: int) -> None:
    """Runs the session that is due; if none is, advances the clock of the demo desk or the sandbox to the end of the
    next session and runs that. With N it does so N times. Same as the key n in the app.

    It stops early if the desk is halted or paused, or if orders wait for approval, as they would expire with the next
    session. Other desks follow the market's clock: use `paperdesk --daily` there.

    \b
    Examples:
      paperdesk next
      paperdesk next 5 --json
    """
    services = replace(invocation.services(), trigger=RunTrigger.TERMINAL)
    invocation.begun_desk()
    sessions: list[Row] = []
    try:
        for number in range(count):
            document, error = decide_next(services)
            sessions.append(document)
            if not as_json():
                show("\n".join([*([""] if number else []), *daily.lines(document)]))
            if error is not None:
                raise error
            if held_back(document):
                break
    finally:
        if as_json() and sessions:
            show_json({"schema": 1, "desk": services.desk, "sessions": sessions})


def decide_next(services: Services) -> tuple[Row, PaperdeskError | None]:
    """Decide the session that is due, or the next one: its document, and the error that its run ended with."""
    from engine.app.desk.context import Finished
    from engine.app.desk.notification import run_next

    done = asyncio.run(run_next(services, daily.on_event()))
    with DeskJournal(services.desk) as journal:
        assert journal.reader is not None  # the run is in it
        outcome = daily.NOTHING_TO_DO if isinstance(done, Finished) else done.outcome
        return session_document(journal.reader, services.desk, done.run, outcome), done.error


def held_back(document: Row) -> bool:
    """True for a desk that goes no further by itself: halted, paused, or with orders that wait for approval."""
    return bool(document["halted"] or document["paused"] or document["waiting"])
