"""`why --redecide` and `parity` as they are typed: both sides on the screen and in JSON, and nothing is written."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.run import Trial, TrialKind
from engine.settings import places
from engine.settings.config import load_config
from tests.engine.desks import RulesExcept
from tests.engine.trial_reader import looks_in
from tests.tui.commands.conftest import BACKTEST, FEW_AGENTS, SESSIONS, Run, contents


class Contrary(RulesExcept):
    """The rules, except that HLXM is always bought."""

    def changed(self, request: ModelRequest, result: ModelResult) -> ModelResult:
        if request.purpose != "decision" or request.symbol != "HLXM":
            return result
        bold = {
            "recommendation": "BUY",
            "position_size": 6,
            "rule": "strong uptrend",
            "explanation": "Bold \x1b[31mwords.",
        }
        return replace(result, answer={**(result.answer or {}), **bold})


def contents_but_looks(home: Path) -> dict[str, bytes]:
    """Every file of a home but the index in which looks are counted."""
    index = str(places.trial_index().relative_to(home))
    return {name: data for name, data in contents(home).items() if name != index}


def trials() -> tuple[Trial, ...]:
    return looks_in(places.trial_index())


def test_with_nothing_changed_the_decision_is_said_to_be_the_same(run: Run, desk: Path) -> None:
    bought = run("decisions", "--action", "buy", "--json").json["decisions"][0]
    symbol, session = bought["symbol"], bought["session"]
    before = contents(desk)
    said = run("why", symbol, session, "--redecide")
    document = run("why", symbol, session, "--redecide", "--json").json
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(
        f"{symbol}  {session}  BUY {bought['size']:g} %; re-run: the same, with every answer and memory\n"
    )
    assert "The decision is the same" in said.out and "otherwise" not in said.out
    assert (document["same"], document["same_throughout"]) == (True, True)
    (both,) = document["decisions"]
    for told in ("action", "size", "reason", "cut", "asked", "evidence", "recollections"):
        assert both["then"][told] == both["now"][told]
    assert [order["id"] for order in both["then"]["orders"]] == [order["id"] for order in both["now"]["orders"]]
    assert [order["notional"] for order in both["now"]["orders"]] == [o["notional"] for o in both["then"]["orders"]]
    assert both["now"]["orders"][0]["moves"] == [] and both["then"]["model"] == both["now"]["model"]
    assert contents_but_looks(desk) == before
    assert [(trial.kind, trial.symbols, str(trial.first), trial.first == trial.last) for trial in trials()] == [
        (TrialKind.REDECISION, (symbol,), session, True)
    ] * 2


def test_what_is_left_out_stands_beside_what_was_there(run: Run, backtested: Path) -> None:
    # The last one: the record that reflections read begins with the test, so the first ones have none.
    made = [d for d in run("decisions", "--json").json["decisions"] if d["action"] == "BUY"][-1]
    asked = ("why", made["symbol"], made["session"], "--redecide", "--without", "chart,reflections")
    before = contents_but_looks(backtested)
    text, document = run(*asked).out, run(*asked, "--json").json
    (both,) = document["decisions"]
    assert document["asked"] == {"preset": None, "model": None, "without": ["chart", "reflections"]}
    assert not document["same"] and "explanation" in both["differs"]
    assert "without chart, reflections" in text
    gone = [agent["agent"] for agent in both["agents"] if agent["now"] is None]
    assert gone == ["chart", "performance-reflection", "performance-reflection", "signal-reflection"]
    assert "Only then chart, performance-reflection, signal-reflection" in " ".join(text.split())
    heading = text.splitlines()[1 if text.startswith("the desk") else 0]
    assert heading.startswith(f"{made['symbol']}  {made['session']}  BUY {made['size']:g} %; decided again: ")
    assert "\n  explanation    - " in text and "\n                 + " in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert both["now"]["model"]["calls"] == both["then"]["model"]["calls"] - len(gone)
    assert contents_but_looks(backtested) == before
    assert {trial.kind for trial in trials()} == {TrialKind.BACKTEST, TrialKind.REDECISION}


def test_the_warm_up_can_be_decided_again(run: Run, backtested: Path) -> None:
    made = run("decisions", "--warm-up", "--json").json["decisions"][-1]
    assert run("why", made["symbol"], made["session"], "--redecide", "--json").json["same_throughout"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--preset", "finagent"), 2, "only works with --redecide"),
        (("--without", "chart"), 2, "only works with --redecide"),
        (("--redecide", "--prompts"), 2, "--prompts exclude each other"),
        (("--redecide", "--preset", "finvsion"), 2, "no preset finvsion; did you mean finvision?"),
        (("--redecide", "--without", "chrat"), 2, "no such step"),
        (("--redecide", "--model", "nosuch"), 2, "unknown model spec"),
        (("--redecide", "--run", "nosuch"), 65, "no run nosuch"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    run: Run, desk: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    said = run("why", "ORVL", str(SESSIONS[0]), *arguments)
    assert (said.code, said.result, said.err.count("\n")) == (code, "", 1)
    assert told in said.err


def test_a_decision_that_is_not_there_is_told_like_why_does(run: Run, desk: Path) -> None:
    plain, again = run("why", "ORVL", "2025-03-13"), run("why", "ORVL", "2025-03-13", "--redecide")
    assert (again.code, again.err) == (plain.code, plain.err) == (65, plain.err)
    assert run("why", "ORVL", "2025-03-13", "--redecide", "--json").json["exit_code"] == 65


def test_parity_says_that_a_day_is_the_same(run: Run, desk: Path) -> None:
    before = contents(desk)
    said, document = run("parity", str(SESSIONS[1])), run("parity", str(SESSIONS[1]), "--json").json
    assert said.code == 0
    assert said.out.startswith(f"Parity of {SESSIONS[1]}: every decision and order is the same\n")
    assert "Data today  as they were seen" in said.out
    assert document["same"] and document["run"] == f"daily-demo-{SESSIONS[1]:%Y%m%d}"
    made = run("decisions", "--from", str(SESSIONS[1]), "--to", str(SESSIONS[1]), "--json").json["decisions"]
    assert [one["replayed"]["action"] for one in document["decisions"]] == [one["action"] for one in made]
    assert run("parity", "--json").json["session"] == str(SESSIONS[2])
    assert contents(desk) == before


def test_parity_ends_with_1_and_shows_what_differs(run: Run, fresh: Path) -> None:
    day = date(2025, 3, 11)
    asyncio.run(run_daily(services(load_config(None, environ=FEW_AGENTS).config), day, through=Contrary))
    said, document = run("parity", str(day)), run("parity", str(day), "--json")
    assert (said.code, document.code, said.err) == (1, 1, "")
    assert said.out.startswith(f"Parity of {day}: not the same\n")
    rows = [line.split() for line in said.out.splitlines() if line.startswith("HLXM")]
    assert rows[0][:4] == ["HLXM", "BUY", "6", "%"]
    told = {one["symbol"]: one["same"] for one in document.json["decisions"]}
    assert told.pop("HLXM") is False and all(told.values())
    (order,) = [change for change in document.json["order_changes"] if "HLXM" in change["order"]]
    assert order["then"].startswith("BUY HLXM for ") and order["replayed"] == "none"
    why = run("why", "HLXM", str(day), "--redecide").out
    assert "\n                 + " in why and "\x1b" not in why and "- Bold words." in why


def test_parity_needs_a_day_of_the_desk(run: Run, backtested: Path) -> None:
    none = run("parity", "2025-03-11")
    assert none.code == 65 and "has not run yet" in none.err
    backtest = run("parity", "--run", BACKTEST)
    assert backtest.code == 2 and "is a backtest" in backtest.err
    assert run("parity", "not-a-day").code == 2


WINDOW = ("--from", "2025-03-10", "--to", "2025-03-21")
FIRST, LAST = date(2025, 3, 10), date(2025, 3, 21)


def test_a_backtest_is_a_look_with_its_returns_and_a_rerun_is_the_same_look_again(run: Run, fresh: Path) -> None:
    made = run("backtest", "--strategy", "sma-cross", "--symbols", "ORVL", *WINDOW, "--json").json
    run("backtest", "--strategy", "sma-cross", "--symbols", "ORVL", *WINDOW)
    run("backtest", "--strategy", "sma-cross", "--symbols", "ORVL", *WINDOW, "--param", "fast=5")
    first, again, other = trials()
    assert (first.kind, first.run, first.name) == (TrialKind.BACKTEST, made["run"], "sma-cross")
    assert (first.symbols, first.first, first.last) == (("ORVL",), FIRST, LAST)
    assert first.spec_hash == again.spec_hash != other.spec_hash
    values = [float(made["initial_value"]), *(float(point["value"]) for point in made["equity"])]
    expected = [round(after / before - 1, 10) for before, after in pairwise(values)]
    assert list(first.returns) == expected


def test_a_step_left_out_makes_an_ablation(run: Run, fresh: Path) -> None:
    agents = ("--preset", "finvision", "--symbols", "ORVL", "--from", "2025-03-11", "--to", "2025-03-12")
    assert run("backtest", *agents, "--without", "chart", "--json").code == 0
    (trial,) = trials()
    assert (trial.kind, trial.name, len(trial.returns)) == (TrialKind.ABLATION, "finvision", 2)


def test_every_trial_of_a_search_is_a_look(run: Run, fresh: Path) -> None:
    train, test = (
        ("--from", "2024-06-03", "--to", "2024-09-30"),
        ("--test-from", "2024-10-01", "--test-to", "2024-12-31"),
    )
    found = run("tune", "z-score", "--symbols", "ORVL", *train, *test, "--trials", "6", "--json").json
    tried = [trial for trial in trials() if trial.last == date(2024, 9, 30)]
    beyond = [trial for trial in trials() if trial.first == date(2024, 10, 1)]
    assert {trial.kind for trial in (*tried, *beyond)} == {TrialKind.TUNE_TRIAL}
    # Equal parameters are one look: the best ones are measured again.
    assert len({trial.spec_hash for trial in tried}) == len(tried) == found["tuned"][0]["trials"] == 6
    assert len(beyond) == 1
    assert all(trial.returns for trial in tried)


def test_an_audit_is_a_look_without_returns(run: Run, fresh: Path) -> None:
    assert run("audit", "--strategy", "macd", "--symbols", "ORVL", *WINDOW, "--cuts", "1").code == 0
    (trial,) = trials()
    assert (trial.kind, trial.name, trial.returns) == (TrialKind.AUDIT, "macd", ())


def test_rows_of_a_printed_table_are_looks(run: Run, fresh: Path, real_data: Path) -> None:
    assert run("bench", "finagent", "--baselines", "--symbols", "AMZN", "--data", str(real_data)).code == 0
    assert {trial.kind for trial in trials()} == {TrialKind.BENCH}
    assert {trial.symbols for trial in trials()} == {("AMZN",)}
    assert {"buy-and-hold", "macd"} <= {trial.name for trial in trials()}
