"""Create the journal's tables as versions 1 to 7 had them, one numbered step after another.

These steps were released with version 0.1 and never change: a journal that it wrote goes on from the step where it
stopped, and a new one takes all of them. They are cut off from `migrations` because nobody has to read them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.journal.schema import DECISION_KEY, append_only, refuse, table

if TYPE_CHECKING:
    from sqlite_utils import Database


def m0001_the_books(db: Database) -> None:
    """Runs, events, commands, answers, decisions, orders and books."""
    # Where processes meet: events in order, and commands.
    table(db, "events", {"seq": int, "run": str, "time": str, "type": str, "json": str}, "seq")
    table(db, "commands", {"seq": int, "time": str, "type": str, "json": str, "done": str}, "seq", nullable=["done"])
    table(
        db,
        "runs",
        {"id": str, "kind": str, "name": str, "label": str, "spec": str, "symbols": str, "session": str}
        | {"cycle": int, "started": str, "ended": str, "outcome": str, "value": str, "detail": str}
        | {"model": str, "extra": str},
        "id",
        nullable=["spec", "session", "ended", "outcome", "value", "model", "extra"],
    )
    table(db, "stretches", {"run": str, "part": str, "initial_value": str}, ("run", "part"))

    # Questions to the models, their answers, and the decisions made of them.
    table(db, "prompts", {"hash": str, "text": str}, "hash")
    table(db, "charts", {"fingerprint": str, "json": str}, "fingerprint")
    table(
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
    table(
        db,
        "decisions",
        {"run": str, "part": str, "session": str, "cycle": int, "symbol": str, "owner": str}
        | {"action": str, "size": str, "asked_action": str, "asked_size": int, "asked_rule": str}
        | {"explanation": str, "abstained": str, "cuts": str, "unresolved": str},
        DECISION_KEY,
        nullable=["asked_rule"],
    )

    # Orders, their states, and the trades that came of them.
    table(
        db,
        "orders",
        {"id": str, "run": str, "desk": str, "session": str, "cycle": int, "symbol": str, "side": str}
        | {"quantity": str, "notional": str, "reason": str, "state": str, "time": str},
        "id",
        nullable=["quantity", "notional"],
    )
    table(
        db,
        "order_moves",
        {"seq": int, "order_id": str, "time": str, "state": str, "filled_quantity": str, "detail": str},
        "seq",
    )
    table(
        db,
        "fills",
        {"seq": int, "run": str, "part": str, "order_id": str, "session": str, "symbol": str, "side": str}
        | {"quantity": str, "price": str, "fee": str, "reason": str, "execution": str},
        "seq",
        nullable=["execution"],
    )
    table(
        db,
        "cash_flows",
        {"seq": int, "run": str, "part": str, "session": str, "symbol": str, "kind": str, "amount": str},
        "seq",
    )

    # The books at each close; a flat symbol whose price was known has quantity 0 and no cost.
    table(
        db,
        "equity",
        {"run": str, "session": str, "part": str, "value": str, "cash": str, "money_step": str},
        ("run", "session"),
    )
    table(
        db,
        "positions",
        {"run": str, "session": str, "symbol": str, "quantity": str, "price": str, "average_cost": str},
        ("run", "session", "symbol"),
        nullable=["price", "average_cost"],
    )
    table(
        db,
        "outcomes",
        {"run": str, "decision_session": str, "session": str, "symbol": str, "owner": str, "action": str}
        | {"size": str, "close": str, "reward": str, "cumulative": str, "key_factors": str},
        ("run", "decision_session", "symbol", "owner"),
    )
    table(db, "dropped", {"seq": int, "run": str, "source": str, "reason": str, "count": int}, "seq")
    table(db, "notes", {"seq": int, "run": str, "time": str, "level": str, "text": str}, "seq", nullable=["time"])

    _indexes(db)
    for name in ("events", "answers", "order_moves", "fills", "cash_flows", "notes", "prompts", "charts"):
        append_only(db, name)
    refuse(db, "commands", "DELETE", "commands are never deleted")
    refuse(db, "commands", "UPDATE OF seq, time, type, json", "a command is never changed")
    refuse(db, "commands", "UPDATE OF done", "a command is done once", "WHEN OLD.done IS NOT NULL")


def m0002_documents(db: Database) -> None:
    """A run as one JSON document per kind, so that it can be shown again without its data."""
    table(db, "documents", {"run": str, "kind": str, "json": str}, ("run", "kind"))


def m0003_evidence(db: Database) -> None:
    """The memories that a decision rests on: a JSON list of their ids."""
    db.execute("ALTER TABLE decisions ADD COLUMN evidence TEXT NOT NULL DEFAULT '[]'")


def m0004_recollections(db: Database) -> None:
    """The memories recalled for a decision, with the figures they were ranked by; a memory's text is stored once."""
    table(db, "memories", {"id": str, "kind": str, "written": str, "text": str}, "id")
    table(
        db,
        "recollections",
        {"run": str, "session": str, "cycle": int, "symbol": str, "owner": str, "memory": str, "layer": str}
        | {"recency": float, "relevancy": float, "importance": float, "score": float, "rank": int}
        | {"types": str, "cited": int},
        (*DECISION_KEY, "memory"),
    )
    for name in ("memories", "recollections"):
        append_only(db, name)


def m0005_accounts(db: Database) -> None:
    """A broker's account behind a desk: its id, its activity, the broker's ids of orders, and adopted differences.
    `booked` is 0 for activity from before the desk, or of nobody's order."""
    table(db, "accounts", {"seq": int, "kind": str, "account": str, "time": str}, "seq")
    table(
        db,
        "activities",
        {"id": str, "run": str, "kind": str, "time": str, "symbol": str, "broker_id": str, "side": str}
        | {"quantity": str, "price": str, "amount": str, "words": str, "booked": int},
        "id",
        nullable=["symbol", "side", "price"],
    )
    table(db, "broker_orders", {"broker_id": str, "order_id": str}, "broker_id")
    table(
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
    for name in ("accounts", "activities", "broker_orders", "adoptions"):
        append_only(db, name)


def m0006_inputs(db: Database) -> None:
    """The inputs of a run when it decided, by name: lists of parts, each compressed and stored once under the hash of
    its content."""
    table(db, "chunks", {"hash": str, "data": bytes}, "hash")
    table(db, "inputs", {"run": str, "cycle": int, "name": str, "chunks": str}, ("run", "cycle", "name"))
    for name in ("chunks", "inputs"):
        append_only(db, name)


def m0007_packed(db: Database) -> None:
    """The texts of an answer (a JSON object of its messages, text, raw and answer) and the JSON of a chart, compressed;
    the columns that they had before are empty where `packed` is not."""
    for name in ("answers", "charts"):
        db.execute(f"ALTER TABLE {name} ADD COLUMN packed BLOB")


def _indexes(db: Database) -> None:
    for name, columns in (
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
        db.table(name).create_index(columns)
    # A broker's stream and its history tell of the same execution more than once.
    db.table("fills").create_index(("order_id", "execution"), index_name="one_fill_per_execution", unique=True)
