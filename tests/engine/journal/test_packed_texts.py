"""Long texts lie compressed in their row, and are read as they were written; an answer's event repeats none of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from engine.domain.model_call import AnswerRecord
from engine.errors import MalformedData
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.answer_text import agent_answered
from engine.messages.events import AgentAnswered


def published(entry: AnswerRecord) -> AgentAnswered:
    """The event that a run publishes a moment after an answer."""
    return agent_answered(
        entry.time + timedelta(microseconds=250),
        entry.key,
        entry.agent,
        result=entry.result,
        outcome=entry.outcome,
        reason=entry.reason,
        answer=entry.answer,
    )


def test_the_event_of_an_answer_names_its_row(path: Path, an_answer: Callable[..., AnswerRecord]) -> None:
    written = [an_answer(), replace(an_answer(failed=True), agent="chart", reason="refused: no")]
    other = replace(published(written[-1]), text="It says something else than the answer. " * 9)
    with JournalWriter(path) as journal:
        for entry in written:
            journal.answer(entry)
            journal.event(published(entry))
        journal.event(other)
    expected = [*map(published, written), other]
    with JournalReader(path) as reader:
        assert reader.answers(run=written[0].key.run) == tuple(written)
        assert [event for _, event in reader.events_after(limit=-1)] == expected
    with JournalReader(path, at=2) as reader:
        assert [event for _, event in reader.events_after()] == expected[:2]
    with closing(sqlite3.connect(path)) as rows, rows:
        said, packed = "length(messages || text || raw)", "length(packed)"
        assert rows.execute(f"SELECT {said}, {packed} < 600 FROM answers WHERE seq = 1").fetchone() == (0, 1)
        sizes = [size for (size,) in rows.execute("SELECT length(coalesce(packed, json)) FROM events ORDER BY seq")]
        assert max(sizes[:2]) < 60 < sizes[2]
        rows.execute("DROP TRIGGER answers_no_delete")
        rows.execute("DELETE FROM answers WHERE seq = 2")
    with JournalReader(path) as reader, pytest.raises(MalformedData, match="seq 2"):
        reader.events_after(1)
