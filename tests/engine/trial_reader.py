"""The index of looks, read back: the program itself only adds to it as yet."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import date, datetime
from pathlib import Path

from engine.domain.run import Trial, TrialKind
from engine.journal.rows import unpacked


def looks_in(index: Path) -> tuple[Trial, ...]:
    """Every look, in the order of writing."""
    with closing(sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        return tuple(_look_of(row) for row in connection.execute("SELECT * FROM looks ORDER BY seq"))


def _look_of(row: sqlite3.Row) -> Trial:
    return Trial(
        time=datetime.fromisoformat(row["time"]),
        kind=TrialKind(row["kind"]),
        run=row["run"],
        name=row["name"],
        symbols=tuple(json.loads(row["symbols"])),
        first=date.fromisoformat(row["first"]),
        last=date.fromisoformat(row["last"]),
        spec_hash=row["spec_hash"],
        returns=tuple(json.loads(unpacked(row["returns"]))),
    )
