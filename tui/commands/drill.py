"""`paperdesk drill` (set-up): test the desk against broker failures, in a temporary home."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from engine.program_files import own_command
from tui.settings.invocation import Invocation, command
from tui.shell.progress import work_line
from tui.text.console import as_json, show, show_json, standard_output
from tui.text.plain_text import one_line, wrapped

if TYPE_CHECKING:
    from engine.app.upkeep.drill.practice import DrillParts
    from engine.reports.documents.drill import RowResult


@command("drill")
@click.option("--only", "names", multiple=True, metavar="ROW", help="Run only this test (repeatable).")
@click.option("--account", is_flag=True, help="Check the configured paper account instead; read-only, no orders.")
@click.option("--list", "listed", is_flag=True, help="List the tests without running them.")
def drill_command(*, invocation: Invocation, names: tuple[str, ...], account: bool, listed: bool) -> int | None:
    """Tests the desk against broker failures: unanswered orders, account faults, late entries, halts, splits, odd
    times, full disks.

    Each test has its own desk in a temporary home, with an account at a local broker (the sandbox) that has the fault.
    Its runs must exit with the right codes; no order may be doubled or lost, both books must be equal, and the next
    session's run must succeed. The configured desk is not touched. It takes about five minutes; `paperdesk doctor`
    shows the date and the result. Exits with 1 if a test fails.

    With --account it sends the configured paper account every request of a run, and checks behaviour that Alpaca does
    not document; read-only, no orders.

    \b
    Examples:
      paperdesk drill
      paperdesk drill --only lookups-404 --only disk-full
      paperdesk drill --account --json
    """
    from engine.app.upkeep.drill.account_check import drill_account
    from engine.app.upkeep.drill.drill import drill_sandbox
    from engine.app.upkeep.drill.fault_table import chosen, fault_table

    if account and (names or listed):
        raise click.UsageError("--only and --list do not go with --account: leave one of them out")
    if listed:
        show("\n".join(f"{row.name:<22}  {row.fault}" for row in fault_table()))
        return None
    rows = chosen(names)
    with work_line() as report:
        if account:
            document = asyncio.run(drill_account(invocation.services(), _on_result(None, report)))
        else:
            document = drill_sandbox([row.name for row in rows], _parts(), _on_result(len(rows), report))
    if as_json():
        show_json(document)
    else:
        show(f"drill {document['time'][:10]}: {document['held']} of {document['count']} held")
    return 0 if document["ok"] else 1


def _parts() -> DrillParts:
    from connectors.wiring.sandbox import practice_accounts
    from connectors.wiring.services import services
    from engine.app.upkeep.drill.practice import DrillParts

    return DrillParts(open_account=practice_accounts(), services=services, program=own_command())


def _on_result(count: int | None, report: Callable[[str], None]) -> Callable[[RowResult, int], None]:
    """Print each row once it is tried, or with JSON say that it was."""
    from engine.reports.documents.drill import codes_text

    console = standard_output()

    def tell(result: RowResult, number: int) -> None:
        place = f"{number}/{count}" if count else f"{number}"
        if as_json():
            report(f"{place} {result.name}")
            return
        state = "held " if result.held else "FAILS"
        codes = f"  ({codes_text(result.got)})" if result.got else ""
        show(f"{place:>6}  {state}  {result.name:<22}  {result.fault}{codes}")
        if result.detail:
            show("\n".join(f"{'':15}{line}" for line in wrapped(one_line(result.detail), console.width - 15)))
        sys.stdout.flush()

    return tell
