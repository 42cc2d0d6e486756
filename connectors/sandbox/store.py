"""The sandbox's books in one SQLite file: every change is on disk, atomically, before it is answered."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.errors import ConfigError

SCHEMA = 1

_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE orders (seq INTEGER PRIMARY KEY, client_order_id TEXT NOT NULL UNIQUE, document TEXT NOT NULL) STRICT;
CREATE TABLE activities (seq INTEGER PRIMARY KEY, document TEXT NOT NULL) STRICT;
CREATE TABLE closes (session TEXT PRIMARY KEY, equity TEXT NOT NULL) STRICT;
"""


class Store:
    """The file of the books; ':memory:' loses them at the end. Belongs to one thread."""

    def __init__(self, path: str) -> None:
        """Open the file, or make it. Raises ConfigError for a file of another kind."""
        if path != ":memory:":
            Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            # A killed process loses nothing so; only the machine's own end could take the last moments.
            self._db.execute("PRAGMA synchronous = NORMAL")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if not version:
                self._db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")
        except sqlite3.Error as error:
            raise ConfigError(f"{path} cannot keep the sandbox's books ({error}): name another file") from None
        if version not in (0, SCHEMA):
            raise ConfigError(f"{path} was written by another version of the sandbox: name another file")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def save(
        self,
        facts: dict[str, Any],
        orders: Iterable[tuple[int, str, str]] = (),
        activities: Iterable[tuple[int, str]] = (),
        closes: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Write changes atomically."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(
                "INSERT OR REPLACE INTO facts VALUES (?, ?)",
                [(name, json.dumps(value)) for name, value in facts.items()],
            )
            self._db.executemany(
                "INSERT INTO orders VALUES (?, ?, ?) ON CONFLICT (seq) DO UPDATE SET document = excluded.document",
                orders,
            )
            self._db.executemany("INSERT INTO activities VALUES (?, ?)", activities)
            self._db.executemany("INSERT OR REPLACE INTO closes VALUES (?, ?)", closes)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def facts(self) -> dict[str, Any]:
        """All values by name."""
        return {name: json.loads(value) for name, value in self._db.execute("SELECT name, value FROM facts")}

    def orders(self) -> list[str]:
        """All orders as written, in order."""
        return [text for (text,) in self._db.execute("SELECT document FROM orders ORDER BY seq")]

    def activities(self) -> list[dict[str, Any]]:
        """All activities in order."""
        rows = self._db.execute("SELECT document FROM activities ORDER BY seq")
        return [json.loads(text) for (text,) in rows]

    def closes(self) -> list[tuple[str, str]]:
        """Equity at each close, in order of session."""
        return list(self._db.execute("SELECT session, equity FROM closes ORDER BY session"))
