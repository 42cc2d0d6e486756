"""Texts that are packed against those before them: whole again in any order, after kills and restarts, and small."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from engine.domain.decision import DecisionKey
from engine.domain.model_call import Message
from engine.errors import MalformedData
from engine.journal.entries import AnswerEntry
from engine.journal.integrity import quick_check
from engine.journal.packing import MOST_LED
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.events import AgentAnswered
from engine.messages.from_values import agent_answered

FIRST = date(2024, 3, 4)
STORY = (
    "The close of session {n} stands {n}.25 above its mean; the news said nothing that a buyer could hold on to. " * 9
)


def answers(model: AnswerEntry, count: int, symbols: tuple[str, ...] = ("AAA", "BBB")) -> list[AnswerEntry]:
    """Answers of one agent, session by session, that repeat most of what they said before."""
    return [
        replace(
            model,
            key=DecisionKey(f"demo-{n}", FIRST + timedelta(n), 1, symbol, "default"),
            messages=(Message("user", STORY.format(n=n) + symbol, model.charts),),
            result=replace(
                model.result, text='{"summary": "' + f"rises {n} " * 20 + '"}', answer={"s": f"rises {n} " * 20}
            ),
        )
        for n in range(count)
        for symbol in symbols
    ]


def event_of(entry: AnswerEntry) -> AgentAnswered:
    return AgentAnswered(
        run=entry.key.run,
        time=entry.time,
        session=entry.key.session,
        symbol=entry.key.symbol,
        owner="default",
        step=entry.agent,
        text=entry.result.text,
        model="m",
        abstained=False,
        cached=False,
        input_tokens=1,
        output_tokens=2,
        cost=None,
        seconds=0.5,
    )


def published(entry: AnswerEntry) -> AgentAnswered:
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


@pytest.mark.parametrize("batched", [False, True])
def test_every_text_is_read_as_it_was_written(path: Path, an_answer: Callable[..., AnswerEntry], batched: bool) -> None:
    written = answers(an_answer(), MOST_LED + 5)
    third = len(written) // 3
    for some in (written[:third], written[third : 2 * third], written[2 * third :]):  # three processes, one by one
        with JournalWriter(path, batched=batched) as journal:
            for entry in some:
                journal.answer(entry)
                journal.event(event_of(entry))
    with JournalReader(path) as reader:
        for entry in reversed(written):  # the last first: nothing that it rests on has been read
            assert reader.answers(entry.key) == (entry,)
        assert [event for _, event in reader.events_after(limit=-1)] == [event_of(entry) for entry in written]
    assert quick_check(path) == ()


def test_a_transaction_that_failed_leaves_nothing_to_rest_on(path: Path, an_answer: Callable[..., AnswerEntry]) -> None:
    first, lost, later, last = answers(an_answer(), 4, ("AAA",))
    with JournalWriter(path) as journal:
        journal.answer(first)
        with pytest.raises(ZeroDivisionError), journal.together():
            journal.answer(lost)
            raise ZeroDivisionError
        journal.answer(later)
        with closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Exception, match="locked"):
                JournalWriter(path, wait=0.01).answer(lost)
        journal.answer(last)
    with JournalReader(path) as reader:
        assert [reader.answers(entry.key) for entry in (last, lost, later, first)] == [(last,), (), (later,), (first,)]


def test_repeated_texts_take_little_room(path: Path, an_answer: Callable[..., AnswerEntry]) -> None:
    written = answers(an_answer(), 20, ("AAA",))
    with JournalWriter(path) as journal:
        for entry in written:
            journal.answer(entry)
    texts = sum(len(entry.messages[0].text) + 2 * len(entry.result.text) for entry in written)
    with closing(sqlite3.connect(path)) as rows:
        assert rows.execute("SELECT sum(length(packed)) FROM answers").fetchone()[0] < texts / 6


def test_a_lost_text_is_named_by_whoever_rests_on_it(path: Path, an_answer: Callable[..., AnswerEntry]) -> None:
    written = answers(an_answer(), 2, ("AAA",))
    with JournalWriter(path) as journal:
        for entry in written:
            journal.answer(entry)
    with closing(sqlite3.connect(path)) as rows, rows:
        rows.execute("DROP TRIGGER answers_no_delete")
        rows.execute("DELETE FROM answers WHERE seq = 1")
    with JournalReader(path) as reader, pytest.raises(MalformedData, match=r"seq 2, .* symbol AAA"):
        reader.answers(written[1].key)


def test_the_event_of_an_answer_names_its_row(path: Path, an_answer: Callable[..., AnswerEntry]) -> None:
    failed = replace(an_answer(failed=True), agent="chart", reason="refused: no")
    written = [*answers(an_answer(), 3, ("AAA",)), failed]
    with JournalWriter(path) as journal:
        for entry in written:
            journal.answer(entry)
            journal.event(published(entry))
        journal.event(event_of(written[-1]))  # says something else than the answer
    expected = [*map(published, written), event_of(written[-1])]
    with JournalReader(path) as reader:
        assert [event for _, event in reader.events_after(limit=-1)] == expected
        assert reader.events_after(2, limit=1) == ((3, expected[2]),)
    with JournalReader(path, at=2) as reader:
        assert [event for _, event in reader.events_after()] == expected[:2]
    with closing(sqlite3.connect(path)) as rows, rows:
        sizes = [size for (size,) in rows.execute("SELECT length(packed) + length(json) FROM events ORDER BY seq")]
        assert max(sizes[:4]) < 60 < sizes[4]
        rows.execute("DROP TRIGGER answers_no_delete")
        rows.execute("DELETE FROM answers WHERE seq = 4")
    with JournalReader(path) as reader, pytest.raises(MalformedData, match="seq 4"):
        reader.events_after(3)
