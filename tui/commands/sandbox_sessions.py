"""`paperdesk sandbox --sessions N`: the desk lives through sessions at the local broker, as `paperdesk next` does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from engine.app.records.desk_journal import DeskJournal
from engine.domain.run import RunTrigger
from engine.errors import ConfigError, DeskHalted
from engine.program_files import own_command
from engine.reports import amounts
from engine.reports.documents.account import books_document
from tui.commands.next import decide_next, held_back
from tui.settings.invocation import Invocation
from tui.text.console import as_json, show, show_json, standard_output

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


def play(invocation: Invocation, environment: Mapping[str, str], sessions: int) -> int:
    """Play so many sessions as `paperdesk next` does, print each, and in the end the state of the desk; the exit code.
    Ends early where the desk is halted or paused, or orders wait. Raises what a run of the desk raises."""
    from engine.app.desk.reconciliation import reconcile

    os.environ.update(environment)
    services = replace(invocation.services(), trigger=RunTrigger.CRON)
    played: list[Mapping[str, Any]] = []
    if not as_json():
        show(standard_output().bold(_LINE.format(*_HEAD)))
    for _ in range(sessions):
        document, error = decide_next(services)
        if error is not None:
            raise error
        played.append({**document, "books": books_document(asyncio.run(reconcile(services)).report)})
        if not as_json():
            show(_LINE.format(*_cells(played[-1])).rstrip())
            sys.stdout.flush()
        if held_back(document):
            break
    agree = not any(one["books"]["differences"] for one in played)
    if as_json():
        head = {"schema": 1, "desk": services.desk, "environment": dict(environment), "agree": agree}
        show_json({**head, "sessions": played})
    else:
        for command in ("status", "reconcile"):
            show("")
            sys.stdout.flush()
            subprocess.run([*own_command(), *invocation.options, command], check=False)
    return 0 if agree else DeskHalted.exit_code


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
