"""Names that the journal's tables are built on; importing them loads nothing."""

from __future__ import annotations

VERSION = 19
"""The version of a journal that this program reads and writes: the number grows with every change of what a row or an
event says. tests/engine/journal/test_journal_version.py tells when it has to."""

APPLICATION = 0x50444A31
"""The application id in a journal's header, by which it differs from any other SQLite file."""

DECISION_KEY = ("run", "session", "cycle", "symbol", "owner")

MARKED = (
    *("commands", "command_states", "runs", "run_states", "stretches", "documents", "dropped", "notes"),
    *("answers", "opinions", "decisions", "inputs", "orders", "order_states", "fills"),
    *("cash_flows", "equity", "outcomes", "accounts", "activities", "broker_orders", "adoptions"),
    *("unanswered", "debates", "recalls"),
)
"""Tables whose rows name, in the column `event`, the journal's last event when they were written: the journal can be
read as it was at any event. A backtest's rows name none: it writes in batches, and has sessions to go by."""

CONTENT_NAMED = ("prompts", "charts", "memories", "chunks")
"""Tables whose rows are named by a hash of their content: the first is as good as any later one."""

CHAIN, VERSIONS = "chain", "versions"
"""Tables of the chain of hashes: its links, and the versions that the journal has had since it began."""

APPEND_ONLY = (*MARKED, *CONTENT_NAMED, "events", "looks", CHAIN, VERSIONS)
"""Tables in which the database itself refuses to change or delete a row: every one."""

CHAINED = (
    *("events", "commands", "command_states", "runs", "run_states", "stretches", "documents", "dropped", "notes"),
    *("prompts", "charts", "answers", "opinions", "decisions", "memories", "chunks", "inputs"),
    *("orders", "order_states", "fills", "cash_flows", "equity", "outcomes", "accounts", "activities"),
    *("broker_orders", "adoptions", "looks", "unanswered", VERSIONS, "debates", "recalls"),
)
"""Tables whose rows are in the chain. A link names a table by its place here: a new one comes last."""

WARM_UP, TEST, LIVE = "warm-up", "test", "live"
"""The parts of a run: a backtest has a test and perhaps a warm-up before it, a desk's run is live."""
