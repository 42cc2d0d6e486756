"""What the desk's user tells the agents: it goes before the preset, stands in every prompt and is kept with the run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.app.models.models import configured_briefing, recorded_briefing
from engine.app.redecision.redecision import redecide
from engine.app.research.backtest import run_backtest
from engine.app.research.run_spec import preset_of, settled
from engine.clock import BacktestClock
from engine.domain.run import Briefing, DataSpec, ExpertNote, RunSpec
from engine.errors import ConfigError, MalformedData, MissingData, UsageError
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON
from tests.connectors.wiring.past_runs import trails

DAYS = (date(2024, 2, 12), date(2024, 2, 13), date(2024, 2, 14))
SPEC = RunSpec(symbols=("TMBK",), first=DAYS[1], last=DAYS[2], preset="desk", data=DataSpec(None, 7), model="offline")
NOTES = """{"date": "2024-02-11", "symbol": "TMBK", "text": "Mills rose."}
{"date": "2024-02-12", "symbol": "TMBK", "text": "Flour is dear."}
{"date": "2024-02-12", "symbol": "ORVL", "text": "Chips."}
{"date": "2024-02-20", "symbol": "TMBK", "text": "Later."}
"""


@pytest.fixture
def notes(tmp_path: Path) -> str:
    (tmp_path / "notes.jsonl").write_text(NOTES)
    return str(tmp_path / "notes.jsonl")


def config(data: dict[str, Any] | None = None, **desk: Any) -> Config:
    return Config.model_validate({"desk": {"name": "mine", "symbols": ["TMBK"], **desk}, "data": data or {}})


def prompts(run: str, agent: str) -> dict[date, str]:
    """What an agent was asked, by session."""
    return {
        one.decision.key.session: f"{answer.system}\n{answer.messages[0].text}"
        for one in trails(run)
        for answer in one.answers
        if answer.agent == agent
    }


def test_the_users_texts_are_in_the_decisions_prompt_and_kept_with_the_run(notes: str) -> None:
    told = config(
        {"guidance": notes},
        profile={"tmbk": "Bakes bread.\nSector: food."},
        risk="risk-averse",
        preference="conservative",
        tools=["macd"],
        instruction="Nothing before earnings.",
    )
    first = run_backtest(services(told, NOON), replace(SPEC, run="told")).result
    asked = prompts("told", "evidence-decision")
    assert list(asked) == list(DAYS[:2])
    for text in asked.values():
        for words in ("Bakes bread.", "Sector: food.", "a risk-averse investor", "a conservative trader"):
            assert words in text
        assert "Nothing before earnings." in text and "- macd, " in text
        assert "z-score, " not in text and "Chips." not in text and "Later." not in text
        assert "Mills rose." in text
    # A note of the session's own day may have been written after its close.
    assert ["Flour is dear." in text for text in asked.values()] == [False, True]

    with JournalReader(places.run_journal("told")) as reader:
        entry = reader.run("told")
        briefing = recorded_briefing(reader, entry)
    assert entry.spec is not None and entry.spec.briefing == briefing and entry.spec.embedder == "hash-384"
    assert briefing is not None
    assert (briefing.risk, briefing.preference, briefing.tools) == ("risk-averse", "conservative", ("macd",))
    assert briefing.guidance[0] == ExpertNote(date(2024, 2, 11), "TMBK", "Mills rose.")
    assert {note.symbol for note in briefing.guidance} == {"TMBK"}
    # The file may be gone and the configuration another: the spec says it all.
    Path(notes).unlink()
    again = run_backtest(services(config(risk="risk-seeking"), NOON), replace(entry.spec, run="again")).result
    assert again.test.decisions == tuple(replace(d, key=replace(d.key, run="again")) for d in first.test.decisions)
    assert prompts("again", "evidence-decision") == asked


def test_without_them_the_preset_decides_and_the_demo_market_has_a_profile() -> None:
    run_backtest(services(config(), NOON), replace(SPEC, run="plain"))
    (text, _) = prompts("plain", "evidence-decision").values()
    assert "Tambrook Foods, sector " in text and "You are a moderate trader" in text
    assert "risk-" not in text and "z-score, " in text and "standing instruction" not in text


@pytest.mark.parametrize(
    ("preset", "risk", "said"),
    [
        ("tradinggpt-single", None, "You are a risk-neutral investor"),
        ("tradinggpt-single", "risk-seeking", "You are a risk-seeking investor"),
        ("finmem", "risk-averse", "You are a risk-averse investor"),
    ],
)
def test_the_immediate_reflection_has_the_profile_and_the_character(preset: str, risk: str | None, said: str) -> None:
    run_backtest(
        services(config(risk=risk, profile={"TMBK": "Bakes bread."}), NOON), replace(SPEC, preset=preset, run="r")
    )
    asked = prompts("r", "immediate-reflection")
    assert asked
    for text in asked.values():
        assert said in text and "Bakes bread." in text
        assert text.count("The fields that you know best: ") == 1


def test_a_risk_that_follows_momentum_is_told_a_decision_with_evidence() -> None:
    run_backtest(services(config(risk="momentum"), NOON), replace(SPEC, run="m"))
    asked = prompts("m", "evidence-decision")
    assert asked
    for text in asked.values():
        assert ("You are a risk-seeking investor" in text) != ("You are a risk-averse investor" in text)
        assert "The fields that you know best" not in text


def test_a_daily_run_keeps_it_too_and_is_redecided_with_it() -> None:
    wall = BacktestClock(datetime(2024, 2, 12, 21, 30, tzinfo=UTC))
    told = config(preset="desk", preference="aggressive", instruction="Wait for bread.")
    asyncio.run(run_daily(services(told, wall), DAYS[0]))
    with JournalReader(places.desk_journal("mine")) as reader:
        (entry,) = reader.runs()
        briefing = recorded_briefing(reader, entry)
        assert briefing == configured_briefing(services(told), DataSpec(None, 7), ("TMBK",))
        decided = reader.decisions()
        changed = config(preset="desk", preference="conservative")
        again = redecide(services(changed), reader, decided)
        (text,) = [
            f"{answer.system}\n{answer.messages[0].text}"
            for answer in trail(reader, decided[0].key).answers
            if answer.agent == "evidence-decision"
        ]
    assert "You are an aggressive trader" in text and "Wait for bread." in text
    (comparison,) = again.comparisons
    assert comparison.same and not comparison.answers


def test_a_spec_that_says_it_itself_is_left_alone_and_a_strategy_has_none() -> None:
    own = replace(SPEC, briefing=Briefing(preference="aggressive"), embedder="minilm")
    made = settled(services(config(preference="conservative")), own)
    assert (made.briefing, made.embedder) == (own.briefing, own.embedder)
    preset = preset_of(own)
    assert preset is not None and preset.preference == "aggressive"
    rule = replace(SPEC, preset=None, strategy="macd", model=None)
    made = settled(services(config(risk="risk-averse")), rule)
    assert made.briefing is None and made.embedder is None and preset_of(made) is None


def test_profiles_come_from_files_and_mistakes_are_one_line(tmp_path: Path, notes: str) -> None:
    (tmp_path / "tmbk.md").write_text("From a file.")
    known = configured_briefing(
        services(config(profile={"TMBK": str(tmp_path / "tmbk.md")})), DataSpec("folder"), ("TMBK", "X")
    )
    assert known.profiles == (("TMBK", "From a file."),)
    with pytest.raises(ConfigError, match=r"desk.profile.TMBK: .*none.md cannot be read"):
        configured_briefing(services(config(profile={"TMBK": str(tmp_path / "none.md")})), DataSpec(None), ("TMBK",))
    with pytest.raises(MissingData, match="no guidance file"):
        configured_briefing(services(config({"guidance": str(tmp_path / "no.jsonl")})), DataSpec(None), ("TMBK",))
    Path(notes).write_text("{")
    with pytest.raises(MalformedData, match=r"notes\.jsonl:1"):
        run_backtest(services(config({"guidance": notes}), NOON), replace(SPEC, run="never"))
    assert not places.run_journal("never").exists()
    with pytest.raises(UsageError, match="macdd"):
        run_backtest(services(config(tools=["macdd"]), NOON), replace(SPEC, run="unknown"))
