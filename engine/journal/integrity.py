"""Check a journal: SQLite's own check, the chain of hashes, and the promises that rows make to each other."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import date
from functools import partial
from itertools import pairwise
from pathlib import Path

from engine.domain.order import MOVES
from engine.domain.run import EquityPoint, carried_forward
from engine.errors import InvariantBroken, MalformedData
from engine.journal.database import WAIT, damaged_file, open_read_only, sqlite_errors
from engine.journal.reader import EARLY_FILLS, JournalReader
from engine.journal.verification import SHOWN, ChainState, chain_faults, chain_state, has_head, schema_fault

PROMISES = {
    "a run has a state": "SELECT id FROM runs WHERE id NOT IN (SELECT run FROM run_states)",
    "an order has a state": "SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM order_states)",
    "a state belongs to an order": "SELECT seq FROM order_states WHERE order_id NOT IN (SELECT id FROM orders)",
    "a command that was carried out was given": """
        SELECT command FROM command_states WHERE command NOT IN (SELECT seq FROM commands)""",
    "a fill belongs to an order where its run has orders": """
        SELECT seq FROM fills WHERE book = '' AND order_id NOT IN (SELECT id FROM orders)
        AND run IN (SELECT run FROM orders)""",
    "a decision belongs to a run": "SELECT rowid FROM decisions WHERE run NOT IN (SELECT id FROM runs)",
    "an opinion belongs to a run": "SELECT rowid FROM opinions WHERE run NOT IN (SELECT id FROM runs)",
    "a debate belongs to a run": "SELECT rowid FROM debates WHERE run NOT IN (SELECT id FROM runs)",
    "an activity that was booked is a trade or a cash flow": """
        SELECT id FROM activities WHERE booked = 1
        AND id NOT IN (SELECT execution FROM fills WHERE execution IS NOT NULL)
        AND id NOT IN (SELECT execution FROM cash_flows WHERE execution IS NOT NULL)""",
    "a fill comes after its order was sent": EARLY_FILLS,
}
"""Promises that the rows of a journal make to each other, each with the query for rows that break it."""


def quick_check(path: Path, wait: float = WAIT, *, head: str | None = None) -> tuple[str, ...]:
    """List the faults of a journal, one line each; empty where it is sound. With `head` (hex) one that was known
    earlier has to be in its chain. Raises as `open_read_only` does for a file that cannot be opened at all."""
    with closing(open_read_only(path, wait)) as connection:
        connection.execute("BEGIN")  # another process may write meanwhile: all is read as it was at one time
        damage = _found(path, lambda: _damage(connection))
        faults = damage + _found(path, lambda: _broken_chain(connection, head))
        if damage:
            return faults
        for look in (_broken_promises, _illegal_lives):
            faults += _found(path, partial(look, connection))
        unreadable = _found(path, lambda: _unreadable_rows(path, wait))
        return faults + (
            unreadable or (*_found(path, lambda: _lost(path, wait)), *_found(path, lambda: _books(path, wait)))
        )


def _found(path: Path, look: Callable[[], Iterable[str]]) -> tuple[str, ...]:
    """The faults that one look finds; that it cannot be finished is one too. Raises TryAgainLater for a lock."""
    try:
        with sqlite_errors(path):
            return tuple(look())
    except (MalformedData, InvariantBroken) as error:
        # A check writes nothing and asks for what every journal of this version has: what SQLite refuses is damage.
        return (str(error if isinstance(error, MalformedData) else damaged_file(str(error.__cause__), path)),)


def read_chain(path: Path, wait: float = WAIT) -> ChainState:
    """The chain of a journal that is sound. Raises as `open_read_only` does, and MalformedData."""
    with closing(open_read_only(path, wait)) as connection, sqlite_errors(path):
        return chain_state(connection)


def _damage(connection: sqlite3.Connection) -> list[str]:
    """Faults that SQLite itself finds: in pages, indexes, and types."""
    found = [row["integrity_check"] for row in connection.execute(f"PRAGMA integrity_check({SHOWN})")]
    return [f"SQLite: {fault}" for fault in found if fault != "ok"]


def _broken_chain(connection: sqlite3.Connection, head: str | None) -> list[str]:
    schema = schema_fault(connection)
    faults = [f"the schema was changed: {schema}"] if schema else []
    faults += chain_faults(connection)
    if head is not None and not faults and not has_head(connection, head):
        faults.append(f"the chain does not have the head {head}: rows that it covered were cut off or rewritten")
    return faults


def _broken_promises(connection: sqlite3.Connection) -> list[str]:
    faults = []
    for promise, query in PROMISES.items():
        broken = [str(next(iter(row.values()))) for row in connection.execute(f"{query} LIMIT 5")]
        faults += [f"not true that {promise}: {', '.join(broken)}"] if broken else []
    return faults


def _unreadable_rows(path: Path, wait: float) -> list[str]:
    """Rows whose texts say nothing that the program could have written: the first of each kind."""
    faults = []
    with JournalReader(path, wait) as reader:
        kinds = (reader.runs, reader.orders, reader.fills, reader.cash_flows, reader.equity, reader.adoptions)
        more = (reader.account, reader.decisions, reader.opinions, reader.outcomes, reader.notes, reader.calls)
        for read in (*kinds, *more, partial(reader.events_after, limit=-1)):
            try:
                read()
            except MalformedData as fault:
                faults.append(str(fault))
    return faults


def _lost(path: Path, wait: float) -> list[str]:
    """Texts that rows name, and that are not there."""
    with JournalReader(path, wait) as reader:
        lost = {
            "the prompt of an answer is there": reader.lost_prompts(),
            "the inputs of a run are there": reader.lost_inputs(),
        }
    return [f"not true that {promise}: {', '.join(names[:5])}" for promise, names in lost.items() if names]


def _books(path: Path, wait: float) -> list[str]:
    """Closes of an account at a broker that are not what the close before them and the journal's rows come to."""
    with JournalReader(path, wait) as reader:
        if reader.account() is None:
            return []
        points, fills, flows, adopted = reader.equity(), reader.fills(), reader.cash_flows(), reader.adoptions()
    faults = []
    for before, after in pairwise(points):

        def within(session: date, before: EquityPoint = before, after: EquityPoint = after) -> bool:
            return before.session < session <= after.session

        due = carried_forward(
            before.portfolio,
            (fill for fill in fills if within(fill.session)),
            (flow for flow in flows if within(flow.session)),
            (one for one in adopted if within(one.session)),
        )
        held = {symbol: position.quantity for symbol, position in after.portfolio.positions.items()}
        if due.cash != after.portfolio.cash:
            faults.append(f"the cash of {after.session} is {after.portfolio.cash}, and {due.cash} by what happened")
        if held != {symbol: position.quantity for symbol, position in due.positions.items()}:
            faults.append(f"the positions of {after.session} are not what the trades and splits before it come to")
    return faults


def _illegal_lives(connection: sqlite3.Connection) -> list[str]:
    """Transitions of orders that are not in the table of legal moves."""
    states = "SELECT order_id, state, lag(state) OVER (PARTITION BY order_id ORDER BY seq) AS before FROM order_states"
    rows = connection.execute(f"SELECT * FROM ({states}) WHERE before IS NOT NULL")
    legal = {str(state): {str(after) for after in moves} for state, moves in MOVES.items()}
    return [
        f"order {row['order_id']} went from {row['before']} to {row['state']}"
        for row in rows
        if row["state"] not in legal.get(row["before"], ())
    ]
