"""The index of looks, read back."""

from __future__ import annotations

from pathlib import Path

from engine.domain.run import Trial
from engine.journal.reader import JournalReader


def looks_in(index: Path) -> tuple[Trial, ...]:
    """Every look, in the order of writing."""
    with JournalReader(index) as reader:
        return reader.trials()
