"""Check a journal and copy it safely: SQLite's own check, the promises that rows make to each other, backup."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import date, datetime
from functools import partial
from itertools import chain, count, pairwise
from pathlib import Path

from engine.domain.ledger import carried_forward
from engine.domain.order import MOVES
from engine.domain.run import EquityPoint
from engine.errors import DataError, MalformedData, MissingData, TryAgainLater
from engine.journal.database import WAIT, error_of, open_read_only
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.store import bring_up_to_date

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
    "the prompt of an answer is there": "SELECT seq FROM answers WHERE system NOT IN (SELECT hash FROM prompts)",
    "the inputs of a run are there": """
        SELECT name FROM inputs, json_each(inputs.chunks) WHERE json_each.value NOT IN (SELECT hash FROM chunks)""",
    "an activity that was booked is a trade or a cash flow": """
        SELECT id FROM activities WHERE booked = 1
        AND id NOT IN (SELECT execution FROM fills WHERE execution IS NOT NULL)
        AND id NOT IN (SELECT execution FROM cash_flows WHERE execution IS NOT NULL)""",
    "a position belongs to a close": """
        SELECT symbol FROM positions LEFT JOIN equity USING (run, session, book) WHERE equity.run IS NULL""",
}
"""Promises that the rows of a journal make to each other, each with the query for rows that break it."""


def quick_check(path: Path, wait: float = WAIT) -> tuple[str, ...]:
    """List the faults of a journal, one line each; empty where it is sound. Raises as `open_read_only` does for a
    file that cannot be opened at all."""
    connection = open_read_only(path, wait)
    try:
        found = [row["quick_check"] for row in connection.execute("PRAGMA quick_check(20)")]
        faults = [f"SQLite: {fault}" for fault in found if fault != "ok"]
        if faults:
            return tuple(faults)
        for promise, query in PROMISES.items():
            broken = [str(next(iter(row.values()))) for row in connection.execute(f"{query} LIMIT 5")]
            faults += [f"not true that {promise}: {', '.join(broken)}"] if broken else []
        return (
            *faults,
            *_illegal_lives(connection),
            *(_unreadable_rows(path, wait) or _books_that_do_not_follow(path, wait)),
        )
    except sqlite3.Error as error:
        fault = error_of(error, path)
        if isinstance(fault, TryAgainLater):
            raise fault from error
        return (str(fault),)
    finally:
        connection.close()


def backup(path: Path, to: Path, wait: float = WAIT) -> None:
    """Copy a journal, also one of an older program and while it is being written, by SQLite's backup: one file that
    needs no other (copying the file alone loses what stands in its write-ahead log). Raises DataError where `to` is
    taken or cannot be written."""
    if to.exists():
        raise DataError(f"{to} is there already: name a file that is not")
    source = open_read_only(path, wait, older=True)
    half = to.with_name(to.name + ".part")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        half.unlink(missing_ok=True)
        target = sqlite3.connect(half)
        try:
            source.backup(target)
        finally:
            target.close()
        _make_one_file(half)
        half.replace(to)
    except sqlite3.Error as error:
        raise error_of(error, path) from error
    except OSError as error:
        raise DataError(f"{to} cannot be written ({error.strerror}): name another file") from error
    finally:
        source.close()
        half.unlink(missing_ok=True)


def restore(copy: Path, path: Path, now: datetime, ours: Callable[[RunEntry], bool], wait: float = WAIT) -> Path | None:
    """Put a backup in the place of a journal, brought up to date and checked; `ours` is True for a run that belongs
    there. Returns the path of the replaced journal, whatever state it was in: beside it, under the time `now`; None
    where there was none. The caller holds the desk's lock: no one may be writing.

    Raises MissingData where there is no backup, DataError for one that is not sound or not of this journal; then
    nothing was replaced.
    """
    if not copy.is_file():
        raise MissingData(f"there is no backup {copy}: name a file that paperdesk journal backup wrote")
    incoming = path.with_name(path.name + ".restored")
    incoming.unlink(missing_ok=True)
    try:
        _prepare(copy, incoming, ours, wait)
        kept = _keep_aside(path, now)
        # A write-ahead log of the old file must never be applied to the new one.
        for beside in ("-wal", "-shm"):
            path.with_name(path.name + beside).unlink(missing_ok=True)
        incoming.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be replaced ({error.strerror}): check its folder and free space") from error
    finally:
        for ending in ("", "-wal", "-shm"):
            incoming.with_name(incoming.name + ending).unlink(missing_ok=True)
    return kept


def _prepare(copy: Path, incoming: Path, ours: Callable[[RunEntry], bool], wait: float) -> None:
    """Make of a backup a journal of this program's version that is known to be sound."""
    try:
        backup(copy, incoming, wait)
        if bring_up_to_date(incoming, wait) is not None:
            _make_one_file(incoming)
        faults = quick_check(incoming, wait)
        runs = () if faults else _runs(incoming, wait)
    except MalformedData as error:
        raise MalformedData(f"the backup {copy} is damaged, or no journal: take an older one") from error
    if faults:
        raise DataError(f"the backup {copy} is not sound ({faults[0]}): take an older one")
    strangers = [run.id for run in runs if not ours(run)]
    if strangers:
        raise DataError(f"the backup {copy} is of another journal (it has the run {strangers[0]}): name the right one")


def _runs(path: Path, wait: float) -> tuple[RunEntry, ...]:
    with JournalReader(path, wait) as reader:
        return reader.runs()


def _keep_aside(path: Path, now: datetime) -> Path | None:
    """Copy a journal as it lies there, damaged or not, with its write-ahead log."""
    if not path.exists():
        return None
    stem = f"{path.name}.replaced-{now:%Y%m%d-%H%M%S}"
    names = chain([stem], (f"{stem}-{n}" for n in count(2)))
    kept = next(free for name in names if not (free := path.with_name(name)).exists())
    for ending in ("", "-wal"):
        part = path.with_name(path.name + ending)
        if part.exists():
            shutil.copy2(part, kept.with_name(kept.name + ending))
    return kept


def _make_one_file(path: Path) -> None:
    """A journal in WAL mode would need to write beside itself even to be read."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


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


def _books_that_do_not_follow(path: Path, wait: float) -> list[str]:
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
