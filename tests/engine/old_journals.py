"""Journals as older programs wrote them: made by the first steps of the story alone, filled with a newer one's rows."""

from __future__ import annotations

import json
import sqlite3
import zlib
from pathlib import Path

from sqlite_utils import Database

from engine.journal.migrations import APPLICATION, MIGRATIONS

PACKED = 7
"""The version from which on texts are compressed."""


def as_version(version: int, path: Path, rows_of: Path | None = None) -> None:
    """Writes a journal of that version at `path`, with every row of another journal that it has a place for. `rows_of`
    may be `path` itself."""
    made = path.with_name(path.name + ".older")
    made.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(made)
    db = Database(connection)
    db.enable_wal()
    for step in MIGRATIONS[:version]:
        step(db)
    if rows_of is not None:
        connection.execute("ATTACH ? AS newer", [str(rows_of)])
        for table in db.table_names():
            columns = ", ".join(column.name for column in db[table].columns)
            connection.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM newer.{table} ORDER BY rowid")
        if version < PACKED:
            _unpack(connection)
        connection.commit()
        connection.execute("DETACH newer")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    db.close()
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    made.replace(path)


def _unpack(connection: sqlite3.Connection) -> None:
    """Puts the texts of answers and charts where they stood before they were compressed."""
    texts = {
        seq: json.loads(zlib.decompress(data))
        for seq, data in connection.execute("SELECT seq, packed FROM newer.answers WHERE packed IS NOT NULL")
    }
    charts = {
        name: zlib.decompress(data).decode()
        for name, data in connection.execute("SELECT fingerprint, packed FROM newer.charts WHERE packed IS NOT NULL")
    }
    triggers = list(connection.execute("SELECT name, sql FROM main.sqlite_master WHERE type = 'trigger'"))
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for seq, said in texts.items():
        columns = {name: None if said[name] is None else json.dumps(said[name]) for name in ("raw", "answer")}
        columns |= {"messages": json.dumps(said["messages"]), "text": said["text"]}
        marks = ", ".join(f"{column} = ?" for column in columns)
        connection.execute(f"UPDATE main.answers SET {marks} WHERE seq = ?", (*columns.values(), seq))
    for name, text in charts.items():
        connection.execute("UPDATE main.charts SET json = ? WHERE fingerprint = ?", (text, name))
    for _, sql in triggers:
        connection.execute(sql)


def version_of(path: Path) -> int:
    """Which version a journal's header says."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()
