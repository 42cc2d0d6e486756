"""Settings of a desk's runs, and in what they differ from those of the run before."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from itertools import pairwise

from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.versioned_documents import document_versions
from engine.reports.documents.row_json import Row
from engine.reports.documents.settings import changed_settings

KIND = "settings"
"""The kind of document under which a run keeps them."""

OF_A_SESSION = frozenset({"data_fingerprint"})
"""Settings that are another's every session."""


def settings_of(reader: JournalReader, run: str) -> Row | None:
    """The effective settings of a desk's run; None where it kept none."""
    known = document_versions(reader, run, KIND)
    return json.loads(known[-1]) if known else None


def changed_since(reader: JournalReader, run: str) -> Row | None:
    """The settings in which a run differs from the one before it, `since` that one's session; None where nothing
    changed, or one of them kept no settings."""
    seen = False
    for entry, row in _changes(reader):
        seen = seen or entry.id == run
        if seen and (row is not None or entry.id != run):
            return row if entry.id == run else None
    return None


def changes_by_run(reader: JournalReader, runs: Collection[str]) -> dict[str, Row]:
    """The changes of those of the runs that have any; no run before the first of them is read but for one."""
    found: dict[str, Row] = {}
    ahead = set(runs)
    for entry, row in _changes(reader):
        if not ahead and entry.id not in runs:
            break
        ahead.discard(entry.id)
        if row is not None and entry.id in runs:
            found.setdefault(entry.id, row)
    return found


def _changes(reader: JournalReader) -> Iterator[tuple[RunEntry, Row | None]]:
    """Every run with the changes since the version of settings before it, the latest first."""
    for (run, now), (earlier, before) in pairwise(_versions(reader)):
        changed = changed_settings(before, now)
        yield run, {"since": str(earlier.session), "settings": changed} if changed else None


def _versions(reader: JournalReader) -> Iterator[tuple[RunEntry, Row]]:
    """Every version of settings, the latest first; a run that goes on with changed settings has several."""
    for run in reversed(reader.runs()):
        for text in reversed(document_versions(reader, run.id, KIND)):
            yield run, {name: value for name, value in json.loads(text).items() if name not in OF_A_SESSION}
