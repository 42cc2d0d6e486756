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
@click.option("--head", metavar="HASH", help="A head printed earlier, which the chain has to contain.")
def journal_command(invocation: Invocation, action: str, *, verify: bool, head: str | None) -> int:
    """Checks the desk's journal; with --run a backtest's.

    check looks for damage, edits and contradictions; the exit code is 65 where it finds any. Every row carries a hash
    over its values and the hash before it: a row that was edited, deleted, inserted or moved is found and named.
    --verify prints the chain and its last hash, the head. Keep that elsewhere: rows that were cut off the end are found
    by --head HASH alone. While a run of the desk is at work it ends with 75.

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
