"""The chain of hashes over a journal's rows: each is hashed with the hash of the row that was written before it.

One table holds the chain, in the order in which rows of all tables were written, whichever process wrote them: rows and
their hashes go in under SQLite's one write lock, in one transaction. A hash covers the values as they are stored, so
that it is checked without reading what they mean. Standard library only.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from engine.journal.schema import CHAIN, CHAINED, VERSIONS

GENESIS = bytes(32)
"""The hash before the first row."""

LINK_BYTES = 16
"""Bytes of a row's hash that its link keeps and the next row's hash covers."""

_KEPT = frozenset({str, int, bytes, type(None)})
"""Types of values that SQLite stores as they are, in columns that were made for them."""

_NUMBER = {table: number for number, table in enumerate(CHAINED)}


def row_hash(before: bytes, table: int, row: int, values: Sequence[Any]) -> bytes:
    """SHA-256 over the hash before, the table's place in CHAINED, the row's number, and its values in the order of the
    columns. NULLs at the end are left out, so that a later version may add columns that are NULL in earlier rows."""
    end = len(values)
    while end and values[end - 1] is None:
        end -= 1
    # Literals of Python in ASCII tell NULL, integers, reals, texts and blobs apart, are made at once, and are the same
    # in every version: what is not ASCII is escaped, printable or not.
    return hashlib.sha256(before + ascii((table, row, *values[:end])).encode()).digest()


@dataclass(frozen=True, slots=True)
class Written:
    """Rows of one table that were inserted one after another: the number of the first, and the values by column."""

    table: str
    first: int
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


class Chain:
    """The chain of one connection that writes; rows and links go in within the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._orders: dict[tuple[str, tuple[str, ...]], Callable[[Sequence[Any]], Sequence[Any]]] = {}

    def extend(self, written: Iterable[Written]) -> None:
        """Add a link for every row. Raises sqlite3.Error."""
        with closing(self._connection.cursor()) as cursor:
            cursor.row_factory = None
            seq, before = last_link(cursor)
            links = []
            for some in written:
                source, in_order = _NUMBER[some.table], self._in_order(cursor, some)
                for number, row in enumerate(some.rows, some.first):
                    # What SQLite may convert is read back: it is hashed as it is stored.
                    if not _KEPT.issuperset(map(type, row)):
                        cursor.execute(f"SELECT * FROM {some.table} WHERE rowid = ?", (number,))
                        values = cursor.fetchone()
                    else:
                        values = in_order((*row, None, number))
                    before = row_hash(before, source, number, values)[:LINK_BYTES]
                    seq += 1
                    links.append((seq, source, number, before))
            cursor.executemany(f"INSERT INTO {CHAIN} (seq, source, row, hash) VALUES (?, ?, ?, ?)", links)

    def _in_order(self, cursor: sqlite3.Cursor, some: Written) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """The way from a row, followed by NULL and its number, to its values in the order of the table's columns, none
        of which has a default."""
        key = some.table, some.columns
        if key not in self._orders:
            places = {column: place for place, column in enumerate(some.columns)}
            absent = len(places)
            found = cursor.execute("SELECT name FROM pragma_table_info(?)", (some.table,)).fetchall()
            number = {"seq": absent + 1}
            self._orders[key] = itemgetter(*((number | places).get(name, absent) for (name,) in found))
        return self._orders[key]


def last_link(cursor: sqlite3.Cursor) -> tuple[int, bytes]:
    """The number and the hash of the last link; 0 and GENESIS where there is none."""
    found: tuple[int, bytes] | None
    found = cursor.execute(f"SELECT seq, hash FROM {CHAIN} ORDER BY seq DESC LIMIT 1").fetchone()
    return found or (0, GENESIS)


def note_version(connection: sqlite3.Connection, version: int) -> None:
    """Write down in a journal without rows that it has a version with this schema: the first row of its chain."""
    columns, row = ("version", "earlier", "schema"), (version, 0, schema_hash(connection))
    connection.execute(f"INSERT INTO {VERSIONS} (seq, {', '.join(columns)}) VALUES (1, ?, ?, ?)", row)
    Chain(connection).extend([Written(VERSIONS, 1, columns, [row])])


def schema_hash(connection: sqlite3.Connection) -> bytes:
    """SHA-256 over the names and statements of all tables, indexes and triggers."""
    with closing(connection.cursor()) as cursor:
        cursor.row_factory = None
        made = cursor.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    return row_hash(GENESIS, 0, 0, [value for row in made for value in row])
