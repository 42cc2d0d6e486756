"""A journal of an older program: who reads it says what to do, who writes it, copies it or restores it manages."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from engine.domain.decision import Decision
from engine.errors import DataError, MalformedData, TryAgainLater
from engine.journal.copies import backup
from engine.journal.database import older_version
from engine.journal.entries import AnswerEntry, OrderEntry, RunEntry
from engine.journal.integrity import quick_check
from engine.journal.migrations import VERSION
from engine.journal.reader import JournalReader
from engine.journal.store import bring_up_to_date
from engine.journal.writer import JournalWriter
from tests.engine.old_journals import as_version, restore, version_of

RUN = "demo-20240304"


def journals(folder: Path) -> dict[str, bytes]:
    """Files and what is in them, without what SQLite puts beside a database that is read."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith(("-wal", "-shm"))}


@pytest.fixture
def old(
    path: Path,
    a_run: Callable[..., RunEntry],
    a_decision: Callable[..., Decision],
    an_order: Callable[..., OrderEntry],
) -> Path:
    """A journal of version 1 with a run, a decision and an order."""
    with JournalWriter(path) as journal:
        journal.run_started(a_run())
        journal.decision(a_decision())
        journal.order_intended(an_order())
    as_version(1, path, path)
    assert version_of(path) == 1
    return path


def test_an_old_journal_keeps_all_that_it_says(old: Path, a_decision: Callable[..., Decision]) -> None:
    with pytest.raises(DataError, match=r"has version 1 .* paperdesk journal check"):
        JournalReader(old)
    assert older_version(old) == 1
    assert bring_up_to_date(old) == 1
    assert (version_of(old), older_version(old), bring_up_to_date(old)) == (VERSION, None, None)
    assert quick_check(old) == ()
    with JournalReader(old) as reader:
        assert reader.decisions() == (a_decision(),)
        assert [run.id for run in reader.runs()] == [RUN]
        assert reader.document(RUN, "result") is None
    with JournalWriter(old) as journal:
        assert not journal.decision(a_decision())
        journal.document(RUN, "result", "{}")


def test_nothing_is_made_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    assert bring_up_to_date(tmp_path / "none.db") is None
    assert bring_up_to_date(tmp_path / "empty.db") is None
    assert [(file.name, file.stat().st_size) for file in tmp_path.iterdir() if file.is_file()] == [("empty.db", 0)]


def test_an_old_journal_in_use_stays_old(old: Path) -> None:
    with closing(sqlite3.connect(old, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TryAgainLater, match="locked by another process"):
            bring_up_to_date(old, wait=0.05)
    assert version_of(old) == 1


def test_a_copy_from_before_an_update_is_old_and_is_restored_new(old: Path, tmp_path: Path, now: datetime) -> None:
    copy = tmp_path / "before.db"
    backup(old, copy)
    assert version_of(copy) == 1
    bring_up_to_date(old)
    kept = restore(copy, old, now)
    assert version_of(copy) == 1 and version_of(old) == VERSION
    assert quick_check(old) == ()
    with JournalReader(old) as reader:
        assert len(reader.decisions()) == len(reader.orders()) == 1
    assert kept is not None
    assert set(journals(old.parent)) == {old.name, kept.name}


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
        assert [run.id for run in reader.runs()] == [RUN]
    assert restore(kept, path, now) == path.with_name("demo.db.replaced-20240304-210001-2")
    with JournalReader(path) as reader:
        assert [run.id for run in reader.runs()] == [RUN]


def test_a_damaged_old_backup_replaces_nothing(old: Path, tmp_path: Path, now: datetime) -> None:
    copy = tmp_path / "copy.db"
    backup(old, copy)
    pages = bytearray(copy.read_bytes())
    pages[4096 : 4096 * 20] = b"\xff" * 4096 * 19
    copy.write_bytes(bytes(pages))
    before = journals(old.parent)
    with pytest.raises(MalformedData, match=f"{copy} is damaged"):
        restore(copy, old, now)
    assert journals(old.parent) == before


@pytest.mark.parametrize("version", [1, 6])
def test_answers_and_charts_from_before_they_were_compressed_read_as_those_after(
    path: Path, version: int, a_run: Callable[..., RunEntry], an_answer: Callable[..., AnswerEntry]
) -> None:
    entries = (an_answer(), an_answer(failed=True))
    with JournalWriter(path) as journal:
        journal.run_started(a_run())
        for entry in entries:
            journal.answer(entry)
    with closing(sqlite3.connect(path)) as rows:
        sizes = rows.execute("SELECT sum(length(packed)), max(length(messages || text)) FROM answers").fetchone()
        assert sizes[1] == 0
    with JournalReader(path) as reader:
        new = reader.answers(entries[0].key)
    assert new == entries

    as_version(version, path, path)
    with closing(sqlite3.connect(path)) as rows:
        plain = rows.execute("SELECT sum(length(messages || text || ifnull(raw, ''))) FROM answers").fetchone()[0]
        assert plain > 3 * sizes[0]
        assert rows.execute("SELECT min(length(json)) > 0 FROM charts").fetchone() == (1,)
    bring_up_to_date(path)
    with JournalReader(path) as reader:
        assert reader.answers(entries[0].key) == entries
    with JournalWriter(path) as journal:
        journal.answer(entries[0])
    with JournalReader(path) as reader:
        assert reader.answers(entries[0].key) == (*entries, entries[0])
