"""What a run could read is kept with it, equal parts once, and no part is lost unnoticed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import MalformedData
from engine.journal.entries import RunEntry
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter

JANUARY, FEBRUARY, MARCH = b"bars of January" * 40, b"bars of February" * 40, b"bars of March" * 40


def test_inputs_are_read_as_they_were_written_and_equal_parts_are_kept_once(
    path: Path, a_run: Callable[..., RunEntry]
) -> None:
    monday = {"bars AAA": (JANUARY, FEBRUARY), "news AAA": ()}
    tuesday = {"bars AAA": (JANUARY, FEBRUARY, MARCH), "bars BBB": (JANUARY,)}
    for run, seen in (("monday", monday), ("tuesday", tuesday)):
        with JournalWriter(path) as journal:
            journal.run_started(a_run(run))
            journal.inputs(run, 1, seen)
    with JournalReader(path) as reader:
        assert reader.inputs("monday") == monday
        assert reader.inputs("tuesday") == tuesday
        assert reader.inputs("tuesday", 2) == {}
    kept = sqlite3.connect(path)
    assert kept.execute("SELECT count(*), max(length(packed)) < 100 FROM chunks").fetchone() == (3, 1)
    kept.close()


def test_a_part_that_is_gone_is_found_out(path: Path, a_run: Callable[..., RunEntry]) -> None:
    with JournalWriter(path) as journal:
        journal.run_started(a_run("monday"))
        journal.inputs("monday", 1, {"bars AAA": (JANUARY, FEBRUARY)})
    assert quick_check(path) == ()
    broken = sqlite3.connect(path)
    broken.execute("DROP TRIGGER chunks_no_delete")
    broken.execute("DELETE FROM chunks WHERE rowid = 1")
    broken.commit()
    broken.close()
    *chained, promise = quick_check(path)
    assert any("row 1 of chunks" in fault for fault in chained) and "bars AAA" in promise
    with JournalReader(path) as reader, pytest.raises(MalformedData, match="bars AAA"):
        reader.inputs("monday")
