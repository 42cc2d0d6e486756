"""Recorded answers: replayed without a model and never by the rules, counted, carried to another home, removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.reports.documents.records import latest_backtests
from engine.settings import places
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_costs import BACKTEST, LOCAL_PRICE, Counting, Desk, desk, service

__all__ = ["desk", "service"]

AGAIN = (*BACKTEST[:-1], "again", "--model", "replay")


@pytest.fixture
def recorded(desk: Desk, service: Counting, run: Run) -> Run:
    """A run of a model was recorded, and the configuration names none."""
    desk(LOCAL_PRICE)
    assert run(*BACKTEST, "--yes").code == 0
    places.config_file().write_text(places.config_file().read_text().replace('default = "near:m1"', ""))
    service.requests.clear()
    return run


def test_replay_takes_the_model_that_is_recorded_where_none_is_configured(recorded: Run, service: Counting) -> None:
    first = recorded("report", "--run", "paid", "--format", "json").json
    again = recorded(*AGAIN, "--json")
    assert again.code == 0 and service.requests == []
    assert again.json["fingerprint"] == first["fingerprint"]
    assert again.json["model"]["spec"] == "near:m1" and again.json["model"]["cost"] == "0.00"
    assert again.json["model"]["cached_calls"] == again.json["model"]["calls"] == first["model"]["calls"]


def test_replay_never_runs_the_rules(fresh: Path, run: Run, desk: Desk) -> None:
    places.config_file().write_text('[desk]\npreset = "finvision-no-reflection"\n')
    refused = run(*AGAIN)
    assert refused.code == 65 and refused.err.count("\n") == 1
    assert "--model replay: no answers are recorded yet" in refused.err
    assert latest_backtests() == []

    desk()  # of one of the agents alone is there anything to replay
    assert run(*BACKTEST, "--yes").code == 0
    agents = '[models.agents.decision]\nmodel = "near:m1"\n'
    places.config_file().write_text(places.config_file().read_text().replace('default = "near:m1"', agents))
    refused = run(*AGAIN)
    assert refused.code == 78 and refused.err.count("\n") == 1
    assert "answered by the rules" in refused.err and "near:m1" in refused.err

    desk()  # a question that nobody has answered
    missed = run(*AGAIN[:-4], "--from", "2025-03-18", "--to", "2025-03-20", "--run", "missed", "--model", "replay")
    assert missed.code == 65 and "no answer of near:m1 is recorded for" in missed.err


def test_recorded_answers_are_counted_carried_and_removed(recorded: Run, service: Counting, tmp_path: Path) -> None:
    run, file = recorded, tmp_path / "answers.jsonl"
    stats = run("replay", "stats", "--json").json
    (model,) = stats["models"]
    assert (stats["answers"], model["spec"]) == (model["answers"], "near:m1") and stats["bytes"] > 0
    paid = run("report", "--run", "paid", "--format", "json").json["model"]
    assert model["reasoning_tokens"] == paid["reasoning_tokens"] > 0
    assert model["first"] <= model["last"]
    assert f"near:m1: {model['answers']} answers" in run("replay", "stats").out

    assert run("replay", "export", str(file), "--run", "paid", "--json").json["exported"] > 0
    asked = run("replay", "export", str(file), "--json").json["exported"]
    assert asked == len(file.read_text().splitlines()) == stats["answers"]
    assert run("replay", "import", str(file), "--json").json == {
        "schema": 1,
        "file": str(file),
        "imported": 0,
        "known": asked,
    }

    # In another home the imported answers serve as if they had been given there.
    places.replay_cache().unlink()
    assert run("replay", "import", str(file)).out == f"{asked} answers imported, 0 were there and stay\n"
    assert run(*AGAIN).code == 0 and service.requests == []

    # Both runs have the same answers: they stay. Then one is gone, and the other's go with it.
    kept = run("replay", "prune", "--run", "paid", "--json").json
    assert (kept["removed"], kept["retained"]) == (0, asked) and kept["shared"] > 0
    places.run_journal("again").unlink()
    removed = run("replay", "prune", "--run", "paid", "--before", "2999-01-01", "--json").json
    assert removed["removed"] == kept["shared"] and removed["retained"] == asked - kept["shared"]
    assert run(*AGAIN[:-3], "gone", *AGAIN[-2:]).code == 65


def test_age_decides_what_is_removed_and_undated_answers_stay(recorded: Run, tmp_path: Path) -> None:
    run, file = recorded, tmp_path / "answers.jsonl"
    run("replay", "export", str(file))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line, time in zip(lines, ("2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", None), strict=False):
        line["recorded"] = time
    places.replay_cache().unlink()
    file.write_text("".join(json.dumps(line) + "\n" for line in lines[:3]))
    run("replay", "import", str(file))
    done = run("replay", "prune", "--before", "2026-01-01", "--json").json
    assert done == {"schema": 1, "removed": 1, "retained": 2, "shared": 0, "undated": 1}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{}", "line 1 is not a recorded answer: provider: Field required"),
        ("not JSON", "line 1 is not a recorded answer: Invalid JSON"),
        ('{"provider": "p", "model": "m", "sees": false, "result": {"model": "p:m"}}', "has no hash"),
    ],
)
def test_a_line_that_is_no_answer_is_named_and_nothing_is_imported(
    fresh: Path, run: Run, tmp_path: Path, line: str, said: str
) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(f"{line}\n")
    refused = run("replay", "import", str(file))
    assert refused.code == 65 and said in refused.err and refused.err.count("\n") == 1
    assert run("replay", "stats", "--json").json["answers"] == 0


@pytest.mark.parametrize(
    "wrong",
    [("export",), ("stats", "FILE"), ("prune",), ("stats", "--before", "2026-01-01"), ("import", "F", "--run", "x")],
)
def test_a_call_that_means_nothing_is_refused(fresh: Path, run: Run, wrong: tuple[str, ...]) -> None:
    assert run("replay", *wrong).code == 2
