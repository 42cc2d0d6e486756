"""Create a journal's file with its whole schema in one step: a process that is killed leaves no half of one, so that an
empty file is never taken for a new journal."""

from __future__ import annotations

import os
import sqlite3
from functools import cache
from pathlib import Path
from secrets import token_hex

from engine.journal.database import refuse_empty
from engine.journal.migrations import migrate
from engine.journal.sqlite_library import database_class
from engine.places import unusable

PAGE_BYTES = 2048
"""Size of a new journal's pages. Each of the many tables and indexes takes a page at least."""


def ensure_file(path: Path) -> None:
    """Create a journal of this program's version where there is no file, with its folder. Raises MissingData for an
    empty file, which may be what is left of a journal, and ConfigError or DataError where nothing can be written."""
    try:
        if path.exists():
            refuse_empty(path)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            _put_in_place(new_journal(), path)
    except OSError as error:
        raise unusable(path, error) from error


@cache
def new_journal() -> bytes:
    """The content of the file of a journal without rows."""
    connection = sqlite3.connect(":memory:")
    database = database_class()(connection, execute_plugins=False)
    try:
        database.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        migrate(database)
        connection.commit()
        return connection.serialize()
    finally:
        database.close()


def _put_in_place(content: bytes, path: Path) -> None:
    part = path.with_name(f"{path.name}.{token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(part, path)  # unlike a renaming it leaves alone what a quicker process has made
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)
