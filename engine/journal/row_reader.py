"""A read-only connection to a journal, and the queries that all of its tables share."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, Self, TypeVar

from engine.errors import InvariantBroken, MalformedData
from engine.journal.database import WAIT, damaged, damaged_file, open_read_only, reading, sqlite_errors
from engine.journal.point_in_time import Within, hide_after_event, hide_after_session, hide_within_session
from engine.journal.rows import unpack, value_of
from engine.journal.verification import schema_fault

T = TypeVar("T")


class RowReader:
    """Reader of one journal's rows; a context manager that closes."""

    def __init__(self, path: Path, wait: float = WAIT, *, at: int | date | Within | None = None) -> None:
        """Open a journal; with `at`, a desk's as it was at that event, or a backtest's as it was once that session was
        settled and decided, or within it. Raises as `open_read_only` does."""
        self.path = path
        self._connection = open_read_only(path, wait)
        with sqlite_errors(path):
            if isinstance(at, int):
                hide_after_event(self._connection, at)
            elif isinstance(at, Within):
                hide_within_session(self._connection, at)
            elif at is not None:
                hide_after_session(self._connection, at)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def _values(
        self, kind: type[T], rows: str, narrow: Mapping[str, Any] | None = None, order: str = "rowid"
    ) -> tuple[T, ...]:
        """The rows of a table, or of a SELECT, as values of a class: those that meet the conditions (see `where`)."""
        conditions, values = where(narrow or {})
        select = rows if " " in rows else f"SELECT * FROM {rows}"
        return tuple(value_of(kind, row) for row in self._rows(f"{select}{conditions} ORDER BY {order}", *values))

    def _rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        try:
            with sqlite_errors(self.path):
                found: list[dict[str, Any]] = self._connection.execute(sql, values).fetchall()
        except MalformedData:
            with suppress(sqlite3.Error):
                self._find_damaged_text(sql, values)
            raise
        except InvariantBroken as error:  # a query that SQLite does not understand: is it the query, or the tables?
            if fault := schema_fault(self._connection):
                raise damaged_file(f"{fault}; {error.__cause__}", self.path) from error
            raise
        for row in found:
            if row.get("packed") is not None:
                with reading(row):
                    unpack(row)
        return found

    def _find_damaged_text(self, sql: str, values: Sequence[Any]) -> None:
        """Raise MalformedData naming the first row with a text that is none, after SQLite refused to read it."""
        connection = self._connection
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        try:
            for row in connection.execute(sql, values):
                for column, value in row.items():
                    if isinstance(value, str) and not _is_text(value):
                        raise damaged(row, column)
        finally:
            connection.text_factory = str


def _is_text(value: str) -> bool:
    return value == value.encode("utf-8", "replace").decode()


def where(narrow: Mapping[str, Any], *more: str) -> tuple[str, list[Any]]:
    """A WHERE clause over the conditions that are not None (`column` or `column operator` to value), and its values;
    the conditions in `more` come last and bring their values themselves."""
    given = {column: value for column, value in narrow.items() if value is not None}
    terms = [f"{column} ?" if " " in column else f"{column} = ?" for column in given] + list(more)
    values = [value if isinstance(value, (str, int)) else str(value) for value in given.values()]
    return (f" WHERE {' AND '.join(terms)}" if terms else ""), values
