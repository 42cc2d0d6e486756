"""Bring a journal that an older program wrote to this program's version before anything reads it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from engine.errors import MissingData
from engine.journal.database import WAIT, open_read_only
from engine.journal.migrations import VERSION


def older_version(path: Path, wait: float = WAIT) -> int | None:
    """The version of a journal that an older program wrote; None for one of this program, no file, or nothing in it.

    Raises MalformedData for a file that is damaged or no journal, ConfigError for one of a newer program,
    TryAgainLater where another process holds the file.
    """
    try:
        with closing(open_read_only(path, wait, older=True)) as connection:
            version: int = connection.execute("PRAGMA user_version").fetchone()["user_version"]
    except MissingData:
        return None
    return version if version < VERSION else None


def bring_up_to_date(path: Path, wait: float = WAIT) -> int | None:
    """Migrate what `older_version` finds, all or nothing, and returns the version that it had. The caller holds the
    desk's lock. Raises as `older_version` does, and DataError where the disk refuses."""
    version = older_version(path, wait)
    if version is not None:
        from engine.journal.writer import JournalWriter

        JournalWriter(path, wait=wait).close()
    return version
