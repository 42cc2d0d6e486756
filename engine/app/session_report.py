"""The report of a desk's run: made of its journal at any time, and kept beside it when the run ends."""

from __future__ import annotations

import os
from pathlib import Path

from engine.errors import DataError, MissingData
from engine.execution.controls import Halted, halted
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.reports.documents.row_json import Row
from engine.reports.documents.session import day_document


def document_of(reader: JournalReader, desk: str, run: str, outcome: str | None = None) -> Row:
    """A run with how the desk stands now, as JSON's own types (day_document). Raises MissingData for an unknown run."""
    return day_document(reader, desk, run, outcome, halted_row(halted(reader)))


def halted_row(stopped: Halted | None) -> Row | None:
    """A halt as JSON's own types; None where the desk is not halted."""
    return None if stopped is None else {"since": stopped.since.isoformat(), "reason": stopped.reason}


def keep_report(journal: Path, desk: str, run: str, folder: Path) -> Path | None:
    """Writes the report of a run, whole or not at all; the file, or None where the journal knows nothing of the run.
    Raises DataError where the file cannot be written."""
    # Loaded here: whoever only reads the document stays quick.
    from engine.reports.day_markdown import day_markdown

    try:
        with JournalReader(journal) as reader:
            entry, text = reader.run(run), day_markdown(document_of(reader, desk, run))
    except MissingData:
        return None
    target = folder / report_name(entry)
    temporary = folder / f".{target.name}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            # Half of a surrogate pair, which models do answer with, has no place in UTF-8.
            temporary.write_bytes(text.encode("utf-8", "replace"))
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"the report {target} cannot be written ({error.strerror}): check its folder and the free space, then "
            f"paperdesk report --session {entry.session}"
        ) from error
    return target


def report_name(entry: RunEntry) -> str:
    """A session's file; those of cycles within the session that follows it are numbered."""
    return f"{entry.session}.md" if entry.cycle <= 1 else f"{entry.session}-{entry.cycle}.md"
