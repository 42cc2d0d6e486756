"""`paperdesk import` (data): bring prices, actions, news or filings into the data folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.console import show
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from engine.domain.fetched import Imported


@click.command("import")
@click.argument("kind", type=click.Choice(["prices", "actions", "news", "filings"]))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--symbol", required=True, metavar="SYMBOL", help="Whose rows they are.")
@click.option("--data", "folder", metavar="DIR", help="Data folder (default: the configured one).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(invocation: Invocation, kind: str, file: Path, symbol: str, folder: str | None, as_json: bool) -> None:
    """Brings a CSV, JSONL or Parquet file into the data folder.

    Nothing is written unless every row is good; each bad one is named with its line. A row of the same date is
    replaced; importing a file again changes nothing.

    \b
    Examples:
      paperdesk import prices aapl.csv --symbol AAPL --data DIR
      paperdesk import news headlines.jsonl --symbol AAPL
    """

    services = invocation.services()
    to = services.data_folder if folder is None else Path(folder).expanduser()
    if to is None:
        raise click.UsageError("no data folder to import into: give --data DIR or set data.folder")
    done = services.import_file(kind, file, to, symbol)
    if as_json:
        document = {
            "schema": 1,
            "kind": kind,
            "path": str(done.path),
            "added": done.added,
            "replaced": done.replaced,
            "unchanged": done.unchanged,
            "dropped": [{"source": one.source, "reason": one.reason, "count": one.count} for one in done.dropped],
        }
        show(json.dumps(document, indent=2, allow_nan=False))
    else:
        show(_said(done))


def _said(done: Imported) -> str:
    counts = [(done.added, "added"), (done.replaced, "replaced"), (done.unchanged, "unchanged")]
    said = ", ".join(f"{count:,} {what}" for count, what in counts if count) or "nothing to add"
    lines = [f"{done.path}: {said}"]
    lines += [f"dropped {one.count:,} of {one.source}: {one.reason}" for one in done.dropped]
    return "\n".join(lines)
