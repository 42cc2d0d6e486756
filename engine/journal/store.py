"""Bring rows into the journal's file: waiting lists, transactions, and rows that are there already.

Rows are only ever added. A row whose meaning depends on the rows before it, such as a change of state, is added under a
condition that SQLite checks in the same transaction: another process may have been quicker.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any, Self

from engine.errors import InvariantBroken, TryAgainLater
from engine.journal.chain import Chain, Written, note_version
from engine.journal.database import WAIT, check_version, reading, refuse_remains, sqlite_errors
from engine.journal.rows import Row, pack, stored, unpack
from engine.journal.schema import APPEND_ONLY, APPLICATION, CONTENT_NAMED, LIVE, MARKED, VERSION
from engine.journal.sqlite_library import database_class
from engine.program_files import program_text
from engine.settings.places import make_folder, part_of, parts_of, unusable

BATCH_ROWS = 2000
BATCH_SECONDS = 0.25
"""A batched store commits when this many rows wait, or when the last commit is this long ago."""


FORMAT_VERSIONS = slice(18, 20)
"""The bytes of a SQLite header that say how the file is written and read: 2 and 2 with a write-ahead log."""


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL condition on the rows that are there, with its values; `complaint` is raised where it does not hold."""

    sql: str
    values: tuple[Any, ...]
    complaint: str = ""


class RowStore:
    """The one connection that writes a journal; a context manager that commits and closes. Rows go in together or not
    at all, at once or (`batched`) some time later."""

    def __init__(self, path: Path, *, batched: bool = False, wait: float = WAIT) -> None:
        """Open or create a journal; `batched` is for backtests. Raises MissingData for an empty file, and as
        `check_version` does."""
        self.path = path
        self._batched = batched
        self._parts: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._rows: list[tuple[str, Row]] = []
        self._conditional: list[tuple[str, Row, Condition]] = []
        self._committed = monotonic()
        self._contents: set[str] = set()
        self._held = False
        ensure_file(path)
        with sqlite_errors(path):
            connection = sqlite3.connect(path, timeout=wait)
        try:
            connection.row_factory = sqlite3.Row
            self._db = database_class()(connection, execute_plugins=False)
            self._chain = Chain(connection)
            self._written: list[Written] = []
            check_version(connection, path)
            with sqlite_errors(path):
                self._db.enable_wal()
                connection.execute(f"PRAGMA synchronous = {'NORMAL' if batched else 'FULL'}")
        except BaseException:
            connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Commit what waits, bring it into the journal's one file even where another process still reads, and close."""
        try:
            self.flush()
            with suppress(sqlite3.Error):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._db.close()

    @contextmanager
    def together(self) -> Iterator[None]:
        """A block of writes that are committed at its end as one, or not at all."""
        self.flush()
        self._held = True
        try:
            yield
        except BaseException:
            self._rows, self._conditional = [], []
            self._contents.clear()
            raise
        finally:
            self._held = False
        self.flush()

    def flush(self) -> None:
        """Commit all that waits: first the plain rows, then the conditional ones, in order. Inside `together` it waits
        on."""
        if self._held or not (self._rows or self._conditional):
            return
        rows, conditional = self._rows, self._conditional
        self._rows, self._conditional = [], []
        try:
            with self._transaction():
                for (table, columns), alike in groupby(rows, _kind):
                    self._insert(table, columns, [row for _, row in alike])
                for table, row, condition in conditional:
                    if not self._insert_if(table, row, condition):
                        raise InvariantBroken(condition.complaint)
        except BaseException as error:
            self._contents.clear()
            # A backtest that finds the file locked, or is interrupted, commits later. What a desk was told has
            # failed must not turn up afterwards.
            if self._batched and isinstance(error, TryAgainLater | KeyboardInterrupt):
                self._rows, self._conditional = rows, conditional
            raise
        self._committed = monotonic()

    def _write(self, *rows: tuple[str, Row]) -> None:
        """Add rows (table, row), together with all that waits."""
        self._rows += ((table, _made(table, row)) for table, row in rows)
        self._waits()

    def _write_if(self, table: str, row: Row, condition: Condition) -> None:
        """Add a row whose condition has to hold once all rows that wait are in. The batch is refused with the complaint
        as InvariantBroken where it does not."""
        self._conditional.append((table, _made(table, row), condition))
        self._waits()

    def _write_content(self, table: str, name: str, row: Row) -> None:
        """Let a row that is named by its content wait, unless it was written before."""
        if name not in self._contents:
            self._contents.add(name)
            self._rows.append((table, _made(table, row)))

    def _write_once(self, table: str, row: Row, key: Iterable[str]) -> bool:
        """Add a row unless the journal has it (False); raises InvariantBroken where it has another by that key."""
        before = self._find(table, {column: row[column] for column in key})
        if before is not None:
            return self._same(table, row, before)
        self._write((table, row))
        return True

    def _same(self, table: str, row: Row, before: Mapping[str, Any]) -> bool:
        """False: a row is there already, and nothing is to be written. Raises InvariantBroken where it is another."""
        for column, value in _stored(row).items():
            if before[column] != value:
                raise InvariantBroken(
                    f"the journal {self.path} has another entry under {table}: {column} is {before[column]!r} there "
                    f"and {value!r} now"
                )
        return False

    def _find(self, table: str, key: Row, latest: str = "") -> Row | None:
        """The committed row that has these values, or None; of several the one with the highest `latest` column."""
        where = " AND ".join(f"{column} IS ?" for column in key)
        order = f" ORDER BY {latest} DESC LIMIT 1" if latest else ""
        with sqlite_errors(self.path):
            found = self._db.execute(f"SELECT * FROM {table} WHERE {where}{order}", [*_stored(key).values()]).fetchone()
            if found is None:
                return None
            row = dict(found)
            with reading(row):
                unpack(row)
        return row

    def _insert_numbered(self, table: str, row: Row) -> int:
        """Add a row at once and return its number."""
        with self._transaction():
            return self._insert(table, tuple(row), [_made(table, row)])

    def _insert_now_if(self, table: str, row: Row, condition: Condition) -> int:
        """Add a row at once where its condition holds, and return its number; 0 where it does not hold."""
        with self._transaction():
            return self._insert_if(table, _made(table, row), condition)

    def _part(self, run: str) -> str:
        """The part of a run that its rows belong to now."""
        return self._parts.get(run, LIVE)

    def _waits(self) -> None:
        waiting = len(self._rows) + len(self._conditional)
        late = monotonic() - self._committed > BATCH_SECONDS
        if not self._held and (not self._batched or waiting >= BATCH_ROWS or late):
            self.flush()

    def _insert(self, table: str, columns: tuple[str, ...], rows: list[Row]) -> int:
        """Add rows that have the same columns, and return the number of the last; rows that are named by their content
        and are there already stay away."""
        # Straight to SQLite: a library that looks at every value of every row takes longer than the writing.
        mark = self._mark(table)
        columns += tuple(mark)
        values = [(*row.values(), *mark.values()) for row in rows]
        insert, last, connection = _insertion(table, columns), self._last(table), self._db.conn
        if table in CONTENT_NAMED:
            values = [row for row in values if connection.execute(insert, row).rowcount == 1]
        else:
            connection.executemany(insert, values)
        self._written.append(Written(table, last + 1, columns, values))
        return last + len(values)

    def _last(self, table: str) -> int:
        """The number of a table's last row."""
        number: int = self._db.conn.execute(f"SELECT coalesce(max(rowid), 0) FROM {table}").fetchone()[0]
        return number

    def _insert_if(self, table: str, row: Row, condition: Condition) -> int:
        """Add a row and return its number; 0 where its condition does not hold."""
        row = {**row, **self._mark(table)}
        sql = f"INSERT INTO {table} ({', '.join(row)}) SELECT {_places(row)} WHERE {condition.sql}"
        done = self._db.conn.execute(sql, (*row.values(), *condition.values))
        if done.rowcount == 1 and done.lastrowid is not None:
            self._written.append(Written(table, done.lastrowid, tuple(row), [tuple(row.values())]))
            return done.lastrowid
        return 0

    def _mark(self, table: str) -> Row:
        """The number of the journal's last event, for rows of a desk; asked within the transaction that writes them."""
        if self._batched or table not in MARKED:
            return {}
        return {"event": self._db.conn.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0]}

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, the links of the chain too. The write lock is taken first: a transaction that has read cannot
        wait for it any more."""
        connection = self._db.conn
        with sqlite_errors(self.path):
            connection.execute("BEGIN IMMEDIATE")
            self._written.clear()
            try:
                yield
                self._chain.extend(self._written)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")


def _kind(row: tuple[str, Row]) -> tuple[str, tuple[str, ...]]:
    return row[0], tuple(row[1])


@cache
def _insertion(table: str, columns: tuple[str, ...]) -> str:
    verb = "INSERT OR IGNORE" if table in CONTENT_NAMED else "INSERT"
    return f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({_places(columns)})"


def _places(columns: Iterable[str]) -> str:
    return ", ".join("?" for _ in columns)


def _made(table: str, row: Row) -> Row:
    return pack(table, _stored(row))


def _stored(row: Row) -> Row:
    # Texts are most values; the call takes longer than the look.
    return {column: value if type(value) is str and value.isascii() else stored(value) for column, value in row.items()}


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
            content = bytearray(new_journal())
            # SQLite refuses at once, without waiting, where two connections turn write-ahead logging on together.
            content[FORMAT_VERSIONS] = b"\x02\x02"
            _put_in_place(content, path)
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


def _put_in_place(content: bytes | bytearray, path: Path) -> None:
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
