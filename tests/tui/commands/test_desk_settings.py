"""The effective settings of a desk's runs: kept session by session, told with every change."""

from __future__ import annotations

import json
import sqlite3
from importlib.metadata import version
from pathlib import Path

import pytest

from engine.journal.reader import JournalReader
from engine.journal.versioned_documents import document_versions
from engine.preset import load_preset, recorded_preset
from engine.settings import places
from tests.tui.commands.conftest import Run

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
        (kept,) = document_versions(reader, report["run"], "settings")
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
    said = f"since {FIRST}: cash_floor (0.2, then 0.5), slippage_bp (7, then 9), preset.sizing.cash_floor"
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
