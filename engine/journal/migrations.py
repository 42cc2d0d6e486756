"""The story of the journal's database, one numbered step after another; a step that was released never changes.

Money, prices, quantities and sizes are decimal text, sessions ISO dates, times ISO in UTC with microseconds, `json`
columns one JSON document. `run` is always a run's id. Importing this module loads nothing heavy: a reader asks it
for `VERSION` only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlite_utils import Database

APPLICATION = 0x50444A31
"""What a journal carries in its header as application id, to be told from any other SQLite file."""

DECISION_KEY = ("run", "session", "cycle", "symbol", "owner")

WARM_UP, TEST, LIVE = "warm-up", "test", "live"
"""The parts of a run: a backtest has a test and perhaps a warm-up before it, a desk's run is live."""

APPEND_ONLY = ("events", "answers", "order_moves", "fills", "cash_flows", "notes", "prompts", "charts")
"""Tables in which the database itself refuses to change or delete a row."""


def m0001_the_books(db: Database) -> None:
    """All that a desk and a backtest write down from the first day."""
    # Where processes meet: what happened (one line each, in order) and what was asked for.
    _table(db, "events", {"seq": int, "run": str, "time": str, "type": str, "json": str}, "seq")
    _table(db, "commands", {"seq": int, "time": str, "type": str, "json": str, "done": str}, "seq", nullable=["done"])
    _table(
        db,
        "runs",
        {"id": str, "kind": str, "name": str, "label": str, "spec": str, "symbols": str, "session": str}
        | {"cycle": int, "started": str, "ended": str, "outcome": str, "value": str, "detail": str}
        | {"model": str, "extra": str},
        "id",
        nullable=["spec", "session", "ended", "outcome", "value", "model", "extra"],
    )
    _table(db, "stretches", {"run": str, "part": str, "initial_value": str}, ("run", "part"))

    # What was asked of the models, what they said, and what was made of it.
    _table(db, "prompts", {"hash": str, "text": str}, "hash")
    _table(db, "charts", {"fingerprint": str, "json": str}, "fingerprint")
    _table(
        db,
        "answers",
        {"seq": int, "run": str, "session": str, "cycle": int, "symbol": str, "owner": str, "agent": str}
        | {"attempt": int, "sample": int, "time": str, "model": str, "prompt_hash": str, "system": str}
        | {"messages": str, "charts": str, "seen": int, "view": str, "outcome": str, "reason": str, "answer": str}
        | {"raw": str, "text": str, "failure": str, "failure_detail": str, "stop_reason": str}
        | {"input_tokens": int, "cached_input_tokens": int, "output_tokens": int, "cost": str, "latency": float}
        | {"request_hash": str, "cached": int, "notes": str},
        "seq",
        nullable=["answer", "raw", "failure", "failure_detail", "cost"],
    )
    _table(
        db,
        "decisions",
        {"run": str, "part": str, "session": str, "cycle": int, "symbol": str, "owner": str}
        | {"action": str, "size": str, "asked_action": str, "asked_size": int, "asked_rule": str}
        | {"explanation": str, "abstained": str, "cuts": str, "unresolved": str},
        DECISION_KEY,
        nullable=["asked_rule"],
    )

    # Orders, their moves and what came of them.
    _table(
        db,
        "orders",
        {"id": str, "run": str, "desk": str, "session": str, "cycle": int, "symbol": str, "side": str}
        | {"quantity": str, "notional": str, "reason": str, "state": str, "time": str},
        "id",
        nullable=["quantity", "notional"],
    )
    _table(
        db,
        "order_moves",
        {"seq": int, "order_id": str, "time": str, "state": str, "filled_quantity": str, "detail": str},
        "seq",
    )
    _table(
        db,
        "fills",
        {"seq": int, "run": str, "part": str, "order_id": str, "session": str, "symbol": str, "side": str}
        | {"quantity": str, "price": str, "fee": str, "reason": str, "execution": str},
        "seq",
        nullable=["execution"],
    )
    _table(
        db,
        "cash_flows",
        {"seq": int, "run": str, "part": str, "session": str, "symbol": str, "kind": str, "amount": str},
        "seq",
    )

    # The books at each close; a flat symbol whose price was known has quantity 0 and no cost.
    _table(
        db,
        "equity",
        {"run": str, "session": str, "part": str, "value": str, "cash": str, "money_step": str},
        ("run", "session"),
    )
    _table(
        db,
        "positions",
        {"run": str, "session": str, "symbol": str, "quantity": str, "price": str, "average_cost": str},
        ("run", "session", "symbol"),
        nullable=["price", "average_cost"],
    )
    _table(
        db,
        "outcomes",
        {"run": str, "decision_session": str, "session": str, "symbol": str, "owner": str, "action": str}
        | {"size": str, "close": str, "reward": str, "cumulative": str, "key_factors": str},
        ("run", "decision_session", "symbol", "owner"),
    )
    _table(db, "dropped", {"seq": int, "run": str, "source": str, "reason": str, "count": int}, "seq")
    _table(db, "notes", {"seq": int, "run": str, "time": str, "level": str, "text": str}, "seq", nullable=["time"])

    _indexes(db)
    for table in APPEND_ONLY:
        _refuse(db, table, "UPDATE", f"{table} are never changed")
        _refuse(db, table, "DELETE", f"{table} are never deleted")
    _refuse(db, "commands", "DELETE", "commands are never deleted")
    _refuse(db, "commands", "UPDATE OF seq, time, type, json", "a command is never changed")
    _refuse(db, "commands", "UPDATE OF done", "a command is done once", "WHEN OLD.done IS NOT NULL")


def m0002_documents(db: Database) -> None:
    """What a run was shown as, whole, so that it can be shown again without its data: one JSON document per kind."""
    _table(db, "documents", {"run": str, "kind": str, "json": str}, ("run", "kind"))


def m0003_evidence(db: Database) -> None:
    """Which memories a decision rests on: a JSON list of their ids."""
    db.execute("ALTER TABLE decisions ADD COLUMN evidence TEXT NOT NULL DEFAULT '[]'")


def m0004_recollections(db: Database) -> None:
    """What memory brought up for a decision, with the figures it was ranked by then; a memory's text is kept once."""
    _table(db, "memories", {"id": str, "kind": str, "written": str, "text": str}, "id")
    _table(
        db,
        "recollections",
        {"run": str, "session": str, "cycle": int, "symbol": str, "owner": str, "memory": str, "layer": str}
        | {"recency": float, "relevancy": float, "importance": float, "score": float, "rank": int}
        | {"types": str, "cited": int},
        (*DECISION_KEY, "memory"),
    )
    for table in ("memories", "recollections"):
        _refuse(db, table, "UPDATE", f"{table} are never changed")
        _refuse(db, table, "DELETE", f"{table} are never deleted")


def m0005_accounts(db: Database) -> None:
    """A broker's account behind a desk: which one, what its history has told, whose id an order has there, and what
    was taken over from it. `booked` is 0 for what was there before the desk, or is nobody's order."""
    _table(db, "accounts", {"seq": int, "kind": str, "account": str, "time": str}, "seq")
    _table(
        db,
        "activities",
        {"id": str, "run": str, "kind": str, "time": str, "symbol": str, "broker_id": str, "side": str}
        | {"quantity": str, "price": str, "amount": str, "words": str, "booked": int},
        "id",
        nullable=["symbol", "side", "price"],
    )
    _table(db, "broker_orders", {"broker_id": str, "order_id": str}, "broker_id")
    _table(
        db,
        "adoptions",
        {"seq": int, "run": str, "time": str, "session": str, "symbol": str, "before": str, "after": str}
        | {"price": str, "reason": str},
        "seq",
    )
    db.execute("ALTER TABLE cash_flows ADD COLUMN quantity TEXT NOT NULL DEFAULT '0'")
    db.execute("ALTER TABLE cash_flows ADD COLUMN words TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE cash_flows ADD COLUMN execution TEXT")
    db.table("cash_flows").create_index(("execution",), index_name="one_flow_per_activity", unique=True)
    for table in ("accounts", "activities", "broker_orders", "adoptions"):
        _refuse(db, table, "UPDATE", f"{table} are never changed")
        _refuse(db, table, "DELETE", f"{table} are never deleted")


def m0006_inputs(db: Database) -> None:
    """What a run could read when it decided, by name: lists of parts, each compressed and kept once under the hash of
    what it says."""
    _table(db, "chunks", {"hash": str, "data": bytes}, "hash")
    _table(db, "inputs", {"run": str, "cycle": int, "name": str, "chunks": str}, ("run", "cycle", "name"))
    for table in ("chunks", "inputs"):
        _refuse(db, table, "UPDATE", f"{table} are never changed")
        _refuse(db, table, "DELETE", f"{table} are never deleted")


def m0007_packed(db: Database) -> None:
    """The texts of an answer (a JSON object of its messages, text, raw and answer) and the JSON of a chart, compressed:
    the columns that they have had are empty where `packed` is not."""
    for table in ("answers", "charts"):
        db.execute(f"ALTER TABLE {table} ADD COLUMN packed BLOB")


MIGRATIONS: tuple[Callable[[Database], None], ...] = (
    m0001_the_books,
    m0002_documents,
    m0003_evidence,
    m0004_recollections,
    m0005_accounts,
    m0006_inputs,
    m0007_packed,
)
VERSION = len(MIGRATIONS)
"""The version of a journal that this program writes: how many steps of the story it knows."""


def migrate(db: Database) -> None:
    """Brings a journal from its version to ours, all or nothing; the caller holds the write lock and has checked
    that the version is not newer."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    for step in MIGRATIONS[version:]:
        step(db)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def _table(
    db: Database,
    name: str,
    columns: Mapping[str, type],
    key: str | tuple[str, ...],
    nullable: Iterable[str] = (),
) -> None:
    """A STRICT table of which every column that is not named nullable, or counted by SQLite, has to be there."""
    required: Any = [c for c in columns if c not in nullable and c != key]
    db.table(name).create(dict(columns), pk=key, not_null=required, strict=True)


def _indexes(db: Database) -> None:
    for table, columns in (
        ("events", ("run", "type")),
        ("runs", ("kind", "session")),
        ("answers", DECISION_KEY),
        ("decisions", ("symbol", "session")),
        ("orders", ("session", "symbol")),
        ("order_moves", ("order_id",)),
        ("fills", ("order_id",)),
        ("fills", ("run", "session")),
        ("cash_flows", ("run", "session")),
        ("positions", ("symbol", "session")),
        ("outcomes", ("symbol", "owner", "session")),
    ):
        db.table(table).create_index(columns)
    # A broker's stream and its history tell of the same execution more than once.
    db.table("fills").create_index(("order_id", "execution"), index_name="one_fill_per_execution", unique=True)


def _refuse(db: Database, table: str, deed: str, why: str, when: str = "") -> None:
    name = f"{table}_no_{deed.lower().replace(' ', '_').replace(',', '')}"
    db.execute(f"CREATE TRIGGER {name} BEFORE {deed} ON {table} {when} BEGIN SELECT RAISE(ABORT, '{why}'); END")
