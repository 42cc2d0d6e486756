"""`paperdesk journal`, and what a desk whose journal an older program wrote does after an update."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.desk_journal import desk_lock
from engine.app.open_desk import OpenDesk
from engine.app.run_inventory import stored_runs
from engine.clock import BacktestClock
from engine.config import load_config
from engine.errors import TryAgainLater
from engine.journal.integrity import quick_check
from engine.journal.migrations import VERSION
from engine.journal.reader import JournalReader
from engine.messages.events import Event, Noticed, RunFinished
from engine.reports.documents.opening import opening_of
from engine.reports.documents.records import records_in
from tests.engine.old_journals import as_version, version_of
from tests.tui.commands.conftest import BACKTEST, Run
from tests.tui.conftest import until
from tui.app import PaperdeskApp
from tui.checked_configuration import checked_settings
from tui.commands.app import open_desk
from tui.invocation import Invocation

HELD = "another run of the desk demo is at work"


@pytest.fixture
def journal(desk: Path) -> Path:
    """The journal of a desk that has run for three sessions."""
    return desk / "data" / "desks" / "demo.db"


@pytest.fixture
def old(journal: Path) -> Path:
    """The same, as a program of version 1 would have written it."""
    as_version(1, journal, journal)
    return journal


def decisions(path: Path) -> list[tuple[str, str, str]]:
    with JournalReader(path) as reader:
        return [(str(d.key.session), d.key.symbol, d.action.value) for d in reader.decisions()]


@contextmanager
def broken(path: Path) -> Iterator[bytes]:
    """A page in the middle of the file is garbage; gives what the whole file was."""
    whole = path.read_bytes()
    middle = len(whole) // 4096 // 2 * 4096
    path.write_bytes(whole[:middle] + b"\xff" * 4096 + whole[middle + 4096 :])
    yield whole


def test_a_daily_run_simply_works_after_an_update(run: Run, old: Path, desk_home: Path) -> None:
    looked = run("status")
    assert looked.code == 65
    assert looked.err.count("\n") == 1 and "paperdesk journal check" in looked.err
    again = run("--daily", "--session", "2025-03-14", "--json")
    assert (again.code, again.json["outcome"]) == (0, "nothing to do")
    assert version_of(old) == VERSION
    new = run("--daily", "--session", "2025-03-17", "--json")
    assert (new.code, new.json["outcome"]) == (0, "done")
    before = decisions(desk_home / "data" / "desks" / "demo.db")
    assert decisions(old)[: len(before)] == before
    assert {session for session, _, _ in decisions(old)[len(before) :]} == {"2025-03-17"}
    assert quick_check(old) == ()
    assert run("status").code == 0


def test_an_old_journal_is_not_touched_while_the_desk_is_at_work(run: Run, old: Path) -> None:
    with desk_lock("demo"):
        for arguments in (("--daily", "--session", "2025-03-14"), ("journal", "check")):
            ended = run(*arguments)
            assert ended.code == 75
            assert HELD in ended.err and ended.err.count("\n") == 1
    assert version_of(old) == 1


def test_the_check_brings_up_to_date_once(run: Run, old: Path) -> None:
    first = run("journal", "check")
    assert first.code == 0
    lines = first.out.splitlines()
    assert lines[:2] == [f"{old}: brought up to date, it had version 1", f"{old}: sound"]
    checked = run("journal", "check", "--json").json
    undated = checked["undated_fills"]
    assert undated > 0 and f"{undated} trades" in lines[2], "listed, and not refused"
    assert checked == {
        "schema": 1,
        "desk": "demo",
        "run": None,
        "journal": str(old),
        "sound": True,
        "faults": [],
        "updated_from": None,
        "undated_fills": undated,
    }
    assert run("decisions").code == 0


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
    path = backtested / "data" / "runs" / f"{BACKTEST}.db"
    as_version(2, path, path)
    assert "paperdesk journal check" in run("decisions", "--run", BACKTEST).err
    with desk_lock("demo"):
        assert run("journal", "check", "--run", BACKTEST, "--json").json["updated_from"] == 2
    shown = run("decisions", "--run", BACKTEST, "--json")
    assert shown.code == 0
    path.unlink()
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


async def test_the_app_opens_on_an_old_journal_and_runs_its_cycle(old: Path) -> None:
    config = load_config(None, environ={}).config
    with desk_lock("demo"), pytest.raises(TryAgainLater, match=HELD):
        OpenDesk(services(config))
    assert version_of(old) == 1
    app = OpenDesk(services(config))
    app.clock = BacktestClock(datetime(2025, 3, 18, 1, tzinfo=UTC))
    with records_in(app.journal, app.desk) as records:
        books = opening_of(records).books
    assert books is not None and str(books.session) == "2025-03-14"
    assert set(app.symbols) <= set((await app.market()).histories)
    events: list[Event] = []

    async def gate() -> None:
        pass

    await app.run_cycle(events.append, gate)
    assert [event.outcome for event in events if isinstance(event, RunFinished)] == ["done"]


async def test_an_app_that_is_read_only_leaves_an_old_journal_as_it_is(old: Path) -> None:
    before, settings = old.read_bytes(), checked_settings(Invocation(), read_only=True)
    app = PaperdeskApp(partial(open_desk, Invocation(), read_only=True), lambda *_: None, images=old, settings=settings)
    async with app.run_test() as pilot:
        shows = app.bridge.snapshot
        await until(pilot, lambda: bool(shows().trouble))
        assert "has version 1" in shows().trouble and "paperdesk journal check" in shows().trouble
        assert app.bridge.wait(60)
    (found,) = [one for one in stored_runs(read_only=True) if one.problem]
    assert "paperdesk journal check" in found.problem and old.read_bytes() == before


async def test_the_apps_cycle_brings_a_journal_up_to_date_that_was_put_there_since(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.app.demo_history.DUE", date(2025, 3, 14))
    config = load_config(None, environ={}).config
    app = OpenDesk(services(config))
    as_version(1, old, old)
    app.clock = BacktestClock(datetime(2025, 3, 15, 1, tzinfo=UTC))
    events: list[Event] = []

    async def gate() -> None:
        pass

    await app.run_cycle(events.append, gate)
    assert [type(event) for event in events] == [Noticed]
    assert version_of(old) == VERSION


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
