"""The worked examples of docs/extending.md do what the page says."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.agents.agent import Inputs
from engine.agents.registry import cut, waits_for
from engine.journal.reader import JournalReader
from engine.preset import load_preset
from engine.reports.stored import latest_backtests
from engine.settings import places
from tests.engine.agents.evidence_samples import MEMORIES, RISING
from tests.engine.agents.samples import DAY, holding, outcome
from tests.extending_page import commands, write_files
from tui.cli import main


def paperdesk(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    assert (ended.value.code, said.err) == (0, "")
    return said.out


@pytest.fixture
def example(tmp_path: Path, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = write_files("An agent", tmp_path)
    assert [file.name for file in files] == ["volume.py", "volume.md", "with-volume.toml"]
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_agent_of_ones_own_is_asked_counted_and_left_out(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asking, why, ablated = commands("An agent")

    made = json.loads(paperdesk(capsys, *asking, "--json"))
    read = [decision for decision in made["decisions"] if "volume: Pressure:" in decision["reason"]]
    assert len(read) == len(made["decisions"]) == made["sessions"] > 0

    trail = paperdesk(capsys, *why, "--prompts")
    assert "2 volume  (volume of 20 sessions)" in trail
    assert "mean volume of rising sessions:" in trail and "balanced" in trail

    without = json.loads(paperdesk(capsys, *ablated, "--json"))
    assert all("volume: switched off" in decision["reason"] for decision in without["decisions"])


def test_why_tells_the_side_that_an_agent_of_ones_own_took(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asking, why, _ = commands("An agent")
    paperdesk(capsys, *asking, "--json")
    with JournalReader(places.run_journal(latest_backtests(1)[0])) as journal:
        read = {one.key.session: one.answer or {} for one in journal.answers() if one.agent == "volume"}
    sides = {"buying": "rise", "selling": "fall"}
    taken = {day: sides[answer["pressure"]] for day, answer in read.items() if answer.get("pressure") in sides}
    assert taken
    for day in {side: day for day, side in taken.items()}.values():
        asked = [str(day) if part[:4].isdecimal() else part for part in why]
        document = json.loads(paperdesk(capsys, *asked, "--json"))
        reasons = [one for one in document["decisions"][0]["reasons"] if one["source"] == "volume"]
        assert [(one["side"], one["text"]) for one in reasons] == [(taken[day], read[day]["reason"])]
        assert read[day]["reason"].split(";")[0][:40] in " ".join(paperdesk(capsys, *asked).split())
        stood_apart = {one["agent"]: one["stated"] for one in document["decisions"][0]["dissent"]["otherwise"]}
        bought = document["decisions"][0]["action"] == "BUY"
        if (taken[day] == "rise") != bought:
            assert stood_apart["volume"] == {"rise": "bullish", "fall": "bearish"}[taken[day]]


def test_an_agent_whose_code_fails_ends_the_run_with_its_file_and_line(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = example / "volume.py"
    code.write_text(code.read_text().replace("ratio = view.rising / view.falling", "ratio = view.rising / 0"))
    line = code.read_text().split("view.rising / 0")[0].count("\n") + 1
    with pytest.raises(SystemExit) as ended:
        main([*commands("An agent")[0], "--json"])
    said = capsys.readouterr()
    assert ended.value.code == json.loads(said.out)["exit_code"] == 78
    fault, _, way_on = said.err.partition("; ")
    assert fault == f"paperdesk: {code}:{line}: ZeroDivisionError: float division by zero"
    assert way_on.startswith("`paperdesk backtest --resume ") and said.err.count("\n") == 1


def test_an_agent_is_given_what_it_says_that_it_reads(example: Path) -> None:
    preset = load_preset("with-volume.toml")
    agents = preset.registered
    everything = Inputs(
        symbol="MSFT",
        session=DAY,
        owner="desk",
        now=datetime(2023, 6, 1, 20, tzinfo=UTC),
        bars=RISING,
        outcomes=(outcome(1),),
        holding=holding(),
        recollections=MEMORIES,
        answers={},
    )
    given = cut(everything, agents["volume"], agents)
    assert (given.bars, given.outcomes, given.holding, given.recollections) == (RISING, (), None, ())
    assert waits_for(agents["volume"], agents) == ()
    assert "volume" in waits_for(preset.decider, agents)


def test_a_strategy_of_ones_own_is_fitted_trades_and_passes_the_audit(
    tmp_path: Path, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [file.name for file in write_files("A strategy", tmp_path)] == ["calm_momentum.py"]
    backtest, audit = commands("A strategy")

    made = json.loads(paperdesk(capsys, *backtest, "--json"))
    assert made["strategy"] == "calm_momentum.py:CalmMomentum"
    # Parameters that are not given have their defaults, and are recorded too.
    assert made["settings"]["params"] == {"lookback": "30", "stop": "0.2"}
    assert made["warm_up"] is None
    assert "fitted on 2024-01-02 to 2024-12-31, which it did not trade" in made["notes"]
    assert {trade["symbol"] for trade in made["trades"]} == {"ORVL", "BXWD"}

    certificate = json.loads(paperdesk(capsys, *audit, "--json"))
    assert certificate["verdict"] == "clean"
    assert certificate["inputs"][0]["items"] > 500
