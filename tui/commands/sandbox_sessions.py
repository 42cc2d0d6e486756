"""`paperdesk sandbox --sessions N`: the desk lives through sessions at the local broker, a `paperdesk --daily` each."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from engine.app.records.desk_journal import DeskJournal
from engine.errors import ConfigError, DeskHalted, MissingData
from engine.reports import amounts
from engine.reports.documents.account import books_document
from tui.commands.daily import NOTHING_TO_DO
from tui.settings.invocation import Invocation
from tui.text.console import as_json, show, show_json, standard_output

if TYPE_CHECKING:
    from datetime import datetime

    from connectors.sandbox import SandboxServer

_PROGRAM = "from tui.cli import main; main()"
_HEAD = ("SESSION", "DECIDED", "ORDERS", "FILLS", "VALUE", "CASH", "BOOKS")
_LINE = "{:<10}  {:<19}  {:>6}  {:>5}  {:>11}  {:>11}  {:>6}"


def refuse_simulated(desk: str) -> None:
    """Raise ConfigError for a desk with books of the simulated market: an account needs a desk of its own."""
    with DeskJournal(desk) as journal:
        reader = journal.reader
        simulated = reader is not None and reader.account() is None and bool(reader.equity())
    if simulated:
        raise ConfigError(
            f"the desk {desk} has books of the simulated market: play the sessions with another one (--desk NAME)"
        )


class _RunFailed(Exception):
    """A daily run ended with an exit code; the error was printed by the run itself."""


def play(invocation: Invocation, server: SandboxServer, environment: Mapping[str, str], sessions: int) -> int:
    """Play so many sessions from the time of the broker's clock on, print each, and in the end the state of the desk;
    the exit code. Raises MissingData where the data ends before them."""
    os.environ.update(environment)
    played: list[Mapping[str, Any]] = []
    if not as_json():
        show(standard_output().bold(_LINE.format(*_HEAD)))
    try:
        for one in _sessions(invocation, server, sessions):
            played.append(one)
            if not as_json():
                show(_LINE.format(*_cells(one)).rstrip())
                sys.stdout.flush()
    except _RunFailed as failed:
        return int(failed.args[0])
    agree = not any(one["books"]["differences"] for one in played)
    if as_json():
        desk = invocation.load().config.desk.name
        head = {"schema": 1, "desk": desk, "environment": dict(environment), "agree": agree}
        show_json({**head, "sessions": played})
    else:
        for command in ("status", "reconcile"):
            show("")
            sys.stdout.flush()
            subprocess.run(_arguments(invocation, command), check=False)
    return 0 if agree else DeskHalted.exit_code


def _sessions(invocation: Invocation, server: SandboxServer, count: int) -> Iterator[Mapping[str, Any]]:
    """The document of each session's run, with both sides of the account after it."""
    from connectors.wiring.sandbox import next_ready, ready_by

    symbols = invocation.services().symbols
    _move(server, ready_by(symbols, server.exchange.now))
    document = _run(invocation)
    for number in range(count):
        if number or document["outcome"] == NOTHING_TO_DO:
            _move(server, next_ready(symbols, server.exchange.now))
            document = _run(invocation)
        yield _compared(invocation, document)


def _move(server: SandboxServer, to: datetime) -> None:
    from connectors.sandbox import ApiError

    try:
        if to > server.exchange.now:
            server.advance(to)
    except ApiError as refusal:
        raise MissingData(f"the sandbox cannot go on to {to:%Y-%m-%d %H:%M} UTC: {refusal}") from None


def _run(invocation: Invocation) -> dict[str, Any]:
    """`paperdesk --daily --json` as cron calls it: a process of its own."""
    done = subprocess.run(_arguments(invocation, "--daily", "--json"), stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise _RunFailed(done.returncode)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _compared(invocation: Invocation, document: Mapping[str, Any]) -> Mapping[str, Any]:
    from engine.app.desk.reconciliation import reconcile

    return {**document, "books": books_document(asyncio.run(reconcile(invocation.services())).report)}


def _arguments(invocation: Invocation, *arguments: str) -> list[str]:
    named = (("--config", invocation.config_file), ("--desk", invocation.desk))
    given = [part for flag, value in named if value is not None for part in (flag, value)]
    return [sys.executable, "-c", _PROGRAM, *given, *arguments]


def _cells(document: Mapping[str, Any]) -> tuple[str, ...]:
    actions = Counter(made["action"] for made in document["decisions"])
    books = document["books"]
    return (
        document["session"],
        " ".join(f"{count} {action}" for action, count in sorted(actions.items())),
        str(len(document["orders"])),
        str(len(document["fills"])),
        amounts.money(amounts.number(document["value"])),
        amounts.money(Decimal(books["journal_cash"])),
        "DIFFER" if books["differences"] else "agree",
    )
