"""Daily runs at a broker: killed by signal and two at once, as processes of their own, and one too many."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import SandboxSettings
from connectors.wiring.sandbox import build_sandbox
from engine.clock import LiveClock
from engine.domain.run import DataSpec
from tests.bench.bench_kills import Killing
from tests.servers.fake_llm_server import Turn
from tests.tui.commands.conftest import Run

ENTRY = [sys.executable, "-c", "from tui.cli import main; main()"]


@pytest.mark.slow
def test_killed_by_signal_at_its_requests_every_order_is_there_once(tmp_path: Path, sessions_table: Path) -> None:
    (tmp_path / "home" / "cache").mkdir(parents=True)
    shutil.copy(sessions_table, tmp_path / "home" / "cache")
    report = Killing(tmp_path, seed=5, at_requests=True).work(sessions=1, kills=1)
    print("\n".join(report.lines()))
    assert report.faults == []
    assert report.kills.total() >= 1
    assert report.sent >= 4


@pytest.mark.slow
def test_killed_by_signal_at_any_moment_every_order_is_there_once(tmp_path: Path) -> None:
    """`make bench` does it 300 times over 40 sessions."""
    report = Killing(tmp_path, seed=5).work(sessions=2, kills=9)
    print("\n".join(report.lines()))
    assert report.faults == []
    assert report.kills.total() >= 6
    assert report.sent >= 8


@pytest.fixture(scope="module")
def killing(tmp_path_factory: pytest.TempPathFactory) -> Killing:
    return Killing(tmp_path_factory.mktemp("killing"), seed=5)


@pytest.fixture
def at_work(killing: Killing, tmp_path: Path) -> Iterator[Any]:
    """Starts `paperdesk --daily` on a desk of its own, at the broker of `killing`."""
    with killing.services():

        def start(**more: str) -> subprocess.Popen[str]:
            environment = {
                **killing.environment(),
                "PAPERDESK_HOME": str(tmp_path / "home"),
                "PAPERDESK_BROKER__TIMEOUT": "20",
                **more,
            }
            command = [*ENTRY, "--config", str(killing.folder / "config.toml"), "--daily"]
            return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        yield start


@pytest.mark.slow
def test_of_two_runs_at_once_one_works_and_the_other_says_to_try_again(
    killing: Killing, at_work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, released, answer = threading.Event(), threading.Event(), killing.model.next_turn

    def next_turn(body: dict[str, Any], headers: dict[str, str]) -> Turn:
        asked.set()
        assert released.wait(600)
        return answer(body, headers)

    monkeypatch.setattr(killing.model, "next_turn", next_turn)
    first = at_work()
    assert asked.wait(600)
    second = at_work()
    _, said = second.communicate(timeout=600)
    assert second.returncode == 75
    assert "another run of the desk paper is in progress" in said
    assert first.poll() is None
    released.set()
    _, err = first.communicate(timeout=600)
    assert first.returncode == 0, err
    state = killing.sandbox.state()
    assert set(state["posts"].values()) == {1}
    assert len(state["orders"]) == 6
    assert killing.model.asked.total() == 6


def test_a_second_run_of_a_session_asks_no_model_and_sends_nothing(
    killing: Killing, run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killing.services():
        for name, value in {**killing.environment(), "PAPERDESK_HOME": str(fresh)}.items():
            monkeypatch.setenv(name, value)
        daily = ("--config", str(killing.folder / "config.toml"), "--daily")
        first = run(*daily)
        assert first.code == 0, first.err
        before, asked = killing.sandbox.state(), killing.model.asked.total()
        again = run(*daily)
        assert again.code == 0
        assert "Nothing to do" in again.out
        after = killing.sandbox.state()
    assert (after["posts"], after["orders"]) == (before["posts"], before["orders"])
    assert killing.model.asked.total() == asked
    assert sum(after["requests"].values()) == sum(before["requests"].values()) + 1  # the broker's time


def test_by_this_machines_clock_a_second_run_asks_nobody_at_all(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = LiveClock().now()
    with build_sandbox(DataSpec(), SandboxSettings(start=now - timedelta(seconds=1))) as sandbox:
        environment = {
            "PAPERDESK_BROKER__KIND": "alpaca",
            "PAPERDESK_DESK__NAME": "paper",
            "PAPERDESK_DESK__SYMBOLS": "ORVL,TMBK",
            "PAPERDESK_DESK__PRESET": "finvision",
            **sandbox.environment,
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        first = run("--daily")
        assert first.code == 0, first.err
        asked = sum(sandbox.state()["requests"].values())
        again = run("--daily")
        assert again.code == 0 and "Nothing to do" in again.out
        assert sum(sandbox.state()["requests"].values()) == asked
