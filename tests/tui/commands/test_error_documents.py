"""What a command that fails prints with --json: one document, its own or that of the error, and the line on stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tui.commands.conftest import Run

EMPTY_DESK = """
[desk]
symbols = []
[data]
folder = "{folder}"
"""


@pytest.fixture
def without_symbols(fresh: Path, tmp_path: Path) -> None:
    """A configured desk with a data folder and no symbols."""
    (tmp_path / "data" / "prices").mkdir(parents=True)
    (fresh / "config.toml").write_text(EMPTY_DESK.format(folder=(tmp_path / "data").as_posix()), encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--daily",), 2),
        (("--daily", "--session", "2031-01-02"), 2),
        (("--daily", "--config", "no/such/file.toml"), 78),
        (("--daily", "--no-such-option"), 2),
        (("bakctest",), 2),
        (("status", "--config", "no/such/file.toml"), 78),
        (("why", "AAPL", "2025-01-02"), 65),
        (("backtest", "--symbols", "AAPL", "--from", "2025-01-02", "--to", "2025-01-10"), 65),
        (("arena", "--days", "0"), 2),
        (("runs", "compare", "none", "other"), 65),
        (("report",), 65),
    ],
)
def test_a_failure_is_a_document_and_a_line(
    run: Run, without_symbols: None, arguments: tuple[str, ...], code: int
) -> None:
    said = run(*arguments, "--json")
    assert said.code == code == said.json["exit_code"]
    assert said.json["schema"] == 1
    assert said.err.count("\n") == 1 and said.json["error"] in said.err
    assert run(*arguments).out == ""


@pytest.mark.parametrize(
    "arguments",
    [("report", "--run"), ("audit", "--run"), ("rerun",), ("backtest", "--resume"), ("backtest", "--model")],
)
def test_a_run_that_there_is_not_is_named_beside_the_latest(run: Run, fresh: Path, arguments: tuple[str, ...]) -> None:
    window = ("--symbols", "ORVL", "--from", "2025-01-02", "--to", "2025-01-10")
    run("backtest", *window, "--strategy", "cash", "--run", "mine")
    said = run(*arguments, "replay:nosuch", *window) if "--model" in arguments else run(*arguments, "nosuch")
    assert (said.code, said.err) == (65, "paperdesk: no run nosuch; the latest are mine\n")


def test_a_watch_prints_a_document_a_line(run: Run, without_symbols: None) -> None:
    said = run("--watch", "--json")
    documents = [json.loads(line) for line in said.out.splitlines()]
    assert said.code == documents[-1]["exit_code"] == 2


def test_a_document_of_its_own_is_not_followed_by_another(run: Run, without_symbols: None) -> None:
    said = run("doctor", "--json")
    assert said.code == 1 and "checks" in said.json


def test_common_options_stand_before_or_after_the_commands_name(run: Run, fresh: Path) -> None:
    after = run("orders", "--desk", "growth", "--json").json
    assert run("--json", "--desk", "growth", "orders").json == after == {**after, "desk": "growth"}
    assert run("--run", "x", "halt").code == run("halt", "--run", "x").code == 2
    assert run("--session", "2025-03-14", "status").code == 2 and run("--json").code == 2


def test_a_command_that_there_is_not_is_told_with_the_nearest(run: Run) -> None:
    assert "'backtest'" in run("bakctest").err
    assert "xyzzy" in run("xyzzy").err and run("xyzzy").code == 2
