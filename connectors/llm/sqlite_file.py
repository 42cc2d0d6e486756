"""SQLite files of paid results, shared by processes: the base of recorded answers and vectors.

Both are opened, versioned and locked alike; a difference here would be a file that one process cannot read.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import MalformedData, TryAgainLater

_VERSION = 1
_LOCK_TIMEOUT = 10.0
"""Seconds to wait for the lock of another process."""


class SqliteFile:
    """One file; may be used from several threads and by several processes.

    Raises MalformedData for a file of something else or of a newer program, TryAgainLater while it is locked.
    """

    def __init__(self, path: Path, schema: str, content: str) -> None:
        """Open the file, or make it; `content` names what it stores in messages."""
        self.path = path
        self._lock = threading.Lock()
        self._content = content
        self._db = _open(path, schema, content)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The connection for a write; TryAgainLater while another process holds the file."""
        try:
            with self._lock, self._db:
                yield self._db
        except sqlite3.OperationalError as error:
            raise TryAgainLater(f"{self._content} could not be stored in {self.path}: {error}") from None


def _open(path: Path, schema: str, content: str) -> sqlite3.Connection:
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
    try:
        # SQLite refuses at once, without waiting, where two connections turn write-ahead logging on together.
        with FileLock(f"{path}.lock", timeout=_LOCK_TIMEOUT):
            _prepare(connection, path, schema)
    except Timeout:
        connection.close()
        raise TryAgainLater(f"{path} cannot be used now: another process is opening it") from None
    except sqlite3.OperationalError as error:
        connection.close()
        raise TryAgainLater(f"{path} cannot be used now: {error}") from None
    except sqlite3.DatabaseError:
        connection.close()
        raise MalformedData(f"{path} holds no {content}; move it away or name another") from None
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, schema: str) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > _VERSION:
        raise MalformedData(f"{path} is of a newer Paperdesk (version {version}); update this one")
    connection.execute("PRAGMA journal_mode = WAL")
    # A crash may lose the last rows, never the file: they would be requested again.
    connection.execute("PRAGMA synchronous = NORMAL")
    if version < _VERSION:
        connection.execute(schema)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
