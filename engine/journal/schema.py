"""Names and building blocks of the journal's tables, for every migration.

Importing this module loads nothing heavy: a reader asks it for the names of parts only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlite_utils import Database

APPLICATION = 0x50444A31
"""The application id in a journal's header, by which it differs from any other SQLite file."""

DECISION_KEY = ("run", "session", "cycle", "symbol", "owner")

MARKED = (
    *("commands", "command_states", "runs", "run_states", "stretches", "documents", "dropped", "notes"),
    *("answers", "opinions", "decisions", "recollections", "inputs", "orders", "order_states", "fills"),
    *("cash_flows", "equity", "positions", "outcomes", "accounts", "activities", "broker_orders", "adoptions"),
)
"""Tables whose rows name, in the column `event`, the journal's last event when they were written: the journal can be
read as it was at any event. A backtest's rows name none: it writes in batches, and has sessions to go by."""

WARM_UP, TEST, LIVE = "warm-up", "test", "live"
"""The parts of a run: a backtest has a test and perhaps a warm-up before it, a desk's run is live."""


def table(
    db: Database,
    name: str,
    columns: Mapping[str, type],
    key: str | tuple[str, ...],
    nullable: Iterable[str] = (),
) -> None:
    """Create a STRICT table; every column that is not named nullable, or counted by SQLite, is NOT NULL."""
    required: Any = [c for c in columns if c not in nullable and c != key]
    db.table(name).create(dict(columns), pk=key, not_null=required, strict=True)


def append_only(db: Database, name: str) -> None:
    """Have the database refuse to change or delete a row of a table."""
    refuse(db, name, "UPDATE", f"{name} are never changed")
    refuse(db, name, "DELETE", f"{name} are never deleted")


def refuse(db: Database, name: str, deed: str, why: str, when: str = "") -> None:
    """Have the database refuse a statement (`UPDATE`, `DELETE`, `UPDATE OF column`) on a table, with the reason."""
    trigger = f"{name}_no_{deed.lower().replace(' ', '_').replace(',', '')}"
    db.execute(f"CREATE TRIGGER {trigger} BEFORE {deed} ON {name} {when} BEGIN SELECT RAISE(ABORT, '{why}'); END")


def drop_triggers(db: Database) -> None:
    """Lift all refusals for the length of a migration; it puts them back at its end."""
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {name}")


def rebuild(
    db: Database, name: str, columns: Mapping[str, type], key: str | tuple[str, ...], nullable: Iterable[str] = ()
) -> None:
    """Create a table anew with other columns or another key, and copy its rows in their order. A column that the old
    table lacks is NULL where it may be, else empty text. Indexes have to be made again."""
    table(db, f"{name}_new", columns, key, nullable)
    before = {column.name for column in db.table(name).columns}
    values = [c if c in before else "NULL" if c in nullable or c == key else "''" for c in columns]
    copied = f"SELECT {', '.join(values)} FROM {name} ORDER BY rowid"
    db.execute(f"INSERT INTO {name}_new ({', '.join(columns)}) {copied}")
    db.execute(f"DROP TABLE {name}")
    db.execute(f"ALTER TABLE {name}_new RENAME TO {name}")
