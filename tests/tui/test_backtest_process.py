"""A backtest in another process: heard, stopped, ended, and what it says when it fails."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import pytest

from engine.domain.run import RunSpec
from tui.desk.backtest_process import NICENESS, BacktestProcess, Target
from tui.view.backtest_run import DONE, FAILED, STOPPED, BacktestState


@pytest.fixture(scope="module")
def targets() -> Iterator[ModuleType]:
    """The targets under a name that the other process, which gets our path, can import too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        yield importlib.import_module("backtest_targets")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is ended by force, however slow it is."""
    monkeypatch.setattr("tui.desk.backtest_process.GRACE", 600.0)


def _ended(target: Target, seconds: float = 600) -> BacktestProcess:
    process = BacktestProcess("one", _spec(), target)
    process.start()
    assert process.wait(seconds)
    return process


def _spec() -> RunSpec:
    return RunSpec(symbols=("ABC",), first=date(2024, 1, 2), last=date(2024, 3, 1), strategy="sma-cross")


def test_a_run_is_heard_to_its_end(targets: ModuleType) -> None:
    state = _ended(targets.short).state
    assert (state.status, state.done, state.total, len(state.curve)) == (DONE, 12, 12, 12)
    assert state.baseline_name == "buy-and-hold" and len(state.baseline) == 12
    assert state.document is not None and state.document["metrics"]["sharpe"] == 1.25
    assert state.label == "rules, not a language model"


def test_a_run_stops_at_a_command_and_keeps_what_was_done(targets: ModuleType, patient: None) -> None:
    process = BacktestProcess("one", _spec(), targets.slow)
    process.start()
    deadline = time.monotonic() + 600
    while process.state.done < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.stop()
    assert process.wait(600)
    assert process.state.status == STOPPED
    assert 3 <= len(process.state.curve) < 5000 and process.state.document is not None


def test_what_a_run_raises_is_one_line_here(targets: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    state = _ended(targets.fails).state
    assert state.status == FAILED and state.error.startswith("the bars end on 2024-02-01, before 2024-03-01, as")
    assert capfd.readouterr().out == ""


def test_it_yields_the_processor_to_the_keys(targets: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.desk.backtest_process.NICENESS", NICENESS)
    assert _ended(targets.tells_its_priority).state.error == f"niceness {min(19, os.nice(0) + NICENESS)}"


def test_a_process_that_dies_is_said(targets: ModuleType) -> None:
    state = _ended(targets.dies).state
    assert state.status == FAILED and "exit code 9" in state.error


def test_a_run_begins_once_the_process_before_it_is_gone(targets: ModuleType, patient: None) -> None:
    first = BacktestProcess("one", _spec(), targets.lingers)
    first.start()
    second = BacktestProcess("two", _spec(), targets.short, after=first)
    third = BacktestProcess("three", _spec(), targets.short, after=first)
    second.start()
    third.start()
    third.stop()
    deadline = time.monotonic() + 600
    while first.state.status != FAILED and time.monotonic() < deadline:
        time.sleep(0.02)
    assert first.running and second.state.done == 0
    first.go_on()
    assert second.wait(600) and second.state.status == DONE
    assert third.wait(600) and third.state.status == STOPPED


def test_an_answer_that_comes_while_the_state_changes_is_kept(
    targets: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = BacktestProcess("one", _spec(), targets.asks)
    answer = Thread(target=process.go_on)

    def answered_meanwhile(state: BacktestState, **changes: Any) -> BacktestState:
        if state.question and "seconds" in changes and answer.ident is None:
            answer.start()
            answer.join(0.3)
        return replace(state, **changes)

    monkeypatch.setattr("tui.desk.backtest_process.replace", answered_meanwhile)
    process.start()
    assert process.wait(600)
    assert (process.state.error, process.state.question) == ("begun", "")


def test_quitting_ends_even_a_deaf_process(targets: ModuleType) -> None:
    process = BacktestProcess("one", _spec(), targets.deaf)
    process.start()
    deadline = time.monotonic() + 600
    while process._process is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    assert process.wait(600) and process.state.status == STOPPED
