"""`paperdesk journal` (set-up): check, copy or restore a journal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.errors import MalformedData
from tui.commands.options import json_option
from tui.console import show_document
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.app.journal_file import JournalFile

HASH = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}")
CHECK, BACKUP, RESTORE = "check", "backup", "restore"


@click.command("journal")
@click.argument("action", metavar="check|backup|restore", type=click.Choice([CHECK, BACKUP, RESTORE]))
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--verify", is_flag=True, help="With check: also print the chain of hashes and its head.")
@click.option("--head", metavar="HASH", help="With check: a head printed earlier, which the chain has to contain.")
@json_option
@desk_options
def journal_command(
    invocation: Invocation, action: str, file: Path | None, *, verify: bool, head: str | None, as_json: bool
) -> int:
    """Checks, copies or restores the desk's journal; with --run a backtest's.

    check brings a journal of an older Paperdesk up to date and looks for damage, edits and contradictions; the exit
    code is 65 where it finds any. Every row carries a hash over its values and the hash before it: a row that was
    edited, deleted, inserted or moved is found and named. --verify prints the chain and its last hash, the head. Keep
    that elsewhere: rows that were cut off the end are found by --head HASH alone.

    backup FILE writes a copy that is whole even while a run writes. restore FILE checks a backup, brings it up to date
    and puts it in the journal's place; what was there is kept beside it. check and restore wait for nobody: while a run
    of the desk is at work they end with 75.

    \b
    Examples:
      paperdesk journal check
      paperdesk journal check --verify
      paperdesk journal backup ~/demo-before-update.db
      paperdesk journal restore ~/demo-before-update.db
      paperdesk journal check --run backtest-20250701-120000-ab12 --json
    """
    from engine.app.journal_file import JournalFile

    if (file is None) != (action == CHECK):
        needed = f"{action} needs a file: paperdesk journal {action} FILE"
        raise click.UsageError("check takes no file" if file else needed)
    journal = JournalFile.of(invocation.desk_name, invocation.run)
    if action != CHECK and (verify or head is not None):
        raise click.UsageError(f"--verify and --head belong to check, not to {action}")
    if head is not None and not HASH.fullmatch(head):
        raise click.UsageError(
            f"--head {head}: a head has 32 or 64 hexadecimal digits; journal check --verify prints it"
        )
    if file is None:
        return _check(journal, head, verify or head is not None, as_json)
    if action == RESTORE:
        _restore(journal, file.expanduser(), as_json)
    else:
        _back_up(journal, file.expanduser(), as_json)
    return 0


def _check(journal: JournalFile, head: str | None, verify: bool, as_json: bool) -> int:
    from engine.reports.documents.files import checked_document

    done = journal.check(head)

    def lines() -> Iterator[str]:
        if done.updated_from is not None:
            yield f"{journal.path}: brought up to date, it had version {done.updated_from}"
        yield from (f"{journal.path}: {fault}" for fault in done.faults or ("sound",))
        if done.faults:
            yield "put a backup in its place: paperdesk journal restore FILE"
        if chain := document.get("chain"):
            earlier = f", where {chain['earlier']:,} rows were there already" if chain["earlier"] else ""
            yield f"{chain['links']:,} rows are chained since version {chain['since']}{earlier}: none was changed"
            yield f"head {chain['head']}"

    document = checked_document(_head(journal), done.faults, done.updated_from, done.chain, verify=verify)
    show_document(document, as_json, lines)
    return MalformedData.exit_code if done.faults else 0


def _back_up(journal: JournalFile, to: Path, as_json: bool) -> None:
    from engine.reports.documents.files import backup_document

    size = journal.back_up(to)
    text = f"{to}: a copy of {journal.path}, {size:,} bytes"
    show_document(backup_document(_head(journal), to, size), as_json, lambda: [text])


def _restore(journal: JournalFile, copy: Path, as_json: bool) -> None:
    from engine.clock import LiveClock
    from engine.reports.documents.files import restored_document

    before = journal.restore(copy, LiveClock().now())
    lines = [f"{journal.path}: restored from {copy}"]
    lines += [] if before is None else [f"{before}: what was there before"]
    show_document(restored_document(_head(journal), copy, before), as_json, lambda: lines)


def _head(journal: JournalFile) -> dict[str, Any]:
    from engine.reports.documents.files import journal_head

    return journal_head(journal.desk, journal.run, journal.path)
