"""The record that agents read in a test begins with the test's book; what training did is named as training."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from engine.domain.model_call import AnswerRecord
from engine.journal.reader import JournalReader
from engine.market.trading_hours import calendar_for
from engine.settings import places
from tests.long_cases import first_of
from tests.tui.commands.conftest import Run

WINDOW = ("--symbols", "ORVL", "--warm-up-from", "2025-02-18", "--from", "2025-03-03", "--to", "2025-03-12")
FIRST = date(2025, 2, 28)
"""The session whose close the first decision of the test reads."""


@pytest.mark.parametrize("preset", first_of(1, ["desk", "finagent", "finvision", "finmem", "tradinggpt-single"]))
def test_what_training_earned_is_no_record_of_the_test(fresh: Path, run: Run, preset: str) -> None:
    assert run("backtest", "--preset", preset, *WINDOW, "--run", "mine", "--json").code == 0
    with JournalReader(places.run_journal("mine")) as journal:
        outcomes = [one for one in journal.outcomes("mine") if one.decision_session >= FIRST]
        answers = journal.answers(run="mine")
    for one in (next(o for o in outcomes if o.owner == owner) for owner in {o.owner for o in outcomes}):
        assert (one.decision_session, one.cumulative) == (FIRST, one.reward)
    asked = [entry for entry in answers if entry.key.session >= FIRST]
    trained = [entry for entry in answers if entry.key.session < FIRST]
    assert asked and any(list(record(entry)) for entry in asked)
    assert all(day >= FIRST for entry in asked for day, _ in record(entry))
    for entry in asked:
        for day, line in record(entry):
            assert re.search(r"reward [+-]\d+\.\d{3}% \(the asset itself [+-]\d+\.\d\d%\), cumul", line), (day, line)
    # What memory brings up of training says so.
    text = "\n".join(message.text for entry in asked for message in entry.messages)
    checked = 0
    for line in text.splitlines():
        day = re.match(r"- \[[^\]]+\] (\d{4}-\d\d-\d\d) \S*reflection: ", line)
        told = any(word in line for word in ("all so far", "Good: ", "Poor: ", "Mixed: "))
        if day is not None and date.fromisoformat(day[1]) < FIRST and told:
            assert " training" in line, line
            checked += 1
    assert checked or preset != "tradinggpt-single"
    assert any(list(record(entry)) for entry in trained)  # training has a record of its own


def record(entry: AnswerRecord) -> list[tuple[date, str]]:
    """The lines of a question that tell a past decision with its reward."""
    lines = (line for message in entry.messages for line in message.text.splitlines())
    found = ((re.search(r"(\d{4}-\d\d-\d\d): [A-Z]+(?: [\d.]+)?, close ", line), line) for line in lines)
    return [(date.fromisoformat(match[1]), line) for match, line in found if match is not None]


def test_memories_of_training_are_named_so(fresh: Path, run: Run) -> None:
    assert run("backtest", "--preset", "finmem", *WINDOW, "--run", "mine", "--json").code == 0
    kept = run("memory", "list", "--run", "mine", "--limit", "0", "--json").json["memories"]
    reviews = [one for one in kept if one["kind"] in ("reflection", "extended-reflection")]
    begun = {one["text"].startswith("In training: ") or " in training (" in one["text"][:25]: one for one in reviews}
    assert set(begun) == {True, False}
    for one in reviews:
        named = one["text"].startswith("In training: ") or " in training (" in one["text"][:25]
        assert named == (date.fromisoformat(one["source"].split(" of ")[-1]) < FIRST), one["text"][:80]


def test_nobody_missed_a_rise_before_its_first_decision(fresh: Path, tmp_path: Path, run: Run) -> None:
    """The price doubles before the window and stands still in it."""
    prices = tmp_path / "data" / "prices"
    prices.mkdir(parents=True)
    rows, close = ["date,open,high,low,close,adj_close,volume"], 100.0
    for day in calendar_for("UP").sessions(date(2024, 1, 2), date(2024, 5, 31)):
        close = close * 1.02 if day < date(2024, 4, 1) else 200.0
        rows.append(f"{day},{close:.2f},{close:.2f},{close:.2f},{close:.2f},{close:.2f},1000")
    (prices / "UP.csv").write_text("\n".join(rows) + "\n")
    window = ("--symbols", "UP", "--from", "2024-04-08", "--to", "2024-05-03", "--data", str(tmp_path / "data"))
    assert run("backtest", "--preset", "finvision", *window, "--run", "mine", "--json").code == 0
    with JournalReader(places.run_journal("mine")) as journal:
        signals = [entry for entry in journal.answers(run="mine") if entry.agent == "signal-reflection"]
    assert len(signals) > 10
    for entry in signals:
        assert entry.answer is not None and not any("issed" in one for one in entry.answer["missed"])
        assert "The first decision was after the close of 2024-04-05" in entry.messages[-1].text
