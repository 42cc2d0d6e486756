"""Bring a journal's database to this program's version, one numbered step after another.

A step that was released never changes; most are SQL alone, in files under `sql`. Money, prices, quantities and sizes
are decimal text, sessions ISO dates, times ISO in UTC with microseconds, `json` columns one JSON document. `run` is
always a run's id, `book` the owner whose book a row belongs to, empty for the desk's one book. Importing this module
loads nothing heavy: a reader asks it for `VERSION` only.

From version 11 on the rows are in a chain of hashes: a step adds tables, or columns that are NULL in rows on record,
and changes no value of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine.journal.chain import note_version
from engine.journal.schema import APPLICATION, CHAIN, CONTENT_NAMED, MARKED, VERSIONS
from engine.program_files import program_text

if TYPE_CHECKING:
    from sqlite_utils import Database

APPEND_ONLY = (*MARKED, *CONTENT_NAMED, "events", "looks", CHAIN, VERSIONS)
"""Tables in which the database itself refuses to change or delete a row: every one."""


def run_script(name: str, db: Database) -> None:
    """Execute the statements of a file under `sql`, within the caller's transaction."""
    text = program_text(Path(__file__).parent / "sql" / f"{name}.sql")
    for statement in text.split(";\n"):
        db.execute(statement)


def m0008_states_and_owners(db: Database) -> None:
    """State changes are rows, owners and books are part of every key; rows of a desk name the event before them, so
    that the journal can be read as it was at any event."""
    for trigger in db.triggers:
        db.execute(f"DROP TRIGGER {trigger.name}")
    run_script("0008_states_and_owners", db)
    _event_marks(db)
    _refuse_changes(db, APPEND_ONLY)


def m0010_unanswered(db: Database) -> None:
    """Calls of models that no agent got an answer from have rows of their own."""
    run_script("0010_unanswered", db)
    _refuse_changes(db, ("unanswered",))


def m0011_chain(db: Database) -> None:
    """Rows are chained by hashes; `migrate` begins the chain with the rows that are on record."""
    run_script("0011_chain", db)
    _refuse_changes(db, (CHAIN, VERSIONS))


def m0012_debates(db: Database) -> None:
    """Debates between owners have rows of their own."""
    run_script("0012_debates", db)
    _refuse_changes(db, ("debates",))


def m0013_packed_texts(db: Database) -> None:
    """Long texts of rows are packed against those before them; memories recalled for an opinion are one row."""
    run_script("0013_packed_texts", db)
    _refuse_changes(db, ("recalls",))


def m0014_shorter_rows(db: Database) -> None:
    """Rows from here on say less: an older program would not understand them. Tables and rows on record stay."""


def _refuse_changes(db: Database, names: Iterable[str]) -> None:
    """Have the database refuse to change or delete a row of these tables, as far as they are there yet."""
    for name in sorted(set(names).intersection(db.table_names())):
        for deed, verb in (("UPDATE", "changed"), ("DELETE", "deleted")):
            refusal = f"SELECT RAISE(ABORT, '{name} are never {verb}')"
            db.execute(f"CREATE TRIGGER {name}_no_{deed.lower()} BEFORE {deed} ON {name}  BEGIN {refusal}; END")


def _event_marks(db: Database) -> None:
    """Have every row of a desk name the last event before it. A row on record is placed by its time; where it has none,
    before the first end of the run that wrote it."""
    # A step starts at the moment that is decided for; these three bear the time of the clock.
    clocked = "type IN ('RunStarted', 'AgentAnswered', 'RunFinished')"
    db.execute(f"CREATE INDEX event_times ON events (time, seq) WHERE {clocked}")
    of_order = "(SELECT run FROM orders WHERE id = order_id)"
    placed = {"runs": ("id", "started"), "order_states": (of_order, "time"), "broker_orders": (of_order, "")}
    placed |= dict.fromkeys(("run_states", "answers", "adoptions"), ("run", "time"))
    placed |= dict.fromkeys(("commands", "command_states", "accounts"), ("''", "time"))
    for name in sorted(set(MARKED).intersection(db.table_names())):
        run, time = placed.get(name, ("run", ""))
        first_end = f"SELECT min(seq) - 1 FROM events WHERE run = marked.{run} AND type = 'RunFinished'"
        earlier = f"FROM events WHERE time < marked.{time} AND {clocked}"
        before = f"SELECT seq {earlier} ORDER BY time DESC, seq DESC LIMIT 1"
        backtest = f"{run} IN (SELECT id FROM runs WHERE kind = 'backtest')"
        db.execute(f"ALTER TABLE {name} ADD COLUMN event INTEGER")
        place = before if time else first_end.replace(f"marked.{of_order}", of_order)
        db.execute(f"UPDATE {name} AS marked SET event = coalesce(({place}), 0) WHERE NOT {backtest}")
    db.execute("DROP INDEX event_times")


MIGRATIONS: tuple[Callable[[Database], None], ...] = (
    *(partial(run_script, name) for name in ("0001_the_books", "0002_documents", "0003_evidence")),
    *(partial(run_script, name) for name in ("0004_recollections", "0005_accounts", "0006_inputs", "0007_packed")),
    m0008_states_and_owners,
    partial(run_script, "0009_prompt_versions"),
    m0010_unanswered,
    m0011_chain,
    m0012_debates,
    m0013_packed_texts,
    m0014_shorter_rows,
    partial(run_script, "0015_fill_times"),
)
VERSION = len(MIGRATIONS)
"""The version of a journal that this program writes: the number of its migrations."""


def migrate(db: Database) -> None:
    """Bring a journal from its version to ours, all or nothing; the caller holds the write lock and has checked that
    the version is not newer."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    for step in MIGRATIONS[version:]:
        step(db)
    note_version(db.conn, VERSION)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")
