"""`paperdesk backup` (set-up): write the desk's journal and memory into one file.
`paperdesk restore` (set-up): put a backup back.
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
    """Writes the desk's journal and memory into one file, with the configuration to look at.

    The two belong together: a run refuses a memory that is not the one its journal knows. Keys, market data and
    recorded answers of models are not in it. While a run of the desk is at work it ends with 75.

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
    """Puts a backup in the place of the desk's journal and memory, once it is checked.

    What was there is kept beside them. The configuration stays as it is. Orders and fills that came after the backup
    are found by the next run, or by `paperdesk reconcile --rebuild`. While a run of the desk is at work it ends with
    75.

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
