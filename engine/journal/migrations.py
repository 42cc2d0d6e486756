"""Bring a journal's database to this program's version, one numbered step after another.

A step that was released never changes. Money, prices, quantities and sizes are decimal text, sessions ISO dates, times
ISO in UTC with microseconds, `json` columns one JSON document. `run` is always a run's id, `book` the owner whose book
a row belongs to, empty for the desk's one book. Importing this module loads nothing heavy: a reader asks it for
`VERSION` only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.journal import first_migrations as first
from engine.journal.schema import APPLICATION, DECISION_KEY, MARKED, append_only, drop_triggers, rebuild, table

if TYPE_CHECKING:
    from sqlite_utils import Database

APPEND_ONLY = (
    *("events", "commands", "command_states", "runs", "run_states", "stretches", "documents", "dropped", "notes"),
    *("prompts", "charts", "answers", "opinions", "decisions", "memories", "recollections", "chunks", "inputs"),
    *("orders", "order_states", "fills", "cash_flows", "equity", "positions", "outcomes", "looks"),
    *("accounts", "activities", "broker_orders", "adoptions"),
)
"""Tables in which the database itself refuses to change or delete a row: every one."""


def m0008_states_and_owners(db: Database) -> None:
    """State changes are rows: the present state of a run, an order or a command is its last one. Owners and their
    books are part of every key; opinions of all owners and looks at windows have tables; rows of a desk name the event
    before them, so that the journal can be read as it was at any event."""
    drop_triggers(db)
    _states(db)
    _owners(db)
    _opinions(db)
    table(
        db,
        "looks",
        {"seq": int, "time": str, "kind": str, "run": str, "name": str, "symbols": str, "first": str, "last": str}
        | {"spec_hash": str, "returns": bytes},
        "seq",
    )
    db.table("looks").create_index(("first", "last"))
    for name in ("cash_flows", "activities"):
        db.execute(f"ALTER TABLE {name} RENAME COLUMN words TO description")
    for column in ("action", "size", "rule"):
        db.execute(f"ALTER TABLE decisions RENAME COLUMN asked_{column} TO proposed_{column}")
    _event_marks(db)
    for name in APPEND_ONLY:
        append_only(db, name)


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
    for name in MARKED:
        run, time = placed.get(name, ("run", ""))
        first_end = f"SELECT min(seq) - 1 FROM events WHERE run = marked.{run} AND type = 'RunFinished'"
        earlier = f"FROM events WHERE time < marked.{time} AND {clocked}"
        before = f"SELECT seq {earlier} ORDER BY time DESC, seq DESC LIMIT 1"
        backtest = f"{run} IN (SELECT id FROM runs WHERE kind = 'backtest')"
        db.execute(f"ALTER TABLE {name} ADD COLUMN event INTEGER")
        place = before if time else first_end.replace(f"marked.{of_order}", of_order)
        db.execute(f"UPDATE {name} AS marked SET event = coalesce(({place}), 0) WHERE NOT {backtest}")
    db.execute("DROP INDEX event_times")


def _states(db: Database) -> None:
    """Take what was updated until now out of runs, orders and commands, and keep it as appended rows."""
    table(
        db,
        "run_states",
        {"seq": int, "run": str, "time": str, "outcome": str, "value": str, "detail": str, "model": str, "extra": str},
        "seq",
        nullable=["outcome", "value", "model", "extra"],
    )
    states = "INSERT INTO run_states (run, time, outcome, value, detail, model, extra)"
    db.execute(f"{states} SELECT id, started, NULL, NULL, '', NULL, NULL FROM runs ORDER BY rowid")
    end = "SELECT id, coalesce(ended, started), outcome, value, detail, model, extra FROM runs"
    db.execute(f"{states} {end} WHERE coalesce(outcome, value, model, extra) IS NOT NULL ORDER BY rowid")
    db.table("run_states").create_index(("run",))
    for column in ("ended", "outcome", "value", "detail", "model", "extra"):
        db.execute(f"ALTER TABLE runs DROP COLUMN {column}")

    table(db, "command_states", {"seq": int, "command": int, "time": str, "state": str}, "seq")
    done = "SELECT seq, done, 'done' FROM commands WHERE done IS NOT NULL ORDER BY seq"
    db.execute(f"INSERT INTO command_states (command, time, state) {done}")
    db.table("command_states").create_index(("command", "state"), unique=True)
    db.execute("ALTER TABLE commands DROP COLUMN done")

    db.execute("ALTER TABLE order_moves RENAME TO order_states")
    db.execute("DROP INDEX idx_order_moves_order_id")
    db.table("order_states").create_index(("order_id",))
    db.execute("ALTER TABLE orders DROP COLUMN state")


def _owners(db: Database) -> None:
    """Name owner and book in every row that can belong to one; what is on record was decided by one owner alone."""
    for name, column in (
        *(("decisions", "book"), ("orders", "owner"), ("orders", "book"), ("cash_flows", "book")),
        *(("fills", "owner"), ("fills", "book")),
    ):
        db.execute(f"ALTER TABLE {name} ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")
    db.execute(
        """UPDATE orders SET owner = made.owner FROM decisions AS made WHERE made.run = orders.run
        AND made.session = orders.session AND made.cycle = orders.cycle AND made.symbol = orders.symbol"""
    )
    db.execute("UPDATE fills SET owner = orders.owner FROM orders WHERE orders.id = fills.order_id")
    rebuild(
        db,
        "equity",
        {"run": str, "session": str, "owner": str, "book": str, "part": str, "value": str, "cash": str}
        | {"money_step": str},
        ("run", "session", "book"),
    )
    rebuild(
        db,
        "positions",
        {"run": str, "session": str, "owner": str, "book": str, "symbol": str, "quantity": str, "price": str}
        | {"average_cost": str},
        ("run", "session", "book", "symbol"),
        nullable=["price", "average_cost"],
    )
    db.table("positions").create_index(("symbol", "session"))
    rebuild(
        db,
        "outcomes",
        {"seq": int, "run": str, "decision_session": str, "cycle": int, "horizon": int, "session": str, "symbol": str}
        | {"owner": str, "action": str, "size": str, "close": str, "reward": str, "cumulative": str}
        | {"key_factors": str},
        "seq",
        nullable=["cycle", "horizon"],
    )
    db.table("outcomes").create_index(("symbol", "owner", "session"))
    # In an index NULL differs from NULL: the one outcome of a session without a cycle is a cycle 0 of its own.
    db.execute(
        """CREATE UNIQUE INDEX one_outcome_per_decision ON outcomes
        (run, decision_session, symbol, owner, ifnull(cycle, 0), ifnull(horizon, 0))"""
    )


def _opinions(db: Database) -> None:
    """Keep the opinion of every owner; a decision on record was the opinion of its one owner."""
    table(
        db,
        "opinions",
        {"run": str, "part": str, "session": str, "cycle": int, "symbol": str, "owner": str, "action": str}
        | {"size": str, "reason": str, "rule": str, "evidence": str, "unresolved": str, "confidence": str},
        DECISION_KEY,
        nullable=["rule", "confidence"],
    )
    db.execute(
        """INSERT INTO opinions
        SELECT run, part, session, cycle, symbol, owner, asked_action, CAST(asked_size AS TEXT),
        CASE abstained WHEN '' THEN explanation ELSE abstained END, asked_rule, evidence, unresolved, NULL
        FROM decisions ORDER BY rowid"""
    )
    db.table("opinions").create_index(("symbol", "session"))


MIGRATIONS: tuple[Callable[[Database], None], ...] = (
    first.m0001_the_books,
    first.m0002_documents,
    first.m0003_evidence,
    first.m0004_recollections,
    first.m0005_accounts,
    first.m0006_inputs,
    first.m0007_packed,
    m0008_states_and_owners,
)
VERSION = len(MIGRATIONS)
"""The version of a journal that this program writes: the number of its migrations."""


def migrate(db: Database) -> None:
    """Bring a journal from its version to ours, all or nothing; the caller holds the write lock and has checked that
    the version is not newer."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    for step in MIGRATIONS[version:]:
        step(db)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")
