"""Recompute the chain of hashes: an edited, deleted, inserted or reordered row is found and named."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

from engine.journal.chain import GENESIS, LINK_BYTES, last_link, row_hash, schema_hash
from engine.journal.database import row_name
from engine.journal.schema import CHAIN, CHAINED, VERSIONS

_SOURCES = range(len(CHAINED))
SHOWN = 20
"""Number of faults that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainState:
    """The chain of a journal.

    links: number of hashed rows.
    head: the last link's hash in hex. A known head is the proof that nothing before it was changed or cut off.
    since: the journal's version when the chain began.
    """

    links: int
    head: str
    since: int


def chain_state(connection: sqlite3.Connection) -> ChainState:
    """The chain as it says of itself; `chain_faults` checks that. Raises sqlite3.Error."""
    with closing(connection.cursor()) as cursor:
        cursor.row_factory = None
        links, head = last_link(cursor)
        first = cursor.execute(f"SELECT version FROM {VERSIONS} ORDER BY seq LIMIT 1").fetchone()
    return ChainState(links=links, head=head.hex(), since=first[0])


def has_head(connection: sqlite3.Connection, head: str) -> bool:
    """True where the hash (hex) is a link of the chain. Raises sqlite3.Error."""
    try:
        known = bytes.fromhex(head)
    except ValueError:
        return False
    return bool(connection.execute(f"SELECT 1 FROM {CHAIN} WHERE hash = ?", (known,)).fetchone())


def schema_fault(connection: sqlite3.Connection) -> str:
    """The fault of the schema, empty where it is the one that the journal's version was made with. Raises
    sqlite3.Error."""
    with closing(connection.cursor()) as cursor:
        cursor.row_factory = None
        made = cursor.execute(f"SELECT version, schema FROM {VERSIONS} ORDER BY seq DESC LIMIT 1").fetchone()
        version = cursor.execute("PRAGMA user_version").fetchone()[0]
    if made is None or made[0] != version:
        return f"the header says version {version}, the table {VERSIONS} {made and made[0]}"
    return "" if made[1] == schema_hash(connection) else "a table, an index or a trigger is not as it was made"


def chain_faults(connection: sqlite3.Connection) -> tuple[str, ...]:
    """The first rows that are not as they were written, one line each. Raises sqlite3.Error where a page cannot be
    read at all."""
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        return tuple(islice(_faults(connection), SHOWN))
    finally:
        connection.text_factory = str


def _faults(connection: sqlite3.Connection) -> Iterator[str]:
    rows = {table: _Rows(connection, table) for table in CHAINED}
    before = GENESIS
    with closing(connection.cursor()) as cursor:
        cursor.row_factory = None
        links = cursor.execute(f"SELECT seq, source, row, hash FROM {CHAIN} ORDER BY seq")
        for due, (seq, source, number, link) in enumerate(links, 1):
            if seq != due or source not in _SOURCES or not _is_hash(link):
                yield f"link {seq} of the chain is not number {due}, or of no table: links were changed or deleted"
                return
            of_table = rows[CHAINED[source]]
            yield from of_table.unlinked(number)
            if of_table.number != number:
                yield f"row {number} of {of_table.table} (link {seq}) was deleted"
            elif row_hash(before, source, number, of_table.values)[:LINK_BYTES] != link:
                yield f"{of_table.name} (link {seq}) is not as it was written, or was not written there"
            before = link
    for of_table in rows.values():
        yield from of_table.unlinked(None)


def _is_hash(link: object) -> bool:
    return isinstance(link, bytes) and len(link) == LINK_BYTES


class _Rows:
    """The rows of a table in the order of their numbers, which is that in which they were written."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self.table = table
        self.number: int | None = 0
        self.values: tuple[Any, ...] = ()
        self._cursor = connection.cursor()
        self._cursor.row_factory = None
        self._cursor.execute(f"SELECT rowid, * FROM {table} ORDER BY rowid")
        self._columns = [column[0] for column in self._cursor.description][1:]

    @property
    def name(self) -> str:
        """The row for a person."""
        row: Mapping[str, Any] = dict(zip(self._columns, self.values, strict=True))
        return f"row {self.number} of {self.table} ({row_name(row)})"

    def unlinked(self, number: int | None) -> Iterator[str]:
        """Go on to the row of a number, or past all rows (None); a line for every row on the way there."""
        while self.number is not None and (number is None or self.number < number):
            self.number, *values = next(self._cursor, (None,))
            self.values = tuple(values)
            if self.number is not None and (number is None or self.number < number):
                yield f"{self.name} is not in the chain: it was inserted by another program"
