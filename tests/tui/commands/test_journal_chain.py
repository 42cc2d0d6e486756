"""The chain of hashes over a desk's journal: what was edited is found and named, whatever byte it was."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from engine.app.records.desk_journal import JournalFile
from engine.errors import PaperdeskError
from engine.journal.schema import CHAIN, CHAINED
from tests.tui.commands.conftest import Run

SEED = 20261123
SYMBOLS = 4
SESSION_BYTES = 300_000
"""Growth of the journal in a session of four symbols, hashes included."""


@pytest.fixture
def journal(desk: Path) -> Path:
    """The journal of a desk that has run for three sessions."""
    return desk / "data" / "desks" / "demo.db"


@contextmanager
def unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    """The journal for somebody who edits it and leaves the schema as it was."""
    with closing(sqlite3.connect(path)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        with connection:
            yield connection
        for _, sql in guards:
            connection.execute(sql)


def everything(path: Path) -> list[object]:
    """All values of a journal: its schema, its rows with their numbers, its links."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        made = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()
        tables = (CHAIN, *CHAINED)
        rows = [connection.execute(f"SELECT rowid, * FROM {table} ORDER BY rowid").fetchall() for table in tables]
        marks = [connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")]
    return [made, rows, marks]


def used_bytes(path: Path) -> int:
    """Bytes of a four-symbol desk's journal in pages that are in use."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(DISTINCT symbol) FROM decisions").fetchone() == (SYMBOLS,)
        used: int = connection.execute("SELECT sum(pgsize) FROM dbstat").fetchone()[0]
    return used


@pytest.mark.parametrize("flips", [30, pytest.param(120, marks=pytest.mark.slow)])
def test_every_flipped_bit_is_found_or_in_bytes_that_hold_no_value(journal: Path, desk: Path, flips: int) -> None:
    whole, values = journal.read_bytes(), everything(journal)
    draw = random.Random(SEED)
    found, harmless = 0, 0
    for _ in range(flips):
        place, bit = draw.randrange(len(whole)), draw.randrange(8)
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        journal.write_bytes(flipped)
        try:
            faults = JournalFile.of("demo", None).check().faults
        except PaperdeskError as error:
            assert error.exit_code in (65, 78), (place, bit, error)
            faults = (str(error),)
        if faults:
            found += 1
        else:
            harmless += 1
            assert everything(journal) == values, (place, bit)
        for beside in ("-wal", "-shm"):
            journal.with_name(journal.name + beside).unlink(missing_ok=True)
    assert found + harmless == flips
    assert found > harmless


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(place, marks=() if place % 12 == 0 else pytest.mark.slow)
        for place in (*range(16), *range(16, 100, 2))
    ],
)
def test_a_flip_in_the_header_is_no_bug(journal: Path, place: int) -> None:
    whole, values = bytearray(journal.read_bytes()), everything(journal)
    for bit in (0, 3, 7):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        journal.write_bytes(flipped)
        if not JournalFile.of("demo", None).check().faults:
            assert everything(journal) == values


EDITS: dict[str, tuple[str, str]] = {
    "edited": ("UPDATE fills SET price = price || '1' WHERE seq = 1", "row 1 of fills (seq 1, order_id "),
    "deleted": ("DELETE FROM fills WHERE seq = 1", "row 1 of fills (link "),
    "inserted": ("INSERT INTO notes (run, level, text) VALUES ('x', 'info', 'y')", "was inserted by another program"),
    "moved": (
        "UPDATE decisions SET rowid = CASE rowid WHEN 1 THEN 900 ELSE 1 END WHERE rowid IN (1)",
        "row 1 of decisions",
    ),
    "link": ("UPDATE chain SET hash = zeroblob(16) WHERE seq = 7", "(link 7) is not as it was written"),
    "links deleted": ("DELETE FROM chain WHERE seq = 7", "links were changed or deleted"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_past_the_triggers_is_named(run: Run, journal: Path, edit: str) -> None:
    statement, words = EDITS[edit]
    with unguarded(journal) as connection:
        assert connection.execute(statement).rowcount == 1
    said = run("journal", "check")
    assert said.code == 65
    assert words in said.out and "paperdesk restore FILE" in said.out


def test_a_tail_that_was_cut_off_is_found_by_a_known_head(run: Run, journal: Path) -> None:
    before = run("journal", "check", "--verify", "--json").json
    assert before["sound"]
    head = before["chain"]["head"]
    assert f"head {head}" in run("journal", "check", "--verify").out
    assert run("--daily", "--session", "2025-03-17").code == 0
    after = run("journal", "check", "--head", head, "--json").json
    assert after["sound"] and after["chain"]["head"] != head and after["chain"]["links"] > before["chain"]["links"]
    with unguarded(journal) as connection:
        last, source, row = connection.execute(
            "SELECT seq, source, row FROM chain ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        connection.execute(f"DELETE FROM {CHAINED[source]} WHERE rowid = ?", (row,))
        connection.execute("DELETE FROM chain WHERE seq = ?", (last,))
    assert run("journal", "check", "--head", head).code == 0
    cut = run("journal", "check", "--head", after["chain"]["head"])
    assert cut.code == 65 and "were cut off or rewritten" in cut.out
    assert run("journal", "check", "--head", "abc").code == 2
    assert run("journal", "backup", "x.db", "--verify").code == 2


def test_copies_keep_the_chain(run: Run, journal: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.zip"
    head = run("journal", "check", "--verify", "--json").json["chain"]["head"]
    assert run("backup", str(copy)).code == 0
    assert run("--daily", "--session", "2025-03-17").code == 0
    assert run("restore", str(copy)).code == 0
    assert run("journal", "check", "--verify", "--json").json["chain"]["head"] == head


def test_a_changed_schema_is_damage_to_whoever_reads(run: Run, journal: Path) -> None:
    with closing(sqlite3.connect(journal)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        changed = "UPDATE sqlite_master SET sql = replace(sql, 'notional', 'notionak') WHERE name = 'orders'"
        assert connection.execute(changed).rowcount == 1
    said = run("orders")
    assert said.code == 65 and "restore a backup" in said.err and said.err.count("\n") == 1
    assert "the schema was changed" in run("journal", "check").out


def test_doctor_prints_the_head(run: Run, journal: Path) -> None:
    head = run("journal", "check", "--verify", "--json").json["chain"]["head"]
    assert f"head {head}" in run("doctor", "--json").out


@pytest.mark.slow
def test_a_session_of_four_symbols_takes_little_room(run: Run, journal: Path) -> None:
    sizes = []
    for day in (17, 18, 19, 20):
        assert run("--daily", "--session", f"2025-03-{day}").code == 0
        sizes.append(used_bytes(journal))
    assert (sizes[-1] - sizes[0]) / 3 < SESSION_BYTES, sizes
