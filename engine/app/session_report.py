"""The report of a desk's run, kept beside its journal when the run ends."""

from __future__ import annotations

import os
from pathlib import Path

from engine.errors import DataError, MissingData
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
