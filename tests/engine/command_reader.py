"""Commands that nobody has carried out, read from a journal: the program itself asks for single kinds only."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

from engine.journal.rows import command_of
from engine.messages.commands import Command


def waiting_commands(journal: Path) -> tuple[tuple[int, datetime, Command], ...]:
    """Number, time and command of each, in order."""
    with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        done = "SELECT command FROM command_states WHERE state = 'done'"
        rows = connection.execute(f"SELECT * FROM commands WHERE seq NOT IN ({done}) ORDER BY seq")
        return tuple((row["seq"], *command_of(dict(row))) for row in rows)
