"""`paperdesk journal` (set-up): check a journal."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from engine.errors import MalformedData
from tui.settings.invocation import Invocation, command
from tui.text.console import show_document

HASH = re.compile(r"[0-9a-f]{32}")
CHECK = "check"


@command("journal")
@click.argument("action", metavar=CHECK, type=click.Choice([CHECK]))
@click.option("--verify", is_flag=True, help="Also print the chain of hashes and its head.")
@click.option("--head", metavar="HASH", help="A head printed earlier, which the chain must contain.")
def journal_command(invocation: Invocation, action: str, *, verify: bool, head: str | None) -> int:
    """Checks the desk's journal; with --run a backtest's.

    check looks for damage, edits and contradictions and exits with 65 if it finds any. Every row carries a hash over
    its values and the previous hash, so an edited, deleted, inserted or moved row is detected and named. --verify
    prints the chain and its last hash, the head. Store the head elsewhere: only --head HASH detects rows cut off the
    end. Exits with 75 while a run of the desk is in progress.

    \b
    Examples:
      paperdesk journal check
      paperdesk journal check --verify
      paperdesk journal check --run backtest-20250701-120000-ab12 --json
    """
    from engine.app.upkeep.backup import JournalFile
    from engine.reports.documents.files import checked_document, journal_head

    named = invocation.desk_name if invocation.run else invocation.begun_desk()
    journal = JournalFile.of(named, invocation.run)
    if head is not None and not HASH.fullmatch(head):
        raise click.UsageError(f"--head {head}: a head has 32 hexadecimal digits; journal check --verify prints it")
    done = journal.check(head)
    place = journal_head(journal.desk, journal.run, journal.path)
    document = checked_document(place, done.faults, done.chain, verify=verify or head is not None)

    def lines() -> Iterator[str]:
        yield from (f"{journal.path}: {fault}" for fault in done.faults or ("sound",))
        if done.faults:
            yield "put a backup in its place: paperdesk restore FILE"
        if chain := document.get("chain"):
            yield f"{chain['links']:,} rows are chained since version {chain['since']}: none was changed"
            yield f"head {chain['head']}"

    show_document(document, lines)
    return MalformedData.exit_code if done.faults else 0
