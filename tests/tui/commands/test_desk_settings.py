"""The effective settings of a desk's runs: kept session by session, told with every change."""

from __future__ import annotations

import json
import re
import sqlite3
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import pytest

from engine.journal.reader import JournalReader
from engine.preset import load_preset, recorded_preset
from engine.settings import places
from engine.settings.config import Config
from tests.tui.commands.conftest import BACKTEST, SESSIONS, Run, contents
from tui.settings.invocation import DEFAULT_DESK
from tui.text.console import Console

PRESET = 'extends = "finvision-no-reflection"\nname = "own"\n[sizing]\ncash_floor = {}\n'
CONFIG = '[desk]\npreset = "{}"\nsymbols = ["ORVL"]\n[execution]\nslippage_bp = "{}"\n'
FIRST, SECOND, THIRD = "2025-03-11", "2025-03-12", "2025-03-13"


@pytest.fixture
def own(fresh: Path, tmp_path: Path, run: Run) -> Path:
    """A desk that has decided for a session by a preset of its own."""
    file = tmp_path / "own.toml"
    file.write_text(PRESET.format("0.2"))
    places.config_file().write_text(CONFIG.format(file.as_posix(), 7))
    assert run("--daily", "--session", FIRST).code == 0
    return file


def test_a_daily_run_keeps_and_tells_its_settings(run: Run, own: Path) -> None:
    settings = run("status", "--json").json["settings"]
    assert (settings["fills"], settings["slippage_bp"], settings["commission"]) == ("next open", "7", "0")
    assert (settings["cash"], settings["cash_floor"], settings["mode"]) == ("100000", "0.2", "auto")
    assert (settings["preset"], settings["model"], settings["symbols"]) == ("own", "offline", ["ORVL"])
    assert recorded_preset(settings["preset_text"]) == load_preset(str(own))
    assert settings["version"] == version("paperdesk") and len(settings["data_fingerprint"]) == 64
    assert set(settings["prompts"]) == {agent.name for agent in load_preset(str(own)).active_agents}
    report = run("report", "--session", "--format", "json").json
    assert report["settings"] == settings and report["changed"] is None
    with JournalReader(places.desk_journal("demo")) as reader:
        (kept,) = reader.document_versions(report["run"], "settings")
    assert json.loads(kept) == settings
    text = " ".join(run("report", "--session").out.split())
    costs = "fills at the next open, slippage 7 bp, commission 0 %, cash 100,000.00 USD, cash floor 20 %"
    assert costs in text and settings["data_fingerprint"][:12] in text and "Changed" not in text
    assert costs in " ".join(run("status").out.split())


def test_a_change_of_settings_between_sessions_is_said(run: Run, own: Path) -> None:
    changed_preset = own.with_name("changed.toml")  # one process reads a file once
    changed_preset.write_text(PRESET.format("0.5"))
    places.config_file().write_text(CONFIG.format(changed_preset.as_posix(), 9))
    assert run("--daily", "--session", SECOND).code == 0
    assert run("--daily", "--session", THIRD).code == 0
    changes = {
        "slippage_bp": ("7", "9"),
        "cash_floor": ("0.2", "0.5"),
        "preset.sizing.cash_floor": ("0.2", "0.5"),
    }
    changed = run("report", "--session", SECOND, "--format", "json").json["changed"]
    assert changed["since"] == FIRST
    assert {row["setting"]: (row["before"], row["now"]) for row in changed["settings"]} == changes
    # Every session has other data; that is no change of a setting, and the next one is as the one before it.
    assert run("report", "--session", THIRD, "--format", "json").json["changed"] is None
    assert run("status", "--json").json["changed"] is None
    said = f"since {FIRST}: cash floor (0.2, then 0.5), slippage in bp (7, then 9), preset sizing cash floor"
    assert said in " ".join(run("report", "--session", SECOND).out.split())
    listed = run("decisions", "--json").json["changed"]
    assert listed == {"daily-demo-20250312": changed}
    assert f"settings changed for {SECOND}, {said}" in " ".join(run("decisions").out.split())
    assert run("why", "ORVL", SECOND, "--json").json["changed"] == changed
    assert f"Settings changed {said}" in " ".join(run("why", "ORVL", SECOND).out.split())
    for session in (FIRST, THIRD):
        assert run("why", "ORVL", session, "--json").json["changed"] is None
        assert "Settings changed" not in run("why", "ORVL", session).out


def test_a_run_of_before_has_no_settings(run: Run, own: Path) -> None:
    with sqlite3.connect(places.desk_journal("demo")) as before:
        before.execute("DROP TRIGGER documents_no_delete")
        before.execute("DELETE FROM documents WHERE kind = 'settings'")
    assert run("--daily", "--session", SECOND).code == 0
    assert run("report", "--session", FIRST, "--format", "json").json["settings"] is None
    assert run("status", "--json").json["changed"] is None
    assert "Costs" not in run("report", "--session", FIRST).out


LOOKING = ("status", "positions", "orders", "decisions", "equity")
DAILY = "daily-demo-20250312"


def test_the_default_desk_is_the_configurations() -> None:
    assert Config().desk.name == DEFAULT_DESK


@pytest.mark.parametrize("command", LOOKING)
def test_a_desk_that_has_not_run_is_said_and_is_no_error(run: Run, paperdesk_home: Path, command: str) -> None:
    said = run(command)
    assert (said.code, said.err) == (0, "")
    assert said.out == "the desk demo has not run yet: paperdesk --daily --desk demo\n"
    document = run(command, "--json").json
    assert (document["schema"], document["desk"], document["run"]) == (1, "demo", None)
    assert contents(paperdesk_home) == {}


@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.parametrize("arguments", [(), ("--json",), ("--run", DAILY)])
def test_reading_writes_nothing(run: Run, desk: Path, command: str, arguments: tuple[str, ...]) -> None:
    before = contents(desk)
    assert run(command, *arguments).code == 0
    assert contents(desk) == before


@pytest.mark.parametrize("command", LOOKING)
def test_lines_fit_and_carry_no_escape_codes(run: Run, desk: Path, command: str) -> None:
    said = run(command)
    assert max(len(line) for line in said.out.splitlines()) <= 110
    assert "\x1b" not in said.out


@pytest.mark.parametrize("command", [*LOOKING, "why"])
def test_an_unknown_run_names_the_latest_ones(run: Run, desk: Path, command: str) -> None:
    target = ("ORVL", "2025-03-11") if command == "why" else ()
    said = run(command, *target, "--run", "nothing-here")
    assert said.code == 65
    assert said.err.count("\n") == 1
    assert "no run nothing-here" in said.err and "daily-demo-20250314, daily-demo-20250313" in said.err


def test_a_run_cannot_lead_out_of_its_folder(run: Run, desk: Path) -> None:
    assert run("status", "--run", "../desks/demo").code == 65


def test_status_adds_up_with_positions_and_equity(run: Run, desk: Path) -> None:
    status, positions, equity = (run(command, "--json").json for command in ("status", "positions", "equity"))
    assert status["last_run"]["id"] == "daily-demo-20250314"
    assert status["last_run"]["outcome"] == "done"
    assert status["value"] == positions["value"] == equity["equity"][-1]["value"]
    assert positions["positions"], "the demo desk should hold something after three sessions"
    held = sum(Decimal(p["quantity"]) * Decimal(p["price"]) for p in positions["positions"].values())
    assert abs(Decimal(positions["cash"]) + held - Decimal(positions["value"])) < Decimal("0.01")
    assert status["counts"]["decisions"] == 4 * len(SESSIONS)
    assert [row["session"] for row in equity["equity"]] == ["2025-03-11", "2025-03-12", "2025-03-13", "2025-03-14"]


def test_one_of_a_thing_is_not_told_in_the_plural(run: Run, desk: Path) -> None:
    counts = [run("status", "--at", str(session), "--json").json["counts"] for session in SESSIONS]
    told = [run("status", "--at", str(session)).out for session in SESSIONS]
    assert any(1 in count.values() for count in counts)
    for count, text in zip(counts, told, strict=True):
        for name in ("decision", "order", "fill"):
            number = count[f"{name}s"]
            assert re.search(rf" {number} {name}{'' if number == 1 else 's'}\b", text)


def test_status_says_what_is_due(run: Run, desk: Path) -> None:
    document = run("status", "--json").json
    assert document["due"] > "2025-03-14"
    assert f"{document['due']} is completed and not decided yet" in run("status").out


def test_equity_is_drawn_where_a_person_looks_and_nowhere_else(
    run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = run("equity").out
    assert "─ value" not in listed
    monkeypatch.setattr("tui.commands.account.standard_output", lambda: Console(90, is_terminal=True))
    drawn = run("equity").out
    for line in listed.splitlines():
        assert line.strip() in drawn
    last = run("equity", "--json").json["equity"][-1]
    assert f" value {Decimal(last['value']):,.2f}" in drawn and " drawdown, % " in drawn
    assert drawn.count("·   ·") > 4 and max(map(len, drawn.splitlines())) <= 90
    stated = run("status").out
    monkeypatch.setattr("tui.commands.status.standard_output", lambda: Console(90, is_terminal=True))
    seen = run("status").out
    assert "─ value" not in stated and "─ value" in seen and "drawdown" not in seen
    of_one = run("equity", "--at", "2025-03-11").out
    assert of_one.splitlines()[-1] == "A curve needs two sessions." and "─ value" not in of_one


def test_a_narrow_terminal_shows_whole_figures_and_a_pipe_whole_lines(
    run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = {command: run(command).out for command in ("positions", "orders", "decisions")}
    assert "..." not in "".join(piped.values())
    for made in run("decisions", "--json", "--action", "buy").json["decisions"]:
        assert made["reason"].split("\n")[0][-40:] in piped["decisions"]
    for module in ("commands.status", "commands.decisions", "text.console"):
        monkeypatch.setattr(f"tui.{module}.standard_output", lambda: Console(60, is_terminal=True))
    for command, text in piped.items():
        lines = run(command).out.splitlines()
        assert max(map(len, lines)) <= 60
        assert any(line.endswith("...") for line in lines) is (command == "decisions")
        figures = {word for line in lines[2:] for word in line.split() if word[-1] in "%0123456789"}
        assert figures and figures <= set(text.split())


def test_equity_measures_change_and_drawdown(run: Run, desk: Path) -> None:
    rows = run("equity", "--json").json["equity"]
    values = [float(row["value"]) for row in rows]
    assert rows[0]["change"] is None
    for n in range(1, len(rows)):
        assert rows[n]["change"] == pytest.approx(values[n] / values[n - 1] - 1)
        assert rows[n]["drawdown"] == pytest.approx(values[n] / max(values[: n + 1]) - 1)
    assert [row["session"] for row in run("equity", "--from", "2025-03-13", "--json").json["equity"]] == [
        "2025-03-13",
        "2025-03-14",
    ]


def test_orders_carry_their_fills_from_later_runs(run: Run, desk: Path) -> None:
    orders = run("orders", "--json").json["orders"]
    filled = [order for order in orders if order["state"] == "filled"]
    assert filled and all(order["fills"] for order in filled)
    assert all(order["fills"][0]["session"] > order["session"] for order in filled)
    of_run = run("orders", "--run", DAILY, "--json").json["orders"]
    assert of_run == [order for order in orders if order["session"] == "2025-03-12"]
    waiting = run("orders", "--open", "--json").json["orders"]
    assert [order["session"] for order in waiting] == ["2025-03-14"] * len(waiting)


def test_decisions_are_filtered(run: Run, desk: Path) -> None:
    whole = run("decisions", "--json").json
    assert whole["count"] == len(whole["decisions"]) == 12
    one = run("decisions", "--symbol", "orvl", "--from", "2025-03-12", "--to", "2025-03-12", "--json").json
    assert [(row["symbol"], row["session"]) for row in one["decisions"]] == [("ORVL", "2025-03-12")]
    for action in ("BUY", "HOLD"):
        rows = run("decisions", "--action", action.lower(), "--json").json["decisions"]
        assert rows == [row for row in whole["decisions"] if row["action"] == action]
        assert rows
    last = run("decisions", "--limit", "3", "--json").json
    assert (last["count"], last["decisions"]) == (12, whole["decisions"][-3:])
    assert "the last 3 of 12" in run("decisions", "--limit", "3").out
    assert "none that fits" in run("decisions", "--symbol", "NIX").out


def test_from_after_to_is_a_usage_error(run: Run, desk: Path) -> None:
    assert run("decisions", "--from", "2025-03-12", "--to", "2025-03-11").code == 2
    assert run("equity", "--from", "2025-3-x").code == 2


def test_decisions_of_the_latest_backtest_where_the_desk_has_none(run: Run, backtested: Path) -> None:
    said = run("decisions")
    assert said.code == 0
    assert f"Decisions of backtest {BACKTEST}" in said.out
    assert "the desk demo has none yet; this is the latest backtest" in said.out
    document = run("decisions", "--json").json
    assert (document["kind"], document["run"]) == ("backtest", BACKTEST)
    assert document["decisions"][0]["session"] == "2025-03-10"
    warm_up = run("decisions", "--warm-up", "--run", BACKTEST, "--json").json["decisions"]
    assert max(row["session"] for row in warm_up) < "2025-03-11"


def test_a_backtest_without_decisions_does_not_hide_the_demo_desks_history(run: Run, recorded_history: None) -> None:
    window = ("--symbols", "ORVL", "--from", "2025-03-03", "--to", "2025-03-14")
    assert run("backtest", "--strategy", "macd", "--light", *window).code == 0
    document = run("decisions", "--json").json
    assert document["run"] is None and document["decisions"]
    assert run("why", "ORVL", "2026-09-24").code == 0


def test_a_backtests_books_are_its_tests(run: Run, backtested: Path) -> None:
    equity = run("equity", "--run", BACKTEST, "--json").json
    assert (equity["initial_value"], equity["count"]) == ("100000.00", 10)
    assert equity["equity"][0]["session"] == "2025-03-11"
    assert equity["equity"][0]["change"] == pytest.approx(float(equity["equity"][0]["value"]) / 100_000 - 1)
    status = run("status", "--run", BACKTEST, "--json").json
    assert (status["value"], status["due"]) == (equity["equity"][-1]["value"], None)
    assert run("status").out.startswith("the desk demo has not run yet")


def test_a_configured_desk_is_looked_at(run: Run, desk: Path) -> None:
    (desk / "config.toml").write_text('[desk]\nname = "other"\n')
    advised = "the desk other has not run yet: paperdesk --daily --desk other\n"
    assert run("status").out == advised
    assert run("--desk", "demo", "status").out.startswith("Desk demo")
    (desk / "config.toml").unlink()
    assert run("status", "--desk", "other").out == advised
    assert run("--daily", "--desk", "other").code == 0 and run("status", "--desk", "other").out.startswith("Desk other")
    (desk / "config.toml").write_text('[desk]\nnmae = "other"\n')
    said = run("status")
    assert said.code == 78
    assert "did you mean name?" in said.err and said.err.count("\n") == 1


def test_a_damaged_journal_is_one_line(run: Run, desk: Path) -> None:
    (desk / "data" / "desks" / "demo.db").write_bytes(b"nothing like a database at all, but long enough for a header")
    said = run("status")
    assert said.code == 65
    assert said.err.count("\n") == 1 and "restore a backup" in said.err
