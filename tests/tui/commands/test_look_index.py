"""Every command that evaluates something on a window counts it, as it is typed."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from pathlib import Path

from engine.domain.run import LookKind, WindowLook
from engine.settings import places
from tests.engine.look_reader import looks_in
from tests.tui.commands.conftest import Run

WINDOW = ("--from", "2025-03-10", "--to", "2025-03-21")
FIRST, LAST = date(2025, 3, 10), date(2025, 3, 21)


def looks() -> tuple[WindowLook, ...]:
    return looks_in(places.looks_index())


def test_a_backtest_is_a_look_with_its_returns_and_a_rerun_is_the_same_look_again(run: Run, fresh: Path) -> None:
    made = run("backtest", "--strategy", "sma-cross", "--symbols", "ORVL", *WINDOW, "--json").json
    run("backtest", "--strategy", "sma-cross", "--symbols", "ORVL", *WINDOW)
    run("backtest", "--strategy", "sma-cross", "--symbols", "ORVL", *WINDOW, "--param", "fast=5")
    first, again, other = looks()
    assert (first.kind, first.run, first.name) == (LookKind.BACKTEST, made["run"], "sma-cross")
    assert (first.symbols, first.first, first.last) == (("ORVL",), FIRST, LAST)
    assert first.spec_hash == again.spec_hash != other.spec_hash
    values = [float(made["initial_value"]), *(float(point["value"]) for point in made["equity"])]
    expected = [round(after / before - 1, 10) for before, after in pairwise(values)]
    assert list(first.returns) == expected


def test_a_step_left_out_makes_an_ablation(run: Run, fresh: Path) -> None:
    agents = ("--preset", "finvision", "--symbols", "ORVL", "--from", "2025-03-11", "--to", "2025-03-12")
    assert run("backtest", *agents, "--without", "chart", "--json").code == 0
    (look,) = looks()
    assert (look.kind, look.name, len(look.returns)) == (LookKind.ABLATION, "finvision", 2)


def test_every_trial_of_a_search_is_a_look(run: Run, fresh: Path) -> None:
    train, test = (
        ("--from", "2024-06-03", "--to", "2024-09-30"),
        ("--test-from", "2024-10-01", "--test-to", "2024-12-31"),
    )
    found = run("tune", "z-score", "--symbols", "ORVL", *train, *test, "--trials", "6", "--json").json
    trials = [look for look in looks() if look.last == date(2024, 9, 30)]
    beyond = [look for look in looks() if look.first == date(2024, 10, 1)]
    assert {look.kind for look in (*trials, *beyond)} == {LookKind.TUNE_TRIAL}
    # Equal parameters are one look: the best ones are measured again.
    assert len({look.spec_hash for look in trials}) == len(trials) == found["tuned"][0]["trials"] == 6
    assert len(beyond) == 1
    assert all(look.returns for look in trials)


def test_an_audit_is_a_look_without_returns(run: Run, fresh: Path) -> None:
    assert run("audit", "--strategy", "macd", "--symbols", "ORVL", *WINDOW, "--cuts", "1").code == 0
    (look,) = looks()
    assert (look.kind, look.name, look.returns) == (LookKind.AUDIT, "macd", ())


def test_rows_of_a_printed_table_are_looks(run: Run, fresh: Path, real_data: Path) -> None:
    assert run("bench", "finagent", "--baselines", "--symbols", "AMZN", "--data", str(real_data)).code == 0
    assert {look.kind for look in looks()} == {LookKind.BENCH}
    assert {look.symbols for look in looks()} == {("AMZN",)}
    assert {"buy-and-hold", "macd"} <= {look.name for look in looks()}
