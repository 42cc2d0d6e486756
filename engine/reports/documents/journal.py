"""The file of a journal, as `paperdesk journal` prints what was done with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.reports.documents.row_json import Row

SCHEMA = 1


def checked_document(head: Row, faults: Sequence[str], updated_from: int | None) -> Row:
    """A check: its faults, and the version that the journal had where it was brought up to date."""
    return {**head, "sound": not faults, "faults": list(faults), "updated_from": updated_from}


def backup_document(head: Row, to: Path, size: int) -> Row:
    """A copy, and its size in bytes."""
    return {**head, "backup": str(to), "bytes": size}


def restored_document(head: Row, copy: Path, kept: Path | None) -> Row:
    """A copy that was put in the journal's place; `kept` is the file with what was there before."""
    return {**head, "backup": str(copy), "kept": kept and str(kept)}


def journal_head(desk: str, run: str | None, path: Path) -> Row:
    """The keys that every document of a journal's file begins with."""
    return {"schema": SCHEMA, "desk": desk, "run": run, "journal": str(path)}
