"""`paperdesk drill` (set-up): try what can go wrong with a broker, on desks of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from tui.settings.invocation import Invocation, command
from tui.shell.progress import work_line
from tui.text.console import as_json, show, show_json, standard_output
from tui.text.plain_text import one_line, wrapped

if TYPE_CHECKING:
    from engine.app.upkeep.drill.practice import DrillParts
    from engine.reports.documents.drill import RowResult

_PROGRAM = (sys.executable, "-c", "from tui.cli import main; main()")


@command("drill")
@click.option("--only", "names", multiple=True, metavar="ROW", help="Try this row alone; may be repeated.")
@click.option("--account", is_flag=True, help="Ask the configured paper account instead: questions alone, no order.")
@click.option("--list", "listed", is_flag=True, help="List the rows, and try none.")
def drill_command(*, invocation: Invocation, names: tuple[str, ...], account: bool, listed: bool) -> int | None:
    """Tries what can go wrong with a broker: orders without an answer, faults of the account, late entries, halts,
    splits, odd times, full disks.

    Each row has a desk of its own in a temporary home, with an account at a local broker (the sandbox) that has the
    fault. Its runs have to end with the right codes; afterwards no order is doubled or lost, both books are equal, and
    the next session's run goes on. The configured desk is not touched. It takes about five minutes; `paperdesk doctor`
    shows the date and the result. The exit code is 1 where a row does not hold.

    With --account it asks the configured paper account all that a run asks, and what Alpaca's documents do not promise:
    nothing is ordered or changed.

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
        raise click.UsageError("--only and --list are about the sandbox's rows: leave them or --account out")
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

    return DrillParts(open_account=practice_accounts(), services=services, program=_PROGRAM)


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
