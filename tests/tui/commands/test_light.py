"""A light run: the fingerprint of the whole one, nothing of its books, and a line that says so."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.domain.run import RunSpec
from engine.reports.documents.backtest import fingerprint
from engine.settings import places
from engine.settings.config import load_config
from tests.tui.commands.conftest import Run

WINDOW = ("--symbols", "ORVL,TMBK", "--from", "2025-03-03", "--to", "2025-03-31")
RULE = ("--strategy", "sma-cross", "--param", "fast=3", "--param", "slow=8")
AGENTS = ("--preset", "finvision", "--model", "offline")
HELD = {"runs", "run_states", "documents", "chain", "versions"}
OF_BOOKS = {"equity", "decisions", "baselines", "per_symbol", "closes", "cash_flows", "warm_up"}


@pytest.mark.parametrize("deciding", [RULE, AGENTS], ids=["rule", "agents"])
def test_a_light_run_is_the_same_run_without_its_books(
    run: Run, paperdesk_home: Path, deciding: tuple[str, ...]
) -> None:
    whole = run("backtest", *WINDOW, *deciding, "--run", "whole", "--json").json
    light = run("backtest", *WINDOW, *deciding, "--run", "light", "--light", "--json").json

    assert light["light"] is True and not light.keys() & OF_BOOKS
    for key in ("fingerprint", "trades", "settings", "final_value", "sessions", "symbols"):
        assert light[key] == whole[key]
    assert len(light["returns"]) == light["sessions"] == 21
    assert {name for name, value in light["metrics"].items() if value != whole["metrics"][name]} == {
        "excess_return",
        "excess_low",
        "excess_high",
    }
    with closing(sqlite3.connect(places.run_journal("light"))) as journal:
        tables = [name for (name,) in journal.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        filled = {name for name in tables if journal.execute(f"SELECT 1 FROM {name}").fetchone()}
    assert filled == HELD
    assert not places.run_memory("light").exists()


def test_whoever_asks_a_light_run_for_more_is_told_what_it_holds(run: Run, paperdesk_home: Path) -> None:
    assert "holds settings" in run("backtest", *WINDOW, *RULE, "--run", "light", "--light").out
    run("backtest", *WINDOW, *RULE, "--run", "whole", "--json")

    for asked in (
        ("report", "--run", "light"),
        ("report", "--run", "light", "--json"),
        ("why", "ORVL", "2025-03-14", "--run", "light"),
        ("equity", "--run", "light"),
        ("runs", "compare", "whole", "light"),
        ("runs", "export", "light", "--to", str(paperdesk_home / "exported")),
    ):
        said = run(*asked)
        assert (said.code, said.err.count("\n")) == (65, 1), asked
        assert "run light is light" in said.err and "without --light" in said.err
    assert run("report", "--json").json["run"] == "whole", "where no run is named, the latest that is whole"
    (listed,) = [one for one in run("runs", "list", "--json").json["runs"] if one["id"] == "light"]
    assert listed["sessions"] == 21 and listed["metrics"]["total_return"] is not None
    again = run("rerun", "light", "--run", "again", "--json").json
    assert again["same"] is True and run("rerun", "again", "--json").json["fingerprints"] == again["fingerprints"]
    assert run("audit", "--run", "light", "--cuts", "1", "--json").json["same"] is True
    assert run("backtest", "--resume", "light", "--light").code == 2


def test_a_light_run_that_was_stopped_goes_on_as_one(run: Run, paperdesk_home: Path) -> None:
    config = load_config(None).config
    left = iter([False] * 5 + [True])
    spec = RunSpec(symbols=("ORVL",), first=date(2025, 3, 3), last=date(2025, 3, 31), preset="finvision", run="light")
    run_backtest(services(config), spec, stop=lambda: next(left), light=True)

    went_on = run("backtest", "--resume", "light", "--json").json

    whole = run_backtest(services(config), replace(spec, run="whole"), baselines=())
    assert went_on["light"] is True and not went_on["interrupted"]
    assert went_on["fingerprint"] == fingerprint(whole.result.test)


AGENTS_AND_THEIR_MEMORY = ("engine.agents.agent", "engine.cycle.cycle", "engine.preset", "memory", "lancedb", "pandas")


def test_a_rule_loads_nothing_of_the_agents(paperdesk_home: Path) -> None:
    command = ["backtest", *WINDOW, *RULE, "--run", "rule"]
    asked = f"import sys, tui.cli as it\ntry: it.main({command})\nfinally: print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)

    loaded = set(done.stderr.splitlines()[-1].strip("[]").replace("'", "").split(", "))
    assert "engine.lab.rule_backtest" in loaded
    assert not loaded.intersection(AGENTS_AND_THEIR_MEMORY)
