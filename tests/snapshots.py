"""The journal's side of an account, read from its file."""

from __future__ import annotations

from pathlib import Path

from engine.account.reconciliation import JournalSnapshot, journal_snapshot
from engine.journal.reader import JournalReader


def snapshot(journal: Path) -> JournalSnapshot:
    with JournalReader(journal) as reader:
        return journal_snapshot(reader)
