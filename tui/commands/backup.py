"""`paperdesk backup` (set-up): write the desk's journal and memory into one file.
`paperdesk restore` (set-up): restore a backup.
"""

from __future__ import annotations

from pathlib import Path

import click

from tui.settings.invocation import Invocation, command
from tui.text.console import show_document

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
