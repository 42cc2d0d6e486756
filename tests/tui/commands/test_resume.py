"""A run goes on by one process at a time, and after its embedder could not be had."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.llm import gate
from engine.journal.reader import JournalReader
from engine.settings import places
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Say, Turn, fake_llm_server
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_costs import BACKTEST, Counting, Desk, desk, service

__all__ = ["desk", "service"]

DAY = ("--daily", "--session", "2025-03-11", "--json")


@pytest.mark.slow
def test_a_run_that_another_process_plays_is_not_gone_on_with(desk: Desk, service: Counting, run: Run) -> None:
    desk()
    asked, goes_on = threading.Event(), threading.Event()

    def trouble(number: int) -> Turn | None:
        if number > 8:
            asked.set()
            goes_on.wait(600)
        return None

    service.trouble = trouble
    code = f"from tui.cli import main; main({list(BACKTEST)!r})"
    with subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ.copy(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as other:
        try:
            assert asked.wait(600)
            refused = run("backtest", "--resume", "paid")
        finally:
            goes_on.set()
        _, said = other.communicate()
    assert other.returncode == 0, said
    assert refused.code == 75 and refused.err.count("\n") == 1
    assert "the run paid is being played by another process" in refused.err
    with JournalReader(places.run_journal("paid")) as reader:
        assert reader.run("paid").outcome == "done"


@pytest.fixture
def vectors(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """A service of vectors for a desk whose agents are the rules; retries follow without waiting."""
    monkeypatch.setattr(gate, "PACE", 0.001)
    with fake_llm_server() as running:
        places.config_file().write_text(
            f'[desk]\npreset = "desk"\nsymbols = ["ORVL"]\n[memory]\nembedder = "near:vectors"\n'
            f'[endpoints.near]\nbase_url = "{running.openai_url}"\n'
        )
        yield running


def test_without_its_embedder_a_day_stays_due(vectors: FakeLLMServer, run: Run) -> None:
    vectors.play(Fail(503, "gone"))
    failed = run(*DAY)
    assert (failed.code, failed.result, failed.err.count("\n")) == (75, "", 1)
    assert "embedder near:vectors: unavailable: gone" in failed.err
    vectors.play(Say())
    done = run(*DAY)
    assert (done.code, done.json["outcome"]) == (0, "done")
    with JournalReader(places.desk_journal("demo")) as reader:
        assert {str(made.key.session) for made in reader.decisions()} == {"2025-03-11"}


def test_without_its_embedder_a_backtest_stops_and_goes_on(vectors: FakeLLMServer, run: Run) -> None:
    asked: dict[str, Any] = {"from": "2025-03-11", "to": "2025-03-13", "run": "stopped"}
    vectors.play(*[Say()] * 6, Fail(503, "gone"))
    stopped = run("backtest", *(part for name, value in asked.items() for part in (f"--{name}", value)), "--yes")
    assert stopped.code == 75 and "`paperdesk backtest --resume stopped` continues" in stopped.err
    vectors.play(Say())
    assert run("backtest", "--resume", "stopped", "--yes", "--json").code == 0
