"""The property of the chain of hashes: a row cannot be changed together with its own link."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.journal.chain import GENESIS, LINK_BYTES, row_hash
from engine.journal.schema import CHAIN, CHAINED
from engine.journal.verification import chain_faults, chain_state, has_head

VALUES = {
    "TEXT": st.text(max_size=8),
    "INTEGER": st.integers(-(2**63), 2**63 - 1),
    "REAL": st.floats(allow_nan=False),
    "BLOB": st.binary(max_size=8),
}


@contextmanager
def unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of a journal for somebody who can change its rows."""
    with closing(sqlite3.connect(path)) as whole, closing(sqlite3.connect(":memory:")) as copy:
        whole.backup(copy)
        for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            copy.execute(f"DROP TRIGGER {name}")
        yield copy


def changed(journal: sqlite3.Connection, table: str, row: int, data: st.DataObject) -> None:
    """Another value in a column of a row that the schema takes there."""
    columns = journal.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
    column, kind = data.draw(st.sampled_from(columns), label="column")
    before = journal.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()[0]
    value = data.draw(VALUES[kind], label="value")
    assume(column != "seq" and value != before)
    try:
        journal.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
    except sqlite3.IntegrityError:
        assume(False)


@given(st.data())
@settings(max_examples=60)
def test_a_changed_row_whose_own_link_was_made_anew_is_refused(full: Path, data: st.DataObject) -> None:
    with unguarded(full) as journal:
        state = chain_state(journal)
        assert not chain_faults(journal)
        link = data.draw(st.integers(1, state.links), label="link")
        source, row = journal.execute(f"SELECT source, row FROM {CHAIN} WHERE seq = ?", (link,)).fetchone()
        table = CHAINED[source]
        changed(journal, table, row, data)
        before = journal.execute(f"SELECT hash FROM {CHAIN} WHERE seq = ?", (link - 1,)).fetchone()
        values = journal.execute(f"SELECT * FROM {table} WHERE rowid = ?", (row,)).fetchone()
        forged = row_hash(GENESIS if before is None else before[0], source, row, values)[:LINK_BYTES]
        journal.execute(f"UPDATE {CHAIN} SET hash = ? WHERE seq = ?", (forged, link))
        # The last row has no link after it: of a forged one a head that was noted elsewhere tells.
        assert chain_faults(journal) or (link == state.links and not has_head(journal, state.head))
