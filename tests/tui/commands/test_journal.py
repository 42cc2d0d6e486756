"""`paperdesk journal`, and a journal of an older program."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from engine.app.records.desk_journal import desk_lock
from engine.app.upkeep.backup import JournalFile
from engine.errors import PaperdeskError
from engine.journal.schema import CHAIN, CHAINED
from engine.settings import places
from tests.tui.commands.conftest import BACKTEST, Run
from tests.tui.conftest import until
from tui.app.app import PaperdeskApp
from tui.commands.app import open_desk
from tui.settings.app_settings import checked_settings
from tui.settings.invocation import Invocation


@pytest.fixture
def journal(desk: Path) -> Path:
    """The journal of a desk that has run for three sessions."""
    return desk / "data" / "desks" / "demo.db"


@pytest.fixture
def old(journal: Path) -> Path:
    """The same, of the last version of Paperdesk 0.1."""
    return of_version_15(journal)


def of_version_15(path: Path) -> Path:
    """A journal that says so in its header and its table of versions."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 15")
        connection.execute("INSERT INTO versions (version, earlier, schema) VALUES (15, 0, x'00')")
    return path


@contextmanager
def broken(path: Path) -> Iterator[bytes]:
    """A page in the middle of the file is garbage; gives what the whole file was."""
    whole = path.read_bytes()
    middle = len(whole) // 4096 // 2 * 4096
    path.write_bytes(whole[:middle] + b"\xff" * 4096 + whole[middle + 4096 :])
    yield whole


def test_a_journal_of_an_older_program_is_refused_by_whoever_meets_it(run: Run, old: Path, tmp_path: Path) -> None:
    before = old.read_bytes()
    copy = str(tmp_path / "copy.zip")
    trials = [(name,) for name in ("status", "--daily", "halt", "orders", "cancel")]
    for words in (*trials, ("journal", "check"), ("backup", copy)):
        said = run(*words)
        assert (said.code, said.err.count("\n")) == (65, 1), words
        assert "version 15" in said.err and "runs export" in said.err and str(old.parent) in said.err, words
    listed = run("runs", "list", "--json")
    assert listed.code == 65 and [bool(one["problem"]) for one in listed.json["runs"]] == [True]
    assert run("restore", str(old)).err.count(str(old)) == 1
    assert old.read_bytes() == before
    old.parent.rename(tmp_path / "aside")
    assert run("--daily").code == 0


def without_versions(path: Path, *statements: str) -> Path:
    """A journal whose header says a version and its rows none."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in ("DROP TRIGGER versions_no_delete", "DELETE FROM versions", *statements):
            connection.execute(statement)
    return path


@pytest.mark.parametrize("more", [(), ("DROP TABLE versions",), ("PRAGMA user_version = 15",)])
def test_a_journal_without_its_version_is_damaged(run: Run, journal: Path, more: tuple[str, ...]) -> None:
    without_versions(journal, *more)
    for words in (("status",), ("pause",), ("journal", "check")):
        said = run(*words)
        assert said.code == 65 and "damaged" in said.out + said.err, words


WEEK = ("--from", "2025-03-03", "--to", "2025-03-07")


@pytest.mark.parametrize("emptied", [False, True])
def test_an_index_of_looks_that_cannot_be_added_to_is_refused_before_anything_is_done(
    run: Run, backtested: Path, emptied: bool
) -> None:
    index = places.trial_index()
    if emptied:
        index.write_bytes(b"")
    else:
        of_version_15(index)
    assert [one["state"] for one in run("doctor", "--json").json["checks"] if one["name"] == "looks"] == ["fail"]
    decided = run("decisions", "--run", BACKTEST, "--json").json["decisions"][0]
    before = sorted(places.runs_dir().iterdir())
    for words in (
        ("backtest", "--strategy", "cash", *WEEK),
        ("audit", "--strategy", "cash", *WEEK),
        ("tune", "price-cross", *WEEK),
        ("why", decided["symbol"], decided["session"], "--run", BACKTEST, "--redecide"),
        ("bench", "tradinggpt", "--warm-up-from", "2025-01-02", *WEEK),
        ("bench", "memory", "--preset", "finmem", *WEEK),
    ):
        said = run(*words)
        assert said.code == 65 and f"{index} is damaged, or was written by another version" in said.err, (words, said)
        assert said.out == "" and sorted(places.runs_dir().iterdir()) == before, words
    index.unlink()
    assert run("backtest", "--strategy", "cash", *WEEK).code == 0


def test_a_sound_journal(run: Run, journal: Path) -> None:
    assert run("journal", "check", "--json").json == {
        "schema": 1,
        "desk": "demo",
        "run": None,
        "journal": str(journal),
        "sound": True,
        "faults": [],
        "updated_from": None,
    }


def test_the_check_lists_what_it_finds(run: Run, journal: Path) -> None:
    with broken(journal):
        said = run("journal", "check", "--json")
        assert (said.code, said.json["sound"]) == (65, False)
        assert said.json["faults"]
        text = run("journal", "check")
        assert text.code == 65 and "paperdesk restore FILE" in text.out
    journal.write_bytes(b"session,value\n" * 500)
    said = run("journal", "check", "--json")
    assert said.code == 65 and "not a SQLite file" in said.json["faults"][0]


def test_what_is_left_of_a_journal_is_not_a_desk_that_never_ran(run: Run, journal: Path, tmp_path: Path) -> None:
    copy, log = tmp_path / "copy.zip", journal.with_name(f"{journal.name}-wal")
    assert run("backup", str(copy)).code == 0
    value = run("status", "--json").json["value"]
    commands = (("status",), ("orders",), ("--daily",), ("halt",), ("journal", "check"))

    journal.write_bytes(b"")
    for words in commands:
        said = run(*words)
        assert said.code == 65 and f"the journal {journal} is empty: delete it" in said.err, words
    journal.unlink()
    log.write_bytes(b"what a killed run has left")
    for words in commands:
        said = run(*words)
        assert said.code == 65 and f"the journal {journal} is gone, but its log {log} is there" in said.err, words
    restored = run("restore", str(copy), "--json")
    assert restored.code == 0 and Path(restored.json["kept"]).read_bytes() == b"what a killed run has left"
    assert run("status", "--json").json["value"] == value


def test_a_backtests_journal(run: Run, backtested: Path) -> None:
    with desk_lock("demo"):
        assert run("journal", "check", "--run", BACKTEST, "--json").json["sound"]
    (backtested / "data" / "runs" / f"{BACKTEST}.db").unlink()
    assert "no backtest" in run("journal", "check", "--run", BACKTEST).err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("check", "x.db"), 2, "extra argument"),
        (("backup",), 2, "is not"),
        (("mend",), 2, "is not"),
        (("check",), 65, "the desk demo has no journal"),
        (("check", "--run", "daily-demo-20250314"), 65, "leave out --run"),
    ],
)
def test_what_cannot_be_meant(run: Run, fresh: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    ended = run("journal", *arguments)
    assert ended.code == code
    assert said in ended.err and ended.err.count("\n") == 1


@pytest.mark.parametrize("read_only", [False, True])
async def test_the_app_says_what_to_do_about_an_older_journal(old: Path, read_only: bool) -> None:
    settings = checked_settings(Invocation(), read_only=read_only)
    opens = partial(open_desk, Invocation(), read_only=read_only)
    app = PaperdeskApp(opens, lambda *_: None, images=old, settings=settings)
    async with app.run_test() as pilot:
        shows = app.bridge.snapshot
        await until(pilot, lambda: bool(shows().trouble))
        assert "version 15" in shows().trouble and f"move {old.parent} aside" in shows().trouble
        assert app.bridge.wait(60)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE equity SET cash = 'x1000' WHERE session = '2025-03-12'", ("session 2025-03-12",)),
        ("UPDATE fills SET price = '1x0' WHERE seq = 2", ("seq 2", "price is '1x0'")),
        ("UPDATE orders SET side = 'BUZ' WHERE rowid = 1", ("id demo-", "side is 'BUZ'")),
        ("UPDATE runs SET started = '2025-13-45' WHERE session = '2025-03-12'", ("id daily-demo-20250312", "started")),
        (
            "UPDATE runs SET name = CAST(x'FF41' AS TEXT) WHERE session = '2025-03-12'",
            ("daily-demo-20250312", "name is"),
        ),
    ],
)
def test_a_damaged_text_is_one_line_that_names_the_row(
    run: Run, journal: Path, change: str, words: tuple[str, ...]
) -> None:
    with closing(sqlite3.connect(journal)) as connection, connection:
        guards = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (guard,) in guards:  # a damaged disk asks nobody
            connection.execute(f"DROP TRIGGER {guard}")
        assert connection.execute(change).rowcount == 1
    codes = []
    for command in (("--daily", "--session", "2025-03-17"), ("status",), ("orders",), ("equity",)):
        said = run(*command)
        codes.append(said.code)
        if said.code:  # a command that does not read the row works
            assert (said.code, said.result) == (65, ""), said.err
            assert said.err.startswith("paperdesk: ") and said.err.count("\n") == 1
            assert all(word in said.err for word in (str(journal), "paperdesk restore", *words)), said.err
    assert set(codes) <= {0, 65} and 65 in codes
    checked = run("journal", "check")
    assert checked.code == 65 and all(word in checked.out + checked.err for word in words)


SEED = 20261123
SYMBOLS = 4
SESSION_BYTES = 300_000
"""Growth of the journal in a session of four symbols, hashes included."""


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
