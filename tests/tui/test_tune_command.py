"""`paperdesk tune`: a seeded search, its paste-ready parameters, and Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from engine.app.records.workers import Team
from engine.app.research import parameter_search
from engine.domain.run import Result, RunSpec
from engine.lab import tuning
from engine.lab.rule_backtest import run_strategy
from engine.settings import places
from tui.cli import main
from tui.commands import tune

TRAIN = ("--from", "2023-06-01", "--to", "2024-06-28")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def tuned(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run("tune", *arguments, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_equal_seeds_find_equal_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("sma-cross", "--symbols", "ORVL", *TRAIN, "--trials", "15")
    first = tuned(capsys, *flags, "--seed", "3")
    assert first == tuned(capsys, *flags, "--seed", "3")
    assert first["tuned"][0]["params"] != tuned(capsys, *flags, "--seed", "4")["tuned"][0]["params"]


def test_the_best_is_never_worse_in_sample_than_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    found = tuned(capsys, "z-score", "--symbols", "ORVL,BXWD", *TRAIN, "--trials", "12")
    assert [of["symbol"] for of in found["tuned"]] == ["ORVL", "BXWD"]
    for of in found["tuned"]:
        assert of["in_sample"]["tuned"] >= of["in_sample"]["default"]
        assert of["trials"] == 12
        assert set(of["params"]) == {"window", "threshold"}


def test_printed_parameters_give_the_printed_metric_in_a_backtest(capsys: pytest.CaptureFixture[str]) -> None:
    test = ("--test-from", "2024-07-01", "--test-to", "2024-12-31")
    found = tuned(capsys, "macd", "--symbols", "ORVL", *TRAIN, "--trials", "10", *test)
    (of,) = found["tuned"]
    assert int(of["params"]["fast"]) < int(of["params"]["slow"])
    params = [flag for key, value in of["params"].items() for flag in ("--param", f"{key}={value}")]
    windows = {"in_sample": TRAIN, "out_of_sample": ("--from", "2024-07-01", "--to", "2024-12-31")}
    for part, window in windows.items():
        assert run("backtest", "--strategy", "macd", *params, "--symbols", "ORVL", *window, "--json") == 0
        metrics = json.loads(capsys.readouterr().out)["metrics"]
        assert metrics["sharpe"] == pytest.approx(of[part]["tuned"], rel=1e-12)


def test_the_winner_is_deflated_by_all_that_was_tried(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("z-score", "--symbols", "ORVL", *TRAIN, "--trials")
    (few,) = tuned(capsys, *flags, "3")["tuned"]
    (of,) = tuned(capsys, *flags, "12")["tuned"]
    assert run("trials", "--symbols", "ORVL", *TRAIN, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert few["luck"]["trials"] == 3 and of["luck"]["trials"] == max(12, listed["count"]) <= 15
    assert {one["kind"] for one in listed["trials"]} == {"tune trial"}
    assert of["luck"]["deflated_sharpe"] < of["luck"]["psr"] and 0 <= of["luck"]["overfitting"] <= 1
    assert run("trials", "--symbols", "ORVL", "--limit", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum("tune trial" in line for line in lines) == 2 and "different trial" in lines[-1]


def test_a_walk_forward_tests_each_search_on_the_next_stretch(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("z-score", "--symbols", "ORVL", *TRAIN, "--trials", "4", "--walk-forward", "2")
    (of,) = tuned(capsys, *flags)["tuned"]
    first, second = of["walk_forward"]
    assert (first["first"], second["test_last"]) == ("2023-06-01", "2024-06-28")
    assert first["last"] < first["test_first"] == second["first"] <= first["test_last"] == second["last"]
    params = [flag for key, value in second["params"].items() for flag in ("--param", f"{key}={value}")]
    window = ("--from", second["test_first"], "--to", second["test_last"])
    assert run("backtest", "--strategy", "z-score", *params, "--symbols", "ORVL", *window, "--json") == 0
    sharpe = json.loads(capsys.readouterr().out)["metrics"]["sharpe"]
    assert sharpe == pytest.approx(second["out_of_sample"]["tuned"], rel=1e-12)
    assert run("tune", *flags) == 0
    assert capsys.readouterr().out.count("walk forward ") == 2
    assert run("tune", *flags[:-1], "99") == 2


def test_a_walk_forward_begins_with_the_bars(capsys: pytest.CaptureFixture[str]) -> None:
    window = ("--from", "2019-01-02", "--to", "2021-12-31")
    (of,) = tuned(capsys, "z-score", "--symbols", "ORVL", *window, "--trials", "2", "--walk-forward", "1")["tuned"]
    assert [(one["first"], one["test_last"]) for one in of["walk_forward"]] == [("2021-01-04", "2021-12-31")]


def test_fixed_parameters_are_not_searched(capsys: pytest.CaptureFixture[str]) -> None:
    found = tuned(capsys, "macd", "--symbols", "ORVL", *TRAIN, "--trials", "4", "--param", "fast=7")
    assert found["tuned"][0]["params"]["fast"] == "7"
    assert set(found["tuned"][0]["params"]) == {"fast", "slow", "signal"}


def test_the_text_is_ready_to_paste(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tune", "z-score", "--symbols", "ORVL", *TRAIN, "--trials", "3") == 0
    captured = capsys.readouterr()
    assert "  --param window=" in captured.out and " --param threshold=" in captured.out
    assert "in sample" in captured.out and "buy and hold" in captured.out
    # Nobody watches: no progress bar, and none of the search's own talk.
    assert captured.err == ""


def test_ctrl_c_prints_the_best_so_far(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def impatient(symbol: str, done: int, wanted: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(tune, "progress_bar", lambda: nullcontext(impatient))
    assert run("tune", "macd", "--symbols", "ORVL,BXWD", *TRAIN, "--trials", "1000", "--json") == 130
    captured = capsys.readouterr()
    made = json.loads(captured.out)
    assert made["interrupted"] is True
    assert [(of["symbol"], of["trials"]) for of in made["tuned"]] == [("ORVL", 5)]
    assert made["tuned"][0]["in_sample"]["tuned"] >= made["tuned"][0]["in_sample"]["default"]
    assert "interrupted after 5 trials of ORVL" in captured.err


def test_trials_side_by_side_are_the_same_whatever_ends_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flags = ("macd", "--symbols", "ORVL", *TRAIN, "--walk-forward", "1", "--trials", "16", "--jobs", "2")
    found = tuned(capsys, *flags)
    monkeypatch.setenv(places.HOME, str(tmp_path / "other"))
    monkeypatch.setattr(parameter_search, "_play_side_by_side", backwards)
    assert tuned(capsys, *flags) == found and found["tuned"][0]["trials"] == 16


def backwards(team: Team, given: Path, specs: Sequence[RunSpec]) -> Sequence[Result]:
    return [parameter_search._player(given)([spec])[0] for spec in reversed(specs)][::-1]


def test_a_search_goes_on_and_measures_nothing_twice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flags = ("macd", "--symbols", "ORVL", *TRAIN, "--trials")
    whole = tuned(capsys, *flags, "12")
    monkeypatch.setenv(places.HOME, str(tmp_path / "other"))
    tuned(capsys, *flags, "7")
    played: list[RunSpec] = []

    def noted(spec: RunSpec, *arguments: Any, **more: Any) -> Result:
        played.append(spec)
        return run_strategy(spec, *arguments, **more)

    monkeypatch.setattr(tuning, "run_strategy", noted)
    assert tuned(capsys, *flags, "12") == whole
    searched = len({spec.params for spec in played})
    assert 0 < searched <= 12 - 7 + 3  # the best, the defaults, and buy and hold are measured at every end
    played.clear()
    assert tuned(capsys, *flags, "12") == whole and len(played) == 3
    (record,) = (tmp_path / "other").glob("cache/searches/*.log")
    record.write_text("no record\nof any search\n", encoding="utf-8")
    assert run("tune", *flags, "12") == 65 and record.name in capsys.readouterr().err


@pytest.mark.slow
def test_a_search_whose_process_was_killed_goes_on_and_counts_each_trial_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flags = ("macd", "--symbols", "ORVL", *TRAIN, "--trials", "12", "--jobs", "2")

    def looks() -> int:
        assert run("trials", "--symbols", "ORVL", *TRAIN, "--json") == 0
        return int(json.loads(capsys.readouterr().out)["count"])

    def kill_one(symbol: str, done: int, wanted: int) -> None:
        if done == 4:
            (process := active_children()[0]).kill()
            process.join()

    whole, wanted = tuned(capsys, *flags), looks()
    monkeypatch.setenv(places.HOME, str(tmp_path / "other"))
    with monkeypatch.context() as patched:
        patched.setattr(tune, "progress_bar", lambda: nullcontext(kill_one))
        assert run("tune", *flags) == 75
    assert capsys.readouterr().err.count("\n") == 1 and 0 < looks() < wanted
    assert tuned(capsys, *flags) == whole and looks() == wanted


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("buy-and-hold", *TRAIN), 2, "no parameter to tune"),
        (("z-score", *TRAIN, "--param", "window=14", "--param", "threshold=1"), 2, "besides those that --param fixes"),
        (("z-scor", *TRAIN), 2, "did you mean z-score"),
        (("macd", "--from", "2023-06-01"), 2, "--to"),
        (("macd", "--from", "2024-06-28", "--to", "2023-06-01"), 2, "is after"),
        (("macd", *TRAIN, "--test-from", "2024-07-01"), 2, "--test-from and --test-to"),
        (("macd", *TRAIN, "--test-from", "2024-06-03", "--test-to", "2024-12-31"), 2, "in the training window"),
        (("macd", *TRAIN, "--trials", "0"), 2, "--trials"),
        (("macd", *TRAIN, "--symbols", "NOPE"), 65, "NOPE"),
        (("macd", *TRAIN, "--data", "no/such/folder", "--symbols", "A"), 65, "no/such/folder"),
    ],
)
def test_what_cannot_be_tuned_is_one_line(
    arguments: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("tune", *arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err and captured.err.count("\n") == 1
