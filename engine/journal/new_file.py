"""Create a journal's file with its whole schema in one step: a process that is killed leaves no half of one, so that an
empty file is never taken for a new journal."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from engine.journal.chain import note_version
from engine.journal.database import refuse_remains
from engine.journal.schema import APPEND_ONLY, APPLICATION, VERSION
from engine.program_files import program_text
from engine.settings.places import make_folder, part_of, parts_of, unusable

PAGE_BYTES = 2048
"""Size of a new journal's pages. Each of the many tables and indexes takes a page at least."""


def ensure_file(path: Path) -> None:
    """Create a journal of this program's version where there is no file, with its folder. Raises as `refuse_remains`
    does, and ConfigError or DataError where nothing can be written."""
    path = path.resolve()
    try:
        refuse_remains(path)
        if not path.exists():
            make_folder(path.parent)
            _put_in_place(new_journal(), path)
            _sweep(path)
        elif path.stat().st_nlink > 1:
            _sweep(path)
    except OSError as error:
        raise unusable(path, error) from error


@cache
def new_journal() -> bytes:
    """The content of the file of a journal without rows."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.executescript(program_text(Path(__file__).with_name("schema.sql")))
        for table in sorted(APPEND_ONLY):
            for deed, verb in (("UPDATE", "changed"), ("DELETE", "deleted")):
                refusal = f"SELECT RAISE(ABORT, '{table} are never {verb}')"
                connection.execute(
                    f"CREATE TRIGGER {table}_no_{deed.lower()} BEFORE {deed} ON {table} BEGIN {refusal}; END"
                )
        note_version(connection, VERSION)
        connection.commit()
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        return connection.serialize()


def _put_in_place(content: bytes, path: Path) -> None:
    part = part_of(path)
    try:
        # With the permissions that SQLite would give it.
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, 0o644)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(part, path)  # unlike a renaming it leaves alone what a quicker process has made
        except OSError:
            if not path.exists():  # a file system without links
                part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    for part in parts_of(path):
        part.unlink(missing_ok=True)
