"""Copy a journal while it is written, and put a copy in its place."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from engine.errors import ConfigError, DataError, MalformedData
from engine.journal.database import WAIT, error_of, open_read_only
from engine.journal.integrity import quick_check


def backup(path: Path, to: Path, wait: float = WAIT) -> None:
    """Copy a journal, also while it is being written, by SQLite's backup: one file that needs no other (copying the
    file alone loses what stands in its write-ahead log). Raises as `open_read_only` does, and DataError where `to` is
    taken or cannot be written."""
    if to.exists():
        raise DataError(f"{to} already exists: name another file")
    source = open_read_only(path, wait)
    half = to.with_name(to.name + ".part")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        half.unlink(missing_ok=True)
        target = sqlite3.connect(half)
        try:
            source.backup(target)
        finally:
            target.close()
        _make_one_file(half)
        half.replace(to)
    except sqlite3.Error as error:
        raise error_of(error, path) from error
    except OSError as error:
        raise DataError(f"{to} cannot be written ({error.strerror}): name another file") from error
    finally:
        source.close()
        half.unlink(missing_ok=True)


def check(copy: Path, named: Path, wait: float = WAIT) -> None:
    """Check a copy of a journal, which comes from a backup `named` so. Raises DataError for one that is not sound."""
    try:
        faults = quick_check(copy, wait)
    except MalformedData as error:
        raise MalformedData(f"the backup {named} is damaged, or not a journal: use an older one") from error
    except (DataError, ConfigError) as error:
        raise type(error)(
            f"the backup {named} was written by another version of Paperdesk: restore it with that version"
        ) from error
    if faults:
        raise DataError(f"the backup {named} is damaged ({faults[0]}): use an older one")


def replace(copy: Path, path: Path, now: datetime) -> Path | None:
    """Move a checked copy, on the same disk, into the place of a journal. Returns the path of the replaced journal,
    whatever state it was in: beside it, under the time `now`; None where there was none. The caller holds the desk's
    lock: no one may be writing. Raises DataError, and nothing was replaced."""
    try:
        kept = _keep_aside(path, now)
        # A write-ahead log of the old file must never be applied to the new one.
        for beside in ("-wal", "-shm"):
            path.with_name(path.name + beside).unlink(missing_ok=True)
        copy.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be replaced ({error.strerror}): check its folder and free space") from error
    return kept


def _keep_aside(path: Path, now: datetime) -> Path | None:
    """Copy a journal as it lies there, damaged or not, with its write-ahead log, or what is left of the two."""
    lying = {ending: path.with_name(path.name + ending) for ending in ("", "-wal")}
    left = [ending for ending, file in lying.items() if file.exists() and (not ending or file.stat().st_size)]
    if not left:
        return None
    stem = f"{path.name}.replaced-{now:%Y%m%d-%H%M%S}"
    names = chain([stem], (f"{stem}-{n}" for n in count(2)))
    kept = next(name for name in names if not any(path.with_name(name + ending).exists() for ending in left))
    for ending in left:
        shutil.copy2(lying[ending], path.with_name(kept + ending))
    return path.with_name(kept + left[0])


def _make_one_file(path: Path) -> None:
    """A journal in WAL mode would need to write beside itself even to be read."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
