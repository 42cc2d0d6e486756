"""Open a journal's file, and turn SQLite's errors into ours; standard library only, so that it is quick."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from engine.errors import (
    ConfigError,
    DataError,
    InvariantBroken,
    MalformedData,
    MissingData,
    PaperdeskError,
    TryAgainLater,
)
from engine.journal.schema import APPLICATION, VERSION, VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

WAIT = 5.0
"""Seconds that a reader or writer waits for another process's lock."""


def open_read_only(path: Path, wait: float = WAIT) -> sqlite3.Connection:
    """A connection that cannot write. Raises MissingData where there is no file or nothing in it, TryAgainLater for a
    lock, and as `check_version` does."""
    refuse_remains(path)
    if not path.is_file():
        raise MissingData(f"no journal at {path}: a run writes one (paperdesk --daily, paperdesk backtest)")
    with sqlite_errors(path):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=wait)
    try:
        check_version(connection, path)
        connection.row_factory = _row_maker(path)
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_remains(path: Path) -> None:
    """Raise MissingData for what may be left of a journal: a file of no bytes, for a new one has its schema, and a
    write-ahead log without its journal, which SQLite would apply to a new one."""
    log = path.with_name(f"{path.name}-wal")
    logged, size = _size(log), _size(path)  # the log first: another process may be creating the journal
    if size is None:
        if logged:
            raise MissingData(
                f"the journal {path} is gone, but its log {log} is there: delete it too, or restore a backup "
                "(paperdesk restore FILE)"
            )
    elif size == 0:
        raise MissingData(
            f"the journal {path} is empty: delete it and what begins with its name, or restore a backup "
            "(paperdesk restore FILE)"
        )


def _size(path: Path) -> int | None:
    """The size of a file; None where there is none, which another process may have just removed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise MalformedData for a file that is damaged or no journal, ConfigError for a journal of a newer program and
    DataError for one of an older program."""
    with sqlite_errors(path):
        application = int(connection.execute("PRAGMA application_id").fetchone()[0])
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if application != APPLICATION:
            raise MalformedData(f"{path} is a SQLite file but not a Paperdesk journal: name another file")
        noted = _noted_version(connection, version)
    if noted != version:
        raise damaged_file(f"its header says version {version}, its rows {noted}", path)
    if version > VERSION:
        raise ConfigError(
            f"the journal {path} was written by a newer Paperdesk (version {version}, this program knows "
            f"{VERSION}): upgrade the program, or use another desk"
        )
    if version < VERSION:
        raise DataError(
            f"the journal {path} was written by an older Paperdesk (version {version}, this program reads {VERSION}): "
            f"export its runs with that one (paperdesk report; a later 0.1 has paperdesk runs export), then move "
            f"{path.parent} aside; orders at a broker come back by paperdesk reconcile --rebuild"
        )


def _noted_version(connection: sqlite3.Connection, version: int) -> int | None:
    """The version that a journal's rows say, None where they say none; the oldest have no table of them, and say that
    of the header alone."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (VERSIONS,)).fetchone():
        return version if version < VERSION else None
    noted = connection.execute(f"SELECT version FROM {VERSIONS} ORDER BY seq DESC LIMIT 1").fetchone()
    return None if noted is None else int(noted[0])


def refuse_unreadable(path: Path) -> None:
    """Raise as `open_read_only` does for a journal that is there and cannot be read."""
    with suppress(MissingData):
        open_read_only(path).close()


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors of a block as ours (see `error_of`)."""
    try:
        yield
    except sqlite3.Error as error:
        raise error_of(error, path) from error
    except UnicodeDecodeError as error:  # the names of tables and columns, and SQLite's words about them, are texts too
        raise damaged_file("a text of its schema is none", path) from error


def error_of(error: sqlite3.Error, path: Path) -> PaperdeskError:
    """The error of ours for a SQLite error, with its meaning for a journal and a remedy."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the primary code
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return TryAgainLater(f"the journal {path} is locked by another process: try again when it has finished")
        case sqlite3.SQLITE_NOTADB:
            return MalformedData(f"{path} is not a journal (not a SQLite file): name another file or restore a backup")
        case sqlite3.SQLITE_CORRUPT:
            return damaged_file(error, path)
        case sqlite3.SQLITE_PERM | sqlite3.SQLITE_READONLY:
            return ConfigError(f"the journal {path} may not be written ({error}): check its folder's permissions")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return DataError(f"the journal {path} cannot be used ({error}): check its permissions and the free space")
    if str(error).startswith(("Could not decode", "unsupported file format")):
        return damaged_file(error, path)
    return InvariantBroken(f"the journal {path} refused what the program did: {error}")


def damaged_file(error: sqlite3.Error | str, path: Path) -> MalformedData:
    """The error of a journal that is not as it was written."""
    return MalformedData(f"the journal {path} is damaged ({error}): restore a backup (paperdesk restore FILE)")


class StoredRow(dict[str, Any]):
    """A row by column, that knows the journal (`path`) it is of."""

    __slots__ = ("path",)
    path: Path


def _row_maker(path: Path) -> Callable[[sqlite3.Cursor, tuple[Any, ...]], StoredRow]:
    described: Any = None
    columns: list[str] = []

    def by_column(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> StoredRow:
        nonlocal described, columns
        if cursor.description is not described:  # once for all rows of a query
            described = cursor.description
            columns = [column[0] for column in described]
        row = StoredRow(zip(columns, values, strict=True))
        row.path = path
        return row

    return by_column


NAMING = ("id", "seq", "order_id", "run", "session", "cycle", "symbol", "owner", "name", "memory", "hash")
"""Columns that tell a person which row is meant."""
UNREADABLE = (ValueError, ArithmeticError, TypeError, LookupError, AttributeError, zlib.error)
"""Errors of values that were written otherwise than they stand there now."""


def row_name(row: Mapping[str, Any], besides: str = "") -> str:
    """A row for a person: the columns that tell which it is, without one of them."""
    named = ", ".join(f"{name} {row[name]}" for name in NAMING if row.get(name) not in (None, "") and name != besides)
    return named.encode("utf-8", "backslashreplace").decode()


def damaged(row: Mapping[str, Any], column: str = "") -> MalformedData:
    """The error of a row that cannot be read, because of one of its columns where that is known."""
    named = row_name(row, column)
    journal = f"the journal {row.path}" if isinstance(row, StoredRow) else "the journal"
    what = f"{column} is {str(row[column])[:40]!r}" if column in row else f"{column or 'what it says'} cannot be read"
    return MalformedData(
        f"{journal} is damaged in the row with {named or 'no name'}: {what}; restore a backup (paperdesk restore FILE)"
    )


@contextmanager
def reading(row: Mapping[str, Any]) -> Iterator[None]:
    """Raise MalformedData that names the row where a block cannot read it."""
    try:
        yield
    except UNREADABLE as error:
        raise damaged(row) from error
