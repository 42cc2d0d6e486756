"""`paperdesk sandbox --sessions N`, which `make paper-demo` calls: daily runs as processes, both books compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from engine.domain.portfolio import Portfolio
from engine.domain.run import EquityPoint, RunKind
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from tests.conftest import REPO

PLAY = ("sandbox", "--start", "2025-03-10", "--sessions", "1")


def paperdesk(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("APCA_", "PAPERDESK_"))}
    return subprocess.run(
        [sys.executable, "-c", "from tui.cli import main; main()", *arguments],
        env={**environ, "PAPERDESK_HOME": str(home), "PAPERDESK_DESK__PRESET": "finvision", "PYTHONPATH": str(REPO)},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.slow
def test_a_session_is_played_and_said(tmp_path: Path) -> None:
    played(tmp_path)


@pytest.mark.slow
def test_a_desk_that_was_played_is_gone_on_with(tmp_path: Path) -> None:
    played(tmp_path)
    again = paperdesk(tmp_path, "sandbox", "--sessions", "1", "--json")
    assert (again.returncode, again.stderr) == (0, "")
    document = json.loads(again.stdout)
    (session,) = document["sessions"]
    assert document["agree"] is True and session["books"]["journal_cash"] == session["books"]["broker_cash"]
    assert (session["session"], session["outcome"]) == ("2025-03-11", "done")
    with JournalReader(tmp_path / "data" / "desks" / "demo.db") as reader:
        assert [run.session for run in reader.runs()] == [date(2025, 3, day) for day in (10, 11)]
        assert reader.counts()["fills"] > 0


def played(tmp_path: Path) -> None:
    """Play a first session at the sandbox, and read what was said and what is in the journal."""
    first = paperdesk(tmp_path, *PLAY)
    assert (first.returncode, first.stderr) == (0, "")
    lines = first.stdout.splitlines()
    assert lines[0].split() == ["SESSION", "DECIDED", "ORDERS", "FILLS", "VALUE", "CASH", "BOOKS"]
    assert lines[1].startswith("2025-03-10") and lines[1].endswith("agree") and len(lines[1]) <= 80
    assert "they agree" in first.stdout and "Decided by  rules, not a language model" in first.stdout
    assert f"export PAPERDESK_HOME={tmp_path}" in first.stdout
    assert "export PAPERDESK_BROKER__CLOCK=broker" in first.stdout
    with JournalReader(tmp_path / "data" / "desks" / "demo.db") as reader:
        assert [run.session for run in reader.runs()] == [date(2025, 3, 10)]
        assert reader.account() is not None
        assert reader.counts()["orders"] > 0


def test_a_desk_on_the_simulated_market_is_left_alone(tmp_path: Path) -> None:
    journal = tmp_path / "data" / "desks" / "demo.db"
    day = date(2025, 3, 10)
    with JournalWriter(journal) as writer:
        writer.run_started(
            RunEntry(
                id="daily-demo-20250310",
                kind=RunKind.DAILY,
                name="finvision",
                started=datetime(2025, 3, 10, 21, tzinfo=UTC),
            )
        )
        writer.session_settled("daily-demo-20250310", EquityPoint(day, Decimal(1), Portfolio(Decimal(1)), {}))
    said = paperdesk(tmp_path, *PLAY)
    assert said.returncode == 78 and said.stderr.count("\n") == 1
    assert "books of the simulated market" in said.stderr and "--desk" in said.stderr
    with JournalReader(journal) as reader:
        assert len(reader.runs()) == 1


def test_a_clock_that_runs_and_one_that_is_moved_are_two_things(tmp_path: Path) -> None:
    said = paperdesk(tmp_path, *PLAY, "--speed", "5")
    assert said.returncode == 2 and "--speed" in said.stderr
