"""`paperdesk sandbox --sessions N`: the desk lives through sessions at the local broker, a `paperdesk --daily` each."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import ConfigError, DeskHalted, MissingData
from tui.commands.daily import NOTHING_TO_DO
from tui.console import show, standard_output
from tui.invocation import Invocation

if TYPE_CHECKING:
    from datetime import datetime

    from connectors.sandbox import SandboxServer

_PROGRAM = "from tui.cli import main; main()"
_HEAD = ("SESSION", "DECIDED", "ORDERS", "FILLS", "VALUE", "CASH", "BOOKS")
_WIDTHS = (10, 19, 6, 5, 11, 11, 6)
_LEFT = 2
"""Columns that align left: the first ones."""


@dataclass(frozen=True, slots=True)
class Played:
    """One session: the document that `paperdesk --daily --json` printed, cash as journal and broker have it now, and
    in what both sides differ."""

    document: Mapping[str, Any]
    journal: Decimal
    broker: Decimal
    differences: Sequence[Mapping[str, Any]]

    def json(self) -> dict[str, Any]:
        """As JSON's own types."""
        from engine.domain.decimal_text import money

        sides = {"journal_cash": money(self.journal), "broker_cash": money(self.broker)}
        return {**self.document, "books": {**sides, "differences": list(self.differences)}}


def refuse_simulated(desk: str) -> None:
    """Raises ConfigError for a desk with books of the simulated market: an account needs a desk of its own."""
    from engine.app.desk_journal import DeskJournal

    with DeskJournal(desk) as journal:
        reader = journal.reader
        simulated = reader is not None and reader.account() is None and bool(reader.equity())
    if simulated:
        raise ConfigError(
            f"the desk {desk} has books of the simulated market: play the sessions with another one (--desk NAME)"
        )


class _RunFailed(Exception):
    """A daily run ended with an error, which it has said itself."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def play(
    invocation: Invocation, server: SandboxServer, environment: Mapping[str, str], sessions: int, as_json: bool
) -> int:
    """Plays so many sessions from where the broker's clock stands, says each, and in the end how the desk stands; the
    exit code. Raises MissingData where the data ends before them."""
    os.environ.update(environment)
    played: list[Played] = []
    if not as_json:
        show(standard_output().bold(_line(_HEAD)))
    try:
        for one in _sessions(invocation, server, sessions):
            played.append(one)
            if not as_json:
                show(_line(_cells(one)))
                sys.stdout.flush()
    except _RunFailed as failed:
        return failed.code
    agree = not any(one.differences for one in played)
    if as_json:
        document = {
            "schema": 1,
            "desk": invocation.load().config.desk.name,
            "environment": dict(environment),
            "agree": agree,
            "sessions": [one.json() for one in played],
        }
        show(json.dumps(document, indent=2, allow_nan=False))
    else:
        for command in ("status", "reconcile"):
            show("")
            sys.stdout.flush()
            subprocess.run(_arguments(invocation, command), check=False)
    return 0 if agree else DeskHalted.exit_code


def how_to_go_on(environment: Mapping[str, str], state: Path | None, folder: str | None) -> str:
    """What a person types to go on where the sessions ended; `state` and `folder` are the flags that were given."""
    import shlex

    from engine import places

    home = os.environ.get(places.HOME)
    kept = {places.HOME: home} if home else {}
    kept |= {name: value for name, value in environment.items() if name.startswith("PAPERDESK_")}
    program = sys.argv[0] if Path(sys.argv[0]).name == "paperdesk" else "paperdesk"
    data = f" --data {shlex.quote(folder)}" if folder else ""
    named = f" --state {shlex.quote(str(state))}" if state else ""
    served = f" --state {shlex.quote(str(state or places.sandbox_books()))}"
    return "\n".join(
        [
            "To go on by hand:",
            *(f"  export {name}={shlex.quote(value)}" for name, value in kept.items()),
            f"  {program} report --session DATE     # also: decisions, equity, why SYMBOL DATE",
            f"  {program} sandbox{data}{named} --sessions 5     # plays the next five",
            f"  {program} sandbox{data}{served}",
            "    # serves the account; set the variables that it prints where you call",
            f"    # {program} --daily, and move its clock: docs/sandbox.md",
        ]
    )


def _sessions(invocation: Invocation, server: SandboxServer, count: int) -> Iterator[Played]:
    from connectors.wiring.sandbox import next_ready, ready_by

    symbols = invocation.services().symbols
    _move(server, ready_by(symbols, server.exchange.now))
    document = _run(invocation)
    if document["outcome"] == NOTHING_TO_DO:
        _move(server, next_ready(symbols, server.exchange.now))
        document = _run(invocation)
    for number in range(count):
        if number:
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


def _compared(invocation: Invocation, document: Mapping[str, Any]) -> Played:
    from engine.app.reconciliation import reconcile
    from engine.reports.documents import row_json

    found = asyncio.run(reconcile(invocation.services())).report
    ours = found.journal.portfolio(found.activity)
    return Played(document, ours.cash, found.account.cash, tuple(row_json.difference(one) for one in found.differences))


def _arguments(invocation: Invocation, *arguments: str) -> list[str]:
    named = (("--config", invocation.config_file), ("--desk", invocation.desk))
    given = [part for flag, value in named if value is not None for part in (flag, value)]
    return [sys.executable, "-c", _PROGRAM, *given, *arguments]


def _cells(one: Played) -> tuple[str, ...]:
    from tui import amounts

    document = one.document
    counted = Counter(made["action"] for made in document["decisions"])
    decided = " ".join(f"{count} {action}" for action, count in sorted(counted.items()))
    value = None if document["value"] is None else Decimal(document["value"])
    return (
        document["session"],
        decided,
        str(len(document["orders"])),
        str(len(document["fills"])),
        amounts.money(value),
        amounts.money(one.journal),
        "DIFFER" if one.differences else "agree",
    )


def _line(cells: Sequence[str]) -> str:
    padded = [
        cell.ljust(width) if column < _LEFT else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True))
    ]
    return "  ".join(padded).rstrip()
