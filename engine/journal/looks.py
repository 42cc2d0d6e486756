"""Count the looks at a window: one row for every time that a strategy or a preset was evaluated on it.

A result means little without the number of tries that it was picked from. The rows lie in an index of their own, a
journal file in which every other table is empty, so that they stay when the journals of runs are pruned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from engine.domain.json_text import to_json
from engine.domain.run import RunSpec, WindowLook
from engine.journal.database import WAIT
from engine.journal.writer import JournalWriter


def add_looks(index: Path, looks: Iterable[WindowLook], wait: float = WAIT) -> None:
    """Add looks to the index at a path, all or none; it is made where there is none. Raises TryAgainLater where another
    process holds it for longer than `wait` seconds, DataError where the disk refuses."""
    with JournalWriter(index, wait=wait) as journal:
        journal.looks(looks)


def spec_hash(spec: RunSpec) -> str:
    """SHA-256 (hex) over the canonical JSON of everything that decides a run: what it is called and what it was made
    with do not."""
    return hashlib.sha256(
        to_json(replace(spec, run="", journal=None, data_fingerprint="", version="")).encode()
    ).hexdigest()
