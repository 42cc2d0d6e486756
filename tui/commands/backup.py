"""`paperdesk backup` (set-up): write the desk's journal and memory into one file.
`paperdesk restore` (set-up): restore a backup.
`paperdesk journal` (set-up): check a journal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from engine.errors import MalformedData
from tui.settings.invocation import Invocation, command
from tui.text.console import show_document

HASH = re.compile(r"[0-9a-f]{32}")
CHECK = "check"
FILE = click.Path(path_type=Path)


@command("backup", "--run")
@click.argument("file", type=FILE)
def backup_command(invocation: Invocation, file: Path) -> None:
    """Writes the desk's journal and memory to one file, with the configuration for reference.

    The two belong together: a run refuses a memory that does not match its journal. Keys, market data and recorded
    model answers are not included. Exits with 75 while a run of the desk is in progress.

    \b
    Examples:
      paperdesk backup ~/demo-2026-11-27.zip
      paperdesk backup /backups/growth.zip --desk growth
    """
    from engine.app.upkeep.backup import back_up
    from engine.clock import LiveClock

    invocation.begun_desk()
    document = back_up(invocation.services(), file.expanduser(), LiveClock().now())
    what = "journal and memory" if document["memory"] else "the journal; there is no memory"
    line = f"{document['backup']}: {what} of the desk {document['desk']}, {document['bytes']:,} bytes"
    show_document(document, lambda: [line])


@command("restore", "--run")
@click.argument("file", type=FILE)
def restore_command(invocation: Invocation, file: Path) -> None:
    """Replaces the desk's journal and memory with a backup, after checking it.

    The replaced files are kept beside them. The configuration does not change. Orders and fills after the backup are
    recovered by the next run, or by `paperdesk reconcile --rebuild`. Exits with 75 while a run of the desk is in
    progress.

    \b
    Examples:
      paperdesk restore ~/demo-2026-11-27.zip
      paperdesk restore /backups/growth.zip --desk growth --json
    """
    from engine.app.upkeep.backup import restore
    from engine.clock import LiveClock

    document = restore(invocation.services(), file.expanduser(), LiveClock().now())
    lines = [f"{document['journal']}: restored from {document['backup']}"]
    lines += [f"{kept}: what was there before" for kept in (document["kept"], document["memory_kept"]) if kept]
    show_document(document, lambda: lines)


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
