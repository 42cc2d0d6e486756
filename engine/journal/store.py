"""How rows reach the journal's file: waiting lists, transactions, and what already stands."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any

from engine.errors import DataError, InvariantBroken, TryAgainLater
from engine.journal.codec import Row
from engine.journal.database import in_words, version_of
from engine.journal.migrations import VERSION, migrate

BATCH_ROWS = 2000
BATCH_SECONDS = 0.25
"""A batched store commits when this many rows wait, or when the last commit is this long ago."""

CONTENT_NAMED = frozenset({"prompts", "charts", "memories", "chunks"})
"""Tables whose rows are named by a hash of their content: the first is as good as any later one."""


class RowStore:
    """One connection that writes. Rows go in together or not at all, at once or (`batched`) some time later."""

    def __init__(self, path: Path, *, batched: bool, wait: float) -> None:
        from sqlite_utils import Database

        self.path = path
        self._batched = batched
        self._rows: dict[str, list[Row]] = {}
        self._updates: list[tuple[str, tuple[Any, ...], str]] = []
        self._count = 0
        self._committed = monotonic()
        self._kept: set[str] = set()
        self._held = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=wait)
        except OSError as error:
            raise DataError(f"there can be no journal at {path} ({error.strerror}): check the folder") from error
        except sqlite3.Error as error:
            raise in_words(error, path) from error
        try:
            connection.row_factory = sqlite3.Row
            self._db = Database(connection, execute_plugins=False)
            self._make_ready()
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Commits what waits, and closes."""
        try:
            self.flush()
        finally:
            self._db.close()

    def write(self, *rows: tuple[str, Row]) -> None:
        """Adds rows (table, row), together with all that waits."""
        for table, row in rows:
            self._rows.setdefault(table, []).append(_storable(row))
        self._count += len(rows)
        late = monotonic() - self._committed > BATCH_SECONDS
        if not self._held and (not self._batched or self._count >= BATCH_ROWS or late):
            self.flush()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written inside is committed at the end as one, or not at all."""
        self.flush()
        self._held = True
        try:
            yield
        except BaseException:
            self._rows, self._updates, self._count = {}, [], 0
            self._kept.clear()
            raise
        finally:
            self._held = False
        self.flush()

    def keeps(self, name: str) -> bool:
        """Whether a row that is named by its content was kept before."""
        return name in self._kept

    def keep(self, table: str, name: str, row: Row) -> None:
        """Lets a row that is named by its content wait, unless it was kept before."""
        if name not in self._kept:
            self._kept.add(name)
            self._rows.setdefault(table, []).append(_storable(row))

    def update(self, sql: str, values: tuple[Any, ...], complaint: str) -> None:
        """Lets a change of exactly one row wait; when its turn comes and it finds none, the complaint is raised as
        InvariantBroken."""
        self._updates.append((sql, tuple(_storable_value(value) for value in values), complaint))

    def write_once(self, table: str, row: Row, key: Iterable[str]) -> bool:
        """Adds a row unless the journal has it (False); raises InvariantBroken where it has another by that key."""
        known = self.find(table, {column: row[column] for column in key})
        if known is not None:
            return self.same(table, row, known)
        self.write((table, row))
        return True

    def same(self, table: str, row: Row, known: Mapping[str, Any]) -> bool:
        """False (nothing is to be written) where a row stands already; raises where what stands is another."""
        for column, value in _storable(row).items():
            if known[column] != value:
                raise InvariantBroken(
                    f"the journal {self.path} has another entry under {table}: {column} is {known[column]!r} there "
                    f"and {value!r} now"
                )
        return False

    def find(self, table: str, key: Row) -> Row | None:
        """The committed row that has these values, or None."""
        where = " AND ".join(f"{column} = ?" for column in key)
        try:
            found = self._db.execute(f"SELECT * FROM {table} WHERE {where}", list(key.values())).fetchone()
        except sqlite3.Error as error:
            raise in_words(error, self.path) from error
        return None if found is None else dict(found)

    def insert_numbered(self, table: str, row: Row) -> int:
        """Adds a row at once and returns the number that it got."""
        with self._transaction():
            self._insert(table, [_storable(row)])
            return int(self._db.execute("SELECT last_insert_rowid()").fetchone()[0])

    def change(self, sql: str, values: tuple[Any, ...]) -> int:
        """Changes rows at once and returns how many there were."""
        with self._transaction():
            return self._db.execute(sql, values).rowcount

    def flush(self) -> None:
        """Commits all that waits: first the rows, then the changes, in order. Inside `together` it waits on."""
        if self._held or not (self._rows or self._updates):
            return
        rows, updates = self._rows, self._updates
        self._rows, self._updates, self._count = {}, [], 0
        try:
            with self._transaction():
                for table, some in rows.items():
                    self._insert(table, some)
                for sql, values, complaint in updates:
                    if self._db.execute(sql, values).rowcount != 1:
                        raise InvariantBroken(complaint)
        except BaseException as error:
            self._kept.clear()
            # A backtest that finds the file locked, or is interrupted, commits later. What a desk was told has
            # failed must not turn up afterwards.
            if self._batched and isinstance(error, TryAgainLater | KeyboardInterrupt):
                self._rows, self._updates = rows, updates
            raise
        self._committed = monotonic()

    def _make_ready(self) -> None:
        version = version_of(self._db.conn, self.path)
        try:
            self._db.enable_wal()
            self._db.execute(f"PRAGMA synchronous = {'NORMAL' if self._batched else 'FULL'}")
        except sqlite3.Error as error:
            raise in_words(error, self.path) from error
        if version < VERSION:
            with self._transaction():
                if version_of(self._db.conn, self.path) < VERSION:  # another process may have been quicker
                    migrate(self._db)

    def _insert(self, table: str, rows: list[Row]) -> None:
        # Straight to SQLite: a library that looks at every value of every row takes longer than the writing.
        verb = "INSERT OR IGNORE" if table in CONTENT_NAMED else "INSERT"
        for columns, alike in groupby(rows, tuple):
            marks = ", ".join("?" * len(columns))
            sql = f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({marks})"
            self._db.conn.executemany(sql, (tuple(row.values()) for row in alike))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing. The write lock is taken first: a transaction that has read cannot wait for it any more."""
        connection = self._db.conn
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise in_words(error, self.path) from error


def _storable(row: Row) -> Row:
    return {column: _storable_value(value) for column, value in row.items()}


def _storable_value(value: Any) -> Any:
    """Text that UTF-8 can hold: models do answer with half of a surrogate pair."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value
