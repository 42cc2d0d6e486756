"""Documents of a run that may change while it goes on: each version is kept, the last one counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.journal.reader import JournalReader
    from engine.journal.writer import JournalWriter


def document_versions(reader: JournalReader, run: str, kind: str) -> list[str]:
    """Every version of a run's document of a kind, the latest last; none where it was never written."""
    texts: list[str] = []
    while (text := reader.document(run, _named(kind, len(texts)))) is not None:
        texts.append(text)
    return texts


def keep_version(journal: JournalWriter, reader: JournalReader, run: str, kind: str, text: str) -> None:
    """Keep a version of a run's document, unless the last one is the same."""
    known = document_versions(reader, run, kind)
    if not known or known[-1] != text:
        journal.document(run, _named(kind, len(known)), text)


def _named(kind: str, number: int) -> str:
    return f"{kind}{number or ''}"
