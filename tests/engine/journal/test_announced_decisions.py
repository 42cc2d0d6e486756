"""At the event that announces a decision the journal has it, also where a killed run announces all of them again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from engine.domain.decision import Decision
from engine.domain.run import RunKind
from engine.execution.controls import halt
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.messages.commands import Halt
from engine.messages.events import DecisionMade, Noticed, RunStarted
from tests.engine.journal.conftest import NOW, SESSION

RUN = "demo-20240304"
SYMBOLS = ("AAA", "BBB", "CCC")


def test_decisions_are_there_from_their_event_on_and_not_from_that_of_a_killed_attempt(
    tmp_path: Path, a_decision: Callable[..., Decision]
) -> None:
    made = [a_decision(symbol) for symbol in SYMBOLS]
    started = RunStarted(
        run=RUN,
        time=NOW,
        kind=RunKind.DAILY,
        name="demo",
        label="rules",
        symbols=SYMBOLS,
        first=SESSION,
        last=SESSION,
        sessions=1,
        steps=("decision",),
    )
    announced = [DecisionMade(RUN, NOW, one) for one in made]
    journal = tmp_path / "demo.db"
    with JournalWriter(journal) as writer:
        writer.run_started(RunEntry(id=RUN, kind=RunKind.DAILY, name="demo", started=NOW, session=SESSION))
        # Killed after the decisions were announced, before they were written; then they are made anew.
        for event in (started, *announced, started, Noticed(RUN, NOW, "info", "goes on"), *announced):
            writer.event(event)
        for one in made:
            writer.decision(one)
        writer.event(Noticed(RUN, NOW, "info", "written"))
    there = {}
    for number in range(1, 11):
        with JournalReader(journal, at=number) as reader:
            there[number] = len(reader.decisions(RUN))
    assert there == {1: 0, 2: 1, 3: 2, 4: 3, 5: 0, 6: 0, 7: 1, 8: 2, 9: 3, 10: 3}


def test_a_command_that_an_older_program_wrote_is_no_control(tmp_path: Path) -> None:
    journal = tmp_path / "demo.db"
    halt(journal, NOW, "earnings")
    with sqlite3.connect(journal) as connection:
        columns = "time, type, json, event"
        connection.execute(f"INSERT INTO commands ({columns}) VALUES (?, 'Liquidate', '{{}}', 0)", (NOW.isoformat(),))
    with JournalReader(journal) as reader:
        assert reader.last_command_number() == 2
        assert reader.controls() == ((0, NOW, Halt("earnings")),)
