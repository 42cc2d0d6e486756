"""`why --attribute` as it is typed: what each input changed in a decision, and over a run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from engine.domain.run import TrialKind
from engine.settings import places
from tests.engine.trial_reader import looks_in
from tests.tui.commands.conftest import BACKTEST, SESSIONS, Run, contents
from tests.tui.commands.test_costs import DAY, LOCAL_PRICE, Counting, Desk, desk, service

__all__ = ["desk", "service"]

INPUTS = ["news", "vision", "chart", "performance-reflection", "signal-reflection"]
OWNERS = """
extends = "finvision"
name = "two-characters"
quorum = 2
[owners.bull]
preference = "aggressive"
[owners.bear]
preference = "conservative"
"""


@pytest.fixture
def lived(desk_home: Path, paperdesk_home: Path) -> Path:
    shutil.copytree(desk_home, paperdesk_home, dirs_exist_ok=True)
    return paperdesk_home


def signed(decision: dict[str, Any] | None) -> float:
    """Percent of the portfolio, by hand."""
    if decision is None:
        return 0.0
    return {"BUY": 1.0, "SELL": -1.0}.get(decision["action"], 0.0) * float(decision["size"])


def redecided(run: Run, symbol: str, session: str, *more: str) -> dict[str, Any]:
    """What an independent redecision comes to."""
    (both,) = run("why", symbol, session, "--redecide", *more, "--json").json["decisions"]
    assert isinstance(both, dict)
    return both


def rows(one: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    for effect in (one["unchanged"], *one["inputs"], *one["characters"], one["everything"]):
        yield tuple(effect["without"]), effect


def test_each_row_is_that_of_an_independent_redecision(run: Run, lived: Path) -> None:
    bought = run("decisions", "--action", "buy", "--json").json["decisions"][-1]
    symbol, session = bought["symbol"], bought["session"]
    before = contents(lived)
    document = run("why", symbol, session, "--attribute", "--json").json
    index = str(places.trial_index().relative_to(lived))
    assert {name for name, data in contents(lived).items() if before.get(name) != data} == {index}
    (one,) = document["decisions"]
    assert [effect["without"] for effect in one["inputs"]] == [[name] for name in INPUTS]
    assert one["everything"]["without"] == INPUTS and one["signed_size"] == signed(bought)
    changes = {}
    for without, effect in rows(one):
        flags = ("--without", ",".join(without)) if without else ()
        both = redecided(run, symbol, session, *flags)
        then, now = both["then"], both["now"]
        assert (effect["action"], effect["size"], effect["reason"]) == (now["action"], now["size"], now["reason"])
        assert effect["change"] == signed(now) - signed(then)
        changes[without] = effect["change"]
    singles = sum(changes[name,] for name in INPUTS)
    assert (one["sum"], one["remainder"]) == (singles, changes[tuple(INPUTS)] - singles)
    assert one["remainder"] and any(changes.values())
    assert {trial.kind for trial in looks_in(places.trial_index())} == {"redecision"}

    text = run("why", symbol, session, "--attribute").out
    assert f"the remainder is {one['remainder']:+g} points of the portfolio" in " ".join(text.split())
    table = {line.split("  ")[0]: line for line in text.splitlines()}
    for name in INPUTS:
        assert f"{changes[name,]:+g}" in table[name] or not changes[name,]


def test_each_character_is_left_out_as_well(run: Run, fresh: Path, tmp_path: Path) -> None:
    preset = tmp_path / "two.toml"
    preset.write_text(OWNERS)
    window = ("--symbols", "ORVL", "--from", "2025-03-11", "--to", "2025-03-13")
    assert run("backtest", *window, "--preset", str(preset), "--run", "two").code == 0
    document = run("why", "ORVL", "2025-03-12", "--attribute", "--run", "two", "--json").json
    (one,) = document["decisions"]
    assert [effect["without"] for effect in one["characters"]] == [["bull"], ["bear"]]
    for effect in one["characters"]:
        now = redecided(run, "ORVL", "2025-03-12", "--run", "two", "--without", effect["without"][0])["now"]
        assert (effect["action"], effect["size"]) == (now["action"], now["size"])
        # A quorum of two is one where one owner is left: it is no abstention.
        assert effect["action"] != "ABSTAIN" and {made["owner"] for made in now["opinions"]} == {"bull", "bear"} - {
            effect["without"][0]
        }
    assert one["sum"] == sum(effect["change"] for effect in one["inputs"])
    text = " ".join(run("why", "ORVL", "2025-03-12", "--attribute", "--run", "two").out.split())
    assert "bull (owner)" in text and "Owners are not in the sum" in text
    none_left = run("why", "ORVL", "2025-03-12", "--run", "two", "--redecide", "--without", "bull,bear")
    assert none_left.code == 2 and "leaves no owner who could decide" in none_left.err


@pytest.mark.slow
def test_a_debate_is_an_input_and_each_book_has_a_table(run: Run, fresh: Path) -> None:
    window = ("--symbols", "ORVL", "--from", "2025-03-10", "--to", "2025-03-13")
    assert run("backtest", *window, "--preset", "tradinggpt", "--run", "debate").code == 0
    asked = ("why", "ORVL", "2025-03-12", "--run", "debate")
    decisions = run(*asked, "--attribute", "--json").json["decisions"]
    assert [one["owner"] for one in decisions] == ["seeking", "neutral", "averse"]
    without = run(*asked, "--redecide", "--without", "debate", "--json").json["decisions"]
    for one, both in zip(decisions, without, strict=True):
        names = [effect["without"][0] for effect in one["inputs"]]
        assert "debate" in names and "immediate" not in names
        effect = one["inputs"][names.index("debate")]
        assert (effect["action"], effect["size"]) == (both["now"]["action"], both["now"]["size"])
        own = next(effect for effect in one["characters"] if effect["without"] == [one["owner"]])
        assert (own["action"], own["change"]) == (None, -one["signed_size"])


def test_upstream_answers_are_the_run_s_and_a_second_time_nobody_is_asked(
    desk: Desk, service: Counting, run: Run
) -> None:
    desk(LOCAL_PRICE)
    assert run(*DAY).code == 0
    asked = ("why", "ORVL", "2025-03-11", "--attribute", "--json")
    desk(LOCAL_PRICE + "[budget]\nask_above = 0.00001\n")
    service.requests.clear()
    refused = run(*asked)
    assert refused.code == 2 and service.requests == []
    assert "Forecast for deciding ORVL of 2025-03-11 again without each input:" in refused.err
    assert "is not in it" not in refused.err, "the model has answered before"
    assert "pass --yes to run it" in refused.err

    first = run(*asked, "--yes")
    (one,) = first.json["decisions"]
    assert [effect["without"][0] for effect in one["inputs"]] == ["news", "vision", "chart"]
    # Only who reads a changed input is asked: the decision without the news, the chart without pictures ...
    assert len(service.requests) == sum(effect["calls"] - effect["cached_calls"] for _, effect in rows(one)) > 0
    assert one["unchanged"]["calls"] == one["unchanged"]["cached_calls"] == 3
    without_news = one["inputs"][0]
    assert (without_news["calls"], without_news["cached_calls"]) == (2, 1)
    assert Decimal(first.json["model"]["cost"]) > 0

    service.requests.clear()
    again = run(*asked)
    assert (again.code, service.requests) == (0, []) and "near:m1: about 0 calls" in again.err
    assert Decimal(again.json["model"]["cost"]) == 0
    for (_, then), (_, now) in zip(rows(one), rows(again.json["decisions"][0]), strict=True):
        assert (now["action"], now["size"], now["change"]) == (then["action"], then["size"], then["change"])


@pytest.mark.slow
def test_over_a_run_each_input_has_a_row_with_intervals(run: Run, backtested: Path) -> None:
    asked = ("why", "--run", BACKTEST, "--attribute", "--sample", "10", "--seed", "1")
    before = len(looks_in(places.trial_index()))
    document = run(*asked, "--json").json
    assert document["sample"] == len(document["decisions"]) == 10
    assert len({(one["session"], one["symbol"]) for one in document["decisions"]}) == 10
    assert [row["without"] for row in document["inputs"]] == INPUTS
    closes = {}
    for number, row in enumerate(document["inputs"]):
        effects = [(one, one["inputs"][number]) for one in document["decisions"]]
        assert row["changed"]["count"] == 10
        assert row["changed"]["mean"] == pytest.approx(fmean(effect["changed"] for _, effect in effects))
        assert row["mean_change"]["mean"] == pytest.approx(fmean(abs(effect["change"]) for _, effect in effects))
        worth = [effect["change"] / 100 * one["next_move"] for one, effect in effects]
        assert row["return_effect"]["mean"] == pytest.approx(fmean(worth))
        assert row["mean_change"]["low"] <= row["mean_change"]["mean"] <= row["mean_change"]["high"]
        closes |= {(one["session"], one["symbol"]): one["next_move"] for one, _ in effects}
    assert any(row["mean_change"]["mean"] for row in document["inputs"])
    # Ten times the rows are as many looks as there are rows: each is one variant of the run that was tried.
    last = {trial.spec_hash: trial for trial in looks_in(places.trial_index())[before:]}
    rows_printed = len(INPUTS) + 2  # with nothing left out, and with everything
    assert len(last) == len(looks_in(places.trial_index())) - before == rows_printed
    days = sorted(date.fromisoformat(one["session"]) for one in document["decisions"])
    symbols = {one["symbol"] for one in document["decisions"]}
    assert {(trial.kind, trial.first, trial.last) for trial in last.values()} == {
        (TrialKind.REDECISION, days[0], days[-1])
    }
    assert all(set(trial.symbols) == symbols and not trial.returns for trial in last.values())
    # The next move is what `why` says of the close one session on.
    (session, symbol), move = closes.popitem()
    told = run("why", symbol, session, "--run", BACKTEST, "--json").json["decisions"][0]["closes_since"][0]
    assert (told["sessions"], told["change"]) == (1, pytest.approx(move))

    text = run(*asked).out
    assert text.startswith("What each input changed: 10 decisions drawn by seed 1\n")
    table = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    for row in document["inputs"]:
        low, mean, high = (f"{row['mean_change'][name]:.2f}" for name in ("low", "mean", "high"))
        assert table[row["without"]][1:3] == ["10", f"{100 * row['changed']['mean']:.0f}%"]
        assert f"  {mean}  {low} to {high}  " in text


def test_few_decisions_have_no_interval(run: Run, backtested: Path) -> None:
    drawn = []
    for seed in ("0", "1"):
        asked = ("why", "orvl", "--run", BACKTEST, "--attribute", "--sample", "2", "--seed", seed, "--json")
        document = run(*asked).json
        drawn.append([one["session"] for one in document["decisions"]])
        assert {one["symbol"] for one in document["decisions"]} == {"ORVL"}
    assert len(drawn[0]) == 2 and drawn[0] != drawn[1]
    assert {row["mean_change"]["low"] for row in document["inputs"]} == {None}


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("ORVL", str(SESSIONS[0]), "--attribute", "--redecide"), 2, "give one of them"),
        (("ORVL", str(SESSIONS[0]), "--attribute", "--without", "chart"), 2, "only works with --redecide"),
        (("ORVL", str(SESSIONS[0]), "--attribute", "--sample", "3"), 2, "leave out DATE"),
        (("ORVL", str(SESSIONS[0]), "--seed", "3"), 2, "only works with --attribute"),
        (("ORVL",), 2, "give both SYMBOL and DATE"),
        ((), 2, "give both SYMBOL and DATE"),
        (("NOSUCH", "--attribute"), 65, "decided nothing for NOSUCH"),
        (("ORVL", "2025-03-13", "--attribute"), 65, "no decision for ORVL on 2025-03-13"),
        (("--attribute", "--run", "nosuch"), 65, "no run nosuch"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    run: Run, lived: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    said = run("why", *arguments)
    assert (said.code, said.result, said.err.count("\n")) == (code, "", 1)
    assert told in said.err


def test_a_rule_strategy_has_no_inputs(run: Run, fresh: Path) -> None:
    window = ("--symbols", "ORVL", "--from", "2025-03-11", "--to", "2025-03-13")
    assert run("backtest", *window, "--strategy", "macd", "--run", "rule").code == 0
    said = run("why", "--run", "rule", "--attribute")
    assert (said.code, said.err.count("\n")) == (65, 1) and "decided nothing" in said.err
