"""Memories recalled for a decision are stored with it as they were ranked then, each text once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

from engine.domain.decision import Decision, Recollection
from engine.journal.entries import Recalled, RunEntry
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.journal.writer import JournalWriter

THIRD = 0.333333
"""A figure of a memory as it is kept."""

NEWS = Recollection(
    id="a1",
    kind="news",
    layer="shallow",
    session=date(2024, 2, 27),
    text="Orders \u2013 a rise of 7 %",
    recency=0.1,
    relevancy=1 / 3,
    importance=61.5,
    score=1.9,
    rank=2,
    types=("short term",),
    owner="default",
)
REPORT = Recollection(
    id="b2",
    kind="10-K",
    layer="deep",
    session=date(2023, 11, 2),
    text="A year's report",
    recency=0.75,
    relevancy=0.25,
    importance=88.0,
    score=2.5,
    rank=1,
    owner="default",
)


def test_memories_are_read_as_they_were_written_and_say_what_was_cited(
    path: Path, a_run: Callable[..., RunEntry], a_decision: Callable[..., Decision]
) -> None:
    made = replace(a_decision(), evidence=("b2",))
    later = a_decision(session=date(2024, 3, 5))
    faded = replace(NEWS, recency=0.05, rank=3)
    with JournalWriter(path) as journal:
        journal.run_started(a_run())
        for decision, memories in ((made, (NEWS, REPORT)), (later, (faded,))):
            journal.decision(decision)
            assert journal.recalled(decision, memories)
            # A run that was killed and goes on says the same again.
            assert not journal.recalled(decision, memories)
    with JournalReader(path) as reader:
        news, old_news = (replace(memory, relevancy=THIRD) for memory in (NEWS, faded))
        assert trail(reader, made.key).recalled == (Recalled(news, False, "default"), Recalled(REPORT, True, "default"))
        assert trail(reader, later.key).recalled == (Recalled(old_news, False, "default"),)
    kept = sqlite3.connect(path)
    assert kept.execute("SELECT count(*) FROM memories").fetchone() == (2,)
    kept.close()
