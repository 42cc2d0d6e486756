"""Hide rows that were written to a journal after a point, so that it reads as it did then.

A temporary view of the same name goes before each table on one connection: every query of a reader holds as it is, and
the file stays untouched. The point of a desk is an event: a row is there that was written before it, or that the event
announced. The point of a backtest is a session, or a part of one: its rows are written in batches and name no event,
but in the order in which the cycle had them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from engine.journal.schema import MARKED

OF_SESSION = (
    *("answers", "opinions", "decisions", "orders", "fills", "cash_flows", "equity"),
    *("outcomes", "unanswered", "debates", "recalls"),
)
"""Tables of a backtest whose rows belong to a session."""

WITH_ANSWERS = ("unanswered", "debates", "recalls")
"""Those of them that go with the answers about a symbol."""

WITH_DECISIONS = ("opinions", "orders", "debates", "recalls")
"""Tables of a desk whose rows are written in one transaction with a decision about a symbol."""

SENT = "'intended', 'submitting', 'acknowledged'"
"""States of an order up to the broker's word that it has it."""


@dataclass(frozen=True, slots=True)
class Within:
    """A point within a session of a backtest, which is settled: its first `answers` are there, and after all of them
    its first `decisions`."""

    session: date
    answers: int = 0
    decisions: int = 0


def hide_after_event(connection: sqlite3.Connection, event: int) -> None:
    """Hide rows of a desk that were written after the event of a number. A cycle announces its decisions, one event
    each, just before it writes them all: what was announced by then is there, with its orders intended. It announces
    trades and books just after it wrote them: what was announced later is not there yet."""
    conditions = {"events": f"seq <= {event:d}", **dict.fromkeys(MARKED, f"event < {event:d}")}
    for table, announced in _announced(connection, event).items():
        conditions[table] += f" OR {announced}"
    for table, announced in _announced_later(connection, event).items():
        conditions[table] = f"({conditions[table]}) AND NOT ({announced})"
    _hide(connection, conditions)


def hide_after_session(connection: sqlite3.Connection, session: date) -> None:
    """Hide rows of a backtest from after it had settled a session and decided for it: orders of that session are at the
    broker, and the run is not over before its last session."""
    _hide(connection, _until(session, ended=True))


def hide_within_session(connection: sqlite3.Connection, point: Within) -> None:
    """Hide rows of a backtest from after a point within a session; what goes with an answer, or with a decision, is
    there once that is."""
    day = point.session.isoformat()
    earlier = f"session < '{day}'"

    def first(table: str, rows: int) -> str:
        of_day = f"SELECT rowid FROM main.{table} WHERE session = '{day}' ORDER BY rowid LIMIT {rows:d}"
        return f"{earlier} OR rowid IN ({of_day})"

    def along(table: str) -> str:
        return f"{earlier} OR EXISTS (SELECT 1 FROM temp.{table} AS made WHERE made.session = '{day}' AND {same})"

    same = "made.symbol = stored.symbol"
    _hide(
        connection,
        {
            **_until(point.session, ended=False),
            "answers": first("answers", point.answers),
            "decisions": first("decisions", point.decisions),
            **dict.fromkeys(WITH_ANSWERS, along("answers")),
            **dict.fromkeys(("opinions", "orders"), along("decisions")),
        },
    )


def _announced(connection: sqlite3.Connection, event: int) -> dict[str, str]:
    """The conditions of the rows that come with decisions which were announced up to an event and not yet written."""
    cursor = connection.cursor()
    cursor.row_factory = None
    decided = "SELECT seq, run FROM main.events WHERE type = 'DecisionMade' AND seq <= ? ORDER BY seq DESC LIMIT 1"
    last = cursor.execute(decided, (event,)).fetchone()
    if last is None:
        return {}
    seq, run = last
    # A run that was killed after it had announced its decisions makes, and announces, them anew when it goes on.
    begun = "SELECT seq FROM main.events WHERE type = 'RunStarted' AND seq <= ? ORDER BY seq DESC LIMIT 1"
    since = (cursor.execute(begun, (event,)).fetchone() or (0,))[0]
    count = "SELECT count(*) FROM main.events WHERE run = ? AND type = 'DecisionMade' AND seq > ? AND seq <= ?"
    announced = cursor.execute(count, (run, since, event)).fetchone()[0]
    count = "SELECT count(*) FROM main.decisions WHERE run = ? AND event > ? AND event < ?"
    rows = announced - cursor.execute(count, (run, since, event)).fetchone()[0]
    if rows <= 0:
        return {}
    of_run = f"run = (SELECT run FROM main.events WHERE seq = {seq:d})"
    first = f"SELECT rowid FROM main.decisions WHERE {of_run} AND event >= {event:d} ORDER BY rowid LIMIT {rows:d}"
    same = "made.run = stored.run AND made.cycle = stored.cycle"
    made = f"{of_run} AND EXISTS (SELECT 1 FROM temp.decisions AS made WHERE {same}"
    return {
        "decisions": f"rowid IN ({first})",
        **dict.fromkeys(WITH_DECISIONS, f"{made} AND made.symbol = stored.symbol)"),
        "inputs": f"{made})",
        "order_states": "state = 'intended' AND EXISTS (SELECT 1 FROM temp.orders WHERE id = stored.order_id)",
    }


def _announced_later(connection: sqlite3.Connection, event: int) -> dict[str, str]:
    """The conditions of the rows that come with trades and books which were written before an event and announced after
    it, each by an event of its own, in the order of the rows and before another run begins."""
    cursor = connection.cursor()
    cursor.row_factory = None
    begun = "SELECT seq FROM main.events WHERE type = 'RunStarted' AND seq > ? ORDER BY seq LIMIT 1"
    until = cursor.execute(f"SELECT coalesce(({begun}), max(seq) + 1, 0) FROM main.events", (event,)).fetchone()[0]

    def last(table: str, kind: str) -> str:
        coming = f"SELECT count(*) FROM main.events WHERE type = '{kind}' AND seq > ? AND seq < ?"
        unwritten = f"SELECT count(*) FROM main.{table} WHERE book = '' AND event >= ? AND event < ?"
        bounds = (event, until, event, until)
        rows = cursor.execute(f"SELECT ({coming}) - ({unwritten})", bounds).fetchone()[0]
        of_account = f"SELECT rowid FROM main.{table} WHERE book = '' AND event < {event:d}"
        return f"{of_account} ORDER BY rowid DESC LIMIT {max(0, rows):d}"

    fills, closes = last("fills", "OrderFilled"), last("equity", "SessionSettled")
    traded = f"EXISTS (SELECT 1 FROM main.fills AS later WHERE later.rowid IN ({fills})"
    return {
        "fills": f"rowid IN ({fills})",
        "equity": f"rowid IN ({closes})",
        "order_states": f"state NOT IN ({SENT}) AND {traded} AND later.order_id = stored.order_id)",
    }


def _until(session: date, *, ended: bool) -> dict[str, str]:
    until = f"session <= '{session.isoformat()}'"
    # With the end of its last session the run is over, and so are its orders.
    over = f"{ended:d} AND NOT EXISTS (SELECT 1 FROM main.equity WHERE session > '{session.isoformat()}')"
    traded = f"EXISTS (SELECT 1 FROM main.fills WHERE order_id = stored.order_id AND {until})"
    earlier = f"(SELECT session FROM main.orders WHERE id = stored.order_id) < '{session.isoformat()}'"
    return {
        **dict.fromkeys(OF_SESSION, until),
        "order_states": f"state IN ({SENT}) OR {earlier} OR {traded} OR {over}",
        "run_states": f"outcome IS NULL OR {over}",
    }


def _hide(connection: sqlite3.Connection, visible: Mapping[str, str]) -> None:
    for table, condition in visible.items():
        rows = f"SELECT rowid AS rowid, * FROM main.{table} AS stored WHERE {condition}"
        connection.execute(f"CREATE TEMP VIEW {table} AS {rows}")
