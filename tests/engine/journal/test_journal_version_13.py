"""A journal of version 13, whose rows said more and whose links had 32 bytes, is read as it was written and goes on; an
edit of an old row is found behind new links."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from engine.errors import OutdatedJournal
from engine.journal.entries import AnswerEntry
from engine.journal.integrity import quick_check
from engine.journal.migrations import VERSION
from engine.journal.reader import JournalReader
from engine.journal.store import bring_up_to_date
from engine.journal.writer import JournalWriter
from engine.messages.events import AgentAnswered
from tests.engine.journal.full_journal import KEY
from tests.engine.journal.test_packed_texts import answers, event_of, published
from tests.engine.old_journals import version_of

DUMP = Path(__file__).with_name("version_13.sql")


@pytest.fixture
def old(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(DUMP.read_text(encoding="utf-8"))
    return path


def test_it_is_read_as_it_was_written_and_goes_on(old: Path, an_answer: Callable[..., AnswerEntry]) -> None:
    written = answers(an_answer(), 4)
    before, after = written[:6], written[6:]
    with pytest.raises(OutdatedJournal, match="paperdesk journal check"):
        JournalReader(old)
    assert bring_up_to_date(old) == 13 and version_of(old) == VERSION
    assert quick_check(old) == ()
    with JournalWriter(old) as journal:
        for entry in after:
            journal.answer(entry)
            journal.event(published(entry))
    with JournalReader(old) as reader:
        assert [reader.answers(entry.key) for entry in written] == [(entry,) for entry in written]
        events = [event for _, event in reader.events_after(limit=-1) if isinstance(event, AgentAnswered)]
        assert events == [*map(event_of, before), *map(published, after)]
        (recalled,) = reader.recalled(KEY)
        assert (recalled.memory.text, recalled.memory.score, recalled.cited) == ("a plant", 1.5, True)
    assert quick_check(old) == ()
    with closing(sqlite3.connect(old)) as rows, rows:
        lengths = [length for (length,) in rows.execute("SELECT length(hash) FROM chain ORDER BY seq")]
        assert sorted(lengths, reverse=True) == lengths and set(lengths) == {16, 32}
        rows.execute("DROP TRIGGER fills_no_update")
        rows.execute("UPDATE fills SET price = '3'")
    changed, edited = quick_check(old)
    assert "the schema was changed" in changed
    assert "row 1 of fills" in edited and "is not as it was written" in edited
