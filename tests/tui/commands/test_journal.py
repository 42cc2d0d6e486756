"""`paperdesk journal`, and a journal of an older program."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from engine.app.records.desk_journal import desk_lock
from engine.settings import places
from tests.tui.commands.conftest import BACKTEST, Run
from tests.tui.conftest import until
from tui.app.app import PaperdeskApp
from tui.commands.app import open_desk
from tui.settings.checked_configuration import checked_settings
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
    looks = [(name,) for name in ("status", "--daily", "halt", "orders", "cancel")]
    for words in (*looks, ("journal", "check"), ("backup", copy)):
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
    index = places.looks_index()
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
        assert said.code == 65 and f"{index} is damaged, or of another version" in said.err, (words, said)
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
