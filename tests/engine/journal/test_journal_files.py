"""Files that are no journal, or not ours to read, are told from each other; copies are whole; looking stays light."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from random import Random

import pytest

from engine.errors import ConfigError, DataError, MalformedData, MissingData
from engine.journal.copies import backup, check, replace
from engine.journal.database import refuse_remains
from engine.journal.entries import OrderEntry, RunEntry
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.journal.schema import VERSION
from engine.journal.writer import JournalWriter
from engine.messages.events import Noticed

REPO = Path(__file__).parents[3]


def filled(path: Path, now: datetime, events: int = 200) -> None:
    with JournalWriter(path, batched=True) as journal:
        for n in range(events):
            journal.event(Noticed("r", now, "info", f"{n} " + Random(n).randbytes(200).hex()))  # it does not pack well


def count(path: Path) -> int:
    with JournalReader(path) as reader:
        return reader.counts()["events"]


def set_version(path: Path, version: int) -> None:
    """Have the journal say, in its header and in the table of versions, that it is of a version."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("INSERT INTO versions (version, earlier, schema) VALUES (?, 0, x'00')", (version,))


def restore(copy: Path, path: Path, now: datetime) -> Path | None:
    """Put a backup of a journal in its place, checked, as `paperdesk restore` does; the file that keeps what was."""
    incoming = path.with_name(f"{path.name}.restored")
    try:
        backup(copy, incoming)
        check(incoming, copy)
        return replace(incoming, path, now)
    finally:
        incoming.unlink(missing_ok=True)


def test_no_file(tmp_path: Path) -> None:
    for at in (tmp_path / "none.db", tmp_path):
        with pytest.raises(MissingData):
            JournalReader(at)
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    ("content", "error"), [("", MissingData), ("session,value\n" * 200, MalformedData), ("of others", MalformedData)]
)
def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(
    tmp_path: Path, content: str, error: type[Exception]
) -> None:
    path = tmp_path / "n.db"
    path.write_text(content)
    if content == "of others":
        path.unlink()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE photos (id)")
    before = path.read_bytes()
    for opener in (JournalReader, JournalWriter, quick_check):
        with pytest.raises(error):
            opener(path)
    assert path.read_bytes() == before


def test_the_log_of_a_journal_that_is_gone_is_not_applied_to_a_new_one(path: Path, now: datetime) -> None:
    log = path.with_name(f"{path.name}-wal")
    with JournalWriter(path) as journal:
        journal.event(Noticed("r", now, "info", "of the old one"))
        left = log.read_bytes()
    path.unlink()
    log.write_bytes(left)
    with pytest.raises(MissingData, match="-wal"):
        JournalWriter(path)
    assert log.read_bytes() == left and not path.exists()
    log.unlink()
    JournalWriter(path).close()
    assert count(path) == 0


def test_a_new_journal_has_the_permissions_that_sqlite_gives_and_its_target_where_it_is_a_link(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        sqlite3.connect(tmp_path / "plain.db").execute("CREATE TABLE t (a)").connection.close()
        (tmp_path / "link.db").symlink_to(tmp_path / "target.db")
        JournalWriter(tmp_path / "link.db").close()
    finally:
        os.umask(before)
    assert (tmp_path / "link.db").is_symlink()
    assert stat.S_IMODE((tmp_path / "target.db").stat().st_mode) == stat.S_IMODE((tmp_path / "plain.db").stat().st_mode)
    assert count(tmp_path / "link.db") == 0


def test_where_files_cannot_be_linked_a_journal_is_created_all_the_same(
    path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    filled(path, now, 3)
    assert count(path) == 3 and [file.name for file in path.parent.glob("*.part")] == []


@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_a_truncated_journal(path: Path, now: datetime, kept: float) -> None:
    filled(path, now)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    for opener in (JournalReader, JournalWriter):
        with pytest.raises(MalformedData):
            opener(path)


def test_a_damaged_page_is_found_by_the_check(path: Path, now: datetime) -> None:
    filled(path, now)
    assert quick_check(path) == ()
    pages = bytearray(path.read_bytes())
    late = len(pages) // 4096 * 9 // 10 * 4096  # behind the pages of the schema, without which nothing opens
    pages[late : late + 4096] = b"\xff" * 4096
    path.write_bytes(bytes(pages))
    assert quick_check(path) != ()


@pytest.mark.parametrize(("version", "error"), [(VERSION + 1, ConfigError), (VERSION - 1, DataError)])
def test_a_journal_of_another_version_is_refused_and_left_alone(
    path: Path, now: datetime, version: int, error: type[Exception]
) -> None:
    filled(path, now, 1)
    set_version(path, version)
    for opener in (JournalReader, JournalWriter):
        with pytest.raises(error):
            opener(path)
    set_version(path, VERSION)
    assert count(path) == 1


def test_what_was_replaced_is_kept_with_its_log_under_the_time(
    path: Path, tmp_path: Path, now: datetime, a_run: Callable[..., RunEntry]
) -> None:
    JournalWriter(path).close()
    copy = tmp_path / "empty-desk.db"
    backup(path, copy)
    with JournalWriter(path) as journal:
        journal.run_started(a_run())
        # Still in the write-ahead log alone, as a killed run leaves it.
        assert path.with_name(path.name + "-wal").stat().st_size > 0
        kept = restore(copy, path, now)
    assert kept == path.with_name("demo.db.replaced-20240304-210001")
    with JournalReader(path) as reader:
        assert reader.runs() == ()
    with JournalReader(kept) as reader:
        assert [run.id for run in reader.runs()] == [a_run().id]
    assert restore(kept, path, now) == path.with_name("demo.db.replaced-20240304-210001-2")
    with JournalReader(path) as reader:
        assert [run.id for run in reader.runs()] == [a_run().id]


def test_every_table_is_strict_and_its_money_text(path: Path) -> None:
    JournalWriter(path).close()
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name, strict FROM pragma_table_list WHERE name NOT LIKE 'sqlite_%'")
        assert {strict for _, strict in tables} == {1}
        for table, column in (("fills", "price"), ("equity", "value"), ("orders", "notional"), ("answers", "cost")):
            sql = f"SELECT type FROM pragma_table_info('{table}') WHERE name = '{column}'"
            assert connection.execute(sql).fetchone() == ("TEXT",)


@pytest.mark.parametrize(("batched", "level"), [(False, 2), (True, 1)])
def test_a_desk_syncs_fully_and_both_write_ahead(path: Path, batched: bool, level: int) -> None:
    with JournalWriter(path, batched=batched) as journal:
        connection = journal._db.conn
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == level
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_a_reader_cannot_write(path: Path) -> None:
    JournalWriter(path).close()
    with JournalReader(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._connection.execute("DELETE FROM runs")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError):
        JournalWriter(tmp_path / "file" / "j.db")


def test_names_with_marks_of_an_address(tmp_path: Path, now: datetime) -> None:
    for name in ("a b.db", "50%.db", "what?.db", "no#1.db", "ü.db"):
        filled(tmp_path / name, now, 1)
        assert count(tmp_path / name) == 1


def test_the_check_finds_books_that_contradict_themselves(path: Path, an_order: Callable[..., OrderEntry]) -> None:
    with JournalWriter(path) as journal:
        journal.order_intended(an_order())
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        columns = ", ".join(name for _, name, *_ in connection.execute("PRAGMA table_info(orders)"))
        connection.execute(f"INSERT INTO orders ({columns}) SELECT 'mute'{columns[2:]} FROM orders")
        connection.execute("INSERT INTO order_states VALUES (9, ?, '', 'canceled', '0', '', 0)", [an_order().order.id])
        connection.execute(
            "INSERT INTO order_states VALUES (10, ?, '', 'submitting', '0', '', 0)", [an_order().order.id]
        )
    faults = quick_check(path)
    assert any("mute" in fault for fault in faults)
    assert any("canceled" in fault and "submitting" in fault for fault in faults)


def test_a_backup_is_whole_while_the_journal_is_written(path: Path, tmp_path: Path, now: datetime) -> None:
    copy = tmp_path / "copies" / "copy.db"
    with JournalWriter(path) as journal:
        for n in range(5):
            journal.event(Noticed("r", now, "info", str(n)))
        backup(path, copy)
        journal.event(Noticed("r", now, "info", "later"))
        assert count(copy) == 5
        assert quick_check(copy) == ()
        assert [file.name for file in copy.parent.iterdir()] == ["copy.db"], "reading a copy writes beside it"
        with pytest.raises(DataError):
            backup(path, copy)
    assert count(path) == 6
    restore(copy, path, now)
    assert count(path) == 5
    filled(path, now, 2)
    assert count(path) == 7


def test_what_a_killed_writer_left_is_not_mixed_into_a_backup(path: Path, tmp_path: Path, now: datetime) -> None:
    filled(path, now, 5)
    copy, dead = tmp_path / "copy.db", tmp_path / "dead.db"
    backup(path, copy)
    with JournalWriter(path) as journal:
        for n in range(50):
            journal.event(Noticed("r", now, "info", f"{n} " + "y" * 500))
        # The files as a kill leaves them: the write-ahead log was not emptied.
        for ending in ("", "-wal"):
            shutil.copy(path.with_name(path.name + ending), dead.with_name(dead.name + ending))
    restore(copy, dead, now)
    assert count(dead) == 5
    assert quick_check(dead) == ()


def test_an_unsound_backup_replaces_nothing(path: Path, tmp_path: Path, now: datetime) -> None:
    filled(path, now)
    copy = tmp_path / "copy.db"
    backup(path, copy)
    copy.write_bytes(copy.read_bytes()[:9000])
    with pytest.raises(DataError):
        restore(copy, path, now)
    assert count(path) == 200


def test_reading_loads_nothing_heavy(path: Path, now: datetime) -> None:
    filled(path, now, 1)
    code = """
import sys
from engine.journal.reader import JournalReader
from engine.journal.schema import VERSION
imported = set(sys.modules)
from datetime import date
from pathlib import Path
with JournalReader(Path(sys.argv[1])) as reader:
    assert reader.finished_run(date(2024, 3, 4)) is None
checked = set(sys.modules)
for heavy in ("sqlite_utils", "pandas", "numpy", "pydantic", "asyncio"):
    assert heavy not in checked, heavy
with JournalReader(Path(sys.argv[1])) as reader:
    assert len(reader.events_after()) == 1
for heavy in ("sqlite_utils", "pandas", "numpy", "pydantic"):
    assert heavy not in sys.modules, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=REPO, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_writing_loads_no_data_library_and_bars_none_from_being_loaded_later(path: Path, now: datetime) -> None:
    code = """
import sys
from pathlib import Path
from engine.journal.writer import JournalWriter
with JournalWriter(Path(sys.argv[1])):
    pass
assert "sqlite_utils" in sys.modules
for heavy in ("pandas", "pyarrow", "numpy"):
    assert heavy not in sys.modules, heavy
import numpy
import pandas
assert pandas.Series([1, 2]).sum() == 3
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=REPO, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert count(path) == 0


def test_a_log_that_comes_and_goes_while_it_is_looked_for_is_no_error(tmp_path: Path) -> None:
    journal, log = tmp_path / "desk.db", tmp_path / "desk.db-wal"
    journal.write_bytes(b"a journal")
    ended = threading.Event()

    def others() -> None:
        while not ended.is_set():
            log.write_bytes(b"a log")
            log.unlink()

    thread = threading.Thread(target=others)
    thread.start()
    try:
        for _ in range(5_000):
            refuse_remains(journal)
    finally:
        ended.set()
        thread.join()
