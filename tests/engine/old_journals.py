"""Journals as older programs wrote them: made by the first steps of the story alone, filled with a newer one's rows."""

from __future__ import annotations

import json
import sqlite3
import zlib
from pathlib import Path

from sqlite_utils import Database

from engine.journal.migrations import MIGRATIONS
from engine.journal.schema import APPLICATION

PACKED = 7
"""The version from which on texts are compressed."""

LAST_STATE = "SELECT {column} FROM newer.{states} WHERE {key} = {table}.{named} ORDER BY seq DESC LIMIT 1"
UPDATED = {
    "runs": {"table": "runs", "named": "id", "states": "run_states", "key": "run"},
    "orders": {"table": "orders", "named": "id", "states": "order_states", "key": "order_id"},
    "commands": {"table": "commands", "named": "seq", "states": "command_states", "key": "command"},
}
"""Tables whose rows were updated up to version 7, and where their last state stands now."""
RENAMED = {"order_moves": "order_states", "words": "description"} | {
    f"asked_{name}": f"proposed_{name}" for name in ("action", "size", "rule")
}


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
            newer = RENAMED.get(table, table)
            known = {row[1] for row in connection.execute(f"PRAGMA newer.table_info({newer})")}
            columns = [column.name for column in db[table].columns]
            values = ", ".join(_value(table, column, known) for column in columns)
            rows = f"SELECT {values} FROM newer.{newer} AS {table} ORDER BY rowid"
            connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) {rows}")
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


def _value(table: str, column: str, known: set[str]) -> str:
    """The SQL for a column of an older table over the row of the newer one."""
    newer = RENAMED.get(column, column)
    if newer in known or table not in UPDATED:
        return newer
    if column in ("ended", "done"):  # the time of the state that ended it
        narrowed = {"ended": "AND outcome IS NOT NULL", "done": "AND state = 'done'"}[column]
        return f"({LAST_STATE.format(column='time', **UPDATED[table])})".replace("ORDER", f"{narrowed} ORDER")
    return f"({LAST_STATE.format(column=column, **UPDATED[table])})"


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
