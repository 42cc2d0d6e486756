"""`paperdesk replay` (data): count, export, import or remove recorded model answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.domain.text import counted
from engine.settings import places
from tui.commands.options import DAY, actions, option_of
from tui.settings.invocation import Invocation, command
from tui.text.console import show_document

if TYPE_CHECKING:
    from engine.services import Services

STATS, EXPORT, IMPORT, PRUNE = "stats", "export", "import", "prune"


@command("replay")
@actions({STATS: "", EXPORT: "FILE", IMPORT: "FILE", PRUNE: ""}, "[FILE]", default=STATS)
@option_of((PRUNE,), "--before", type=DAY, metavar="DATE", help="Answers recorded before this day (UTC).")
def replay_command(invocation: Invocation, action: str, what: tuple[str, ...], before: date | None) -> None:
    """Counts, exports, imports or removes recorded model answers.

    stats counts them by model. export FILE writes them, one JSON object per line (with --run only those of one run);
    import FILE adds them by hash and keeps existing ones. prune removes answers from before a date, or with --run those
    that only this run uses; asking again then costs money.

    \b
    Examples:
      paperdesk replay stats
      paperdesk replay export ~/answers.jsonl --run backtest-20250701-120000-ab12
      paperdesk replay import ~/answers.jsonl
      paperdesk replay prune --before 2026-01-01 --json
    """
    if action in (STATS, IMPORT):
        invocation.refuse_run()
    services = invocation.services()
    if action == STATS:
        _show_stats(services)
    elif action == PRUNE:
        _prune(services, before, invocation.run)
    else:
        _carry(services, action, Path(what[0]).expanduser(), invocation.run)


def _show_stats(services: Services) -> None:
    from engine.app.models.recorded_run import answers_by_model
    from engine.reports.documents.files import recorded_document

    document = recorded_document(places.replay_cache(), answers_by_model(services))
    show_document(document, lambda: _stats_lines(document))


def _stats_lines(document: Mapping[str, Any]) -> Iterator[str]:
    from engine.reports.documents.row_json import spent_words

    yield f"{document['path']}: {counted(document['answers'], 'recorded answer')}, {counted(document['bytes'], 'byte')}"
    for one in document["models"]:
        since = "" if one["first"] is None else f", {one['first'][:10]} to {one['last'][:10]}"
        failed = f", {one['failed']:,} of them refused or no answer" if one["failed"] else ""
        yield f"  {one['spec']}: {one['answers']:,} answers{failed}{spent_words(one)}{since}"


def _carry(services: Services, action: str, file: Path, run: str | None) -> None:
    from engine.app.models.recorded_run import export_answers, import_answers
    from engine.reports.documents.files import SCHEMA

    if action == EXPORT:
        count = export_answers(services, file, run)
        document, text = {"schema": SCHEMA, "file": str(file), "exported": count}, f"{file}: {count:,} answers"
    else:
        new, known = import_answers(services, file)
        document = {"schema": SCHEMA, "file": str(file), "imported": new, "known": known}
        text = f"{new:,} answers imported, {known:,} were there and stay"
    show_document(document, lambda: [text])


def _prune(services: Services, before: date | None, run: str | None) -> None:
    from engine.app.models.recorded_run import prune_answers
    from engine.reports.documents.files import SCHEMA
    from engine.reports.documents.row_json import fields

    if before is None and run is None:
        raise click.UsageError("prune needs --before DATE, --run ID or both: otherwise it would remove every answer")
    done = prune_answers(services, before, run)

    def lines() -> Iterator[str]:
        yield f"{done.removed:,} answers removed, {done.retained:,} kept"
        if done.shared:
            yield f"  {done.shared:,} of the run are kept: other runs have them too"
        if done.undated:
            yield f"  {done.undated:,} are kept: an older Paperdesk recorded them without a date"

    show_document({"schema": SCHEMA, **fields(done, "removed", "retained", "shared", "undated")}, lines)
