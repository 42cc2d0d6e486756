"""The report of a desk's run, a file beside the journal."""

from __future__ import annotations

from pathlib import Path

from engine import places
from engine.domain.run import RunKind
from engine.errors import ConfigError, DataError, MissingData
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.reports.documents.session import session_document


def keep_report(reader: JournalReader, desk: str, run: str, folder: Path) -> Path | None:
    """Write the report of a run, whole or not at all; the file, or None where the journal knows nothing of the run.
    Raises DataError where the file cannot be written."""
    # Loaded here: whoever only reads the document stays quick.
    from engine.reports.day_markdown import day_markdown

    try:
        entry, text = reader.run(run), day_markdown(session_document(reader, desk, run))
    except MissingData:
        return None
    target = folder / _report_name(entry)
    try:
        places.write_whole(target, text)
    except (ConfigError, DataError) as error:
        raise DataError(f"the report {error}, then paperdesk report --session {entry.session}") from error
    return target


def _report_name(entry: RunEntry) -> str:
    """A session's file; those of cycles within the session that follows it are numbered, those of one symbol named."""
    if entry.kind is RunKind.SYMBOL:
        return f"{entry.session}-{entry.symbols[0]}.md"
    return f"{entry.session}.md" if entry.cycle <= 1 else f"{entry.session}-{entry.cycle}.md"
