"""Journals as older programs wrote them: made by the first steps of the story alone, filled with a newer one's rows."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from datetime import datetime
from pathlib import Path

from sqlite_utils import Database

from engine.journal.answer_rows import request_hash_of, texts_of
from engine.journal.copies import backup, check, replace
from engine.journal.migrations import MIGRATIONS
from engine.journal.packing import PACKED, Unpacker
from engine.journal.reader import JournalReader
from engine.journal.recalled_columns import recalled_rows
from engine.journal.schema import APPLICATION, DECISION_KEY
from engine.messages.events import to_plain

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
        plain = path.with_name(path.name + ".plain")
        backup(rows_of, plain)
        _unpack(plain)
        connection.execute("ATTACH ? AS newer", [str(plain)])
        for table in db.table_names():
            newer = RENAMED.get(table, table)
            known = {row[1] for row in connection.execute(f"PRAGMA newer.table_info({newer})")}
            columns = [column.name for column in db[table].columns]
            values = ", ".join(_value(table, column, known) for column in columns)
            rows = f"SELECT {values} FROM newer.{newer} AS {table} ORDER BY rowid"
            connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) {rows}")
        connection.commit()
        connection.execute("DETACH newer")
        plain.unlink()
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


def _unpack(path: Path) -> None:
    """Put the texts of a journal where they stood before they were packed, without a word to its chain."""
    with JournalReader(path) as reader:
        events = {seq: to_plain(event) for seq, event in reader.events_after(limit=-1)}
        prompts = [answer.prompt_hash for answer in reader.answers()]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.row_factory = sqlite3.Row
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        unpacker = Unpacker(connection, path)
        plain = {
            table: [dict(row) for row in connection.execute(f"SELECT rowid AS rowid, * FROM {table}")]
            for table in PACKED
        }
        for row in (row for rows in plain.values() for row in rows):
            unpacker.unpack(row)
        for row, prompt in zip(plain["answers"], prompts, strict=True):
            texts = texts_of(row)
            row |= {name: None if texts[name] is None else json.dumps(texts[name]) for name in ("raw", "answer")}
            row["prompt_hash"] = prompt
            row["request_hash"] = request_hash_of(row)
        for row in plain["events"]:
            said = events[row["seq"]]
            row |= {"json": json.dumps(said), "time": said["time"]}
        for row in plain["chunks"]:
            row["data"] = zlib.compress(row["text"].encode())
        for table, rows in plain.items():
            for row in rows:
                named = {name: row[name] for name in (*PACKED[table], "data", "time", "request_hash") if name in row}
                marks = ", ".join(f"{name} = ?" for name in named)
                values = (*named.values(), row["rowid"])
                connection.execute(f"UPDATE {table} SET packed = NULL, {marks} WHERE rowid = ?", values)
        connection.execute("DELETE FROM inputs")
        for row in plain["inputs"]:
            for name, chunks in json.loads(row["chunks"]):
                of_run = row["run"], row["cycle"], name, json.dumps(chunks), row["event"]
                connection.execute(
                    "INSERT INTO inputs (run, cycle, name, chunks, event) VALUES (?, ?, ?, ?, ?)", of_run
                )
        for row in plain["recalls"]:
            key = {name: row[name] for name in (*DECISION_KEY, "event")}
            for memory in recalled_rows(row["memories"]):
                each = key | memory
                connection.execute(
                    f"INSERT INTO recollections ({', '.join(each)}) VALUES ({', '.join('?' * len(each))})",
                    (*each.values(),),
                )


def version_of(path: Path) -> int:
    """Which version a journal's header says."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def restore(copy: Path, path: Path, now: datetime) -> Path | None:
    """Put a backup of a journal in its place, checked, as `paperdesk restore` does; the file that keeps what was."""
    incoming = path.with_name(f"{path.name}.restored")
    try:
        backup(copy, incoming)
        check(incoming, copy)
        return replace(incoming, path, now)
    finally:
        for ending in ("", "-wal", "-shm"):
            incoming.with_name(incoming.name + ending).unlink(missing_ok=True)
